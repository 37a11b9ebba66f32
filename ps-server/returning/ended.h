/* Members that have ended before a coordinator had taken them in, as its launcher says. Pure.
 *
 * Members that come back say who they are, but not who the others were. If the job had lost members
 * before, and taken in others, nobody knows the numbers of its slots until their members are back.
 * So members that are lost are found by counting. The launcher tells a coordinator that has come
 * back of each of its processes that does not run:
 *
 *     LOST    the job may still have counted on it
 *     OVER    the job had gone on without it
 *     AGAIN   as LOST, and the launcher can start another process in its place
 *
 * Once all of the launcher's processes that run are back, the slots that are still free are those
 * of LOST members, if there are no more free slots than LOST members. If there are more, a member
 * may come back that the launcher does not know (`ringside join`). The coordinator waits for it, as
 * ever (--lost-after). A process that the launcher has started in the place of a lost one, and that
 * asks for a place (newcomers.h), is no member, and nobody waits for it.
 *
 * Members that were about to begin the next generation come by JOIN, as to a job that begins. Then
 * only LOST and OVER tell the coordinator that the job has begun. Once all of the launcher's
 * processes that run have joined, the next generation begins without the others.
 *
 * Numbers are certain if the job has as many members as it began with. Then another process can
 * take the place of an AGAIN member while members come back (returning_take_join). It has
 * --start-timeout for that, and is LOST if it has not come by then. */
#ifndef PS_SERVER_RETURNING_ENDED_H
#define PS_SERVER_RETURNING_ENDED_H

#include "common/job/job.h"
#include "ps-server/launcher/launcher_news.h"
#include "ps-server/returning/returning.h"

#include <stdbool.h>
#include <stdint.h>

enum ended_kind {
    ENDED_NOT, // it runs, as far as is known
    ENDED_OVER,
    ENDED_LOST,
    ENDED_AWAITED, // another one is started in its place
};

/* The process that was started last for a number, of those that have ended. */
struct ended_place {
    enum ended_kind kind;
    uint32_t launch;   // see membership.h; 0: not known
    bool is_counted;   // among the lost workers: already
    uint64_t since_ms; // that another one is awaited; 0: not known so far
};

/* Zeroed: none. Of a job that is under way, it has the ends of processes that the job does without:
 * the launcher tells each once, and the coordinator may be away later, and its members come back.
 */
struct ended {
    bool has_any;                                // that members who come back are judged by
    struct ended_place workers[JOB_WORKERS_MAX]; // by number
    struct ended_place servers[JOB_SERVERS_MAX + 1];
    char sentence[COORDINATOR_REASON_BYTES]; // of all that were lost, or the first OVER if none was
    bool says_lost;
    uint64_t judged_ms; // the last time
};

/* Keeps what the launcher says of a member that has ended, if the coordinator has no members yet,
 * or members come back to it. False: the caller applies the news as well (launcher_news_apply). */
bool ended_take(struct ended *ended, const struct returning *returning,
                struct coordinator *coordinator, const struct launcher_news *news);

/* Notes that the coordinator has counted a lost worker because of the news: once is enough. */
void ended_note_counted(struct ended *ended, const struct launcher_news *news);

/* Gives up those that are lost, once it is certain which they are. `own`: the job as the launcher
 * has started it. Call it at every turn. */
void ended_judge(struct ended *ended, const struct returning *returning, const struct job *own,
                 struct coordinator *coordinator, uint64_t now_ms);

/* For when the next generation begins for another reason, before all are back: gives up the members
 * that are certain to be lost, so that it has no place for them. Where numbers are not certain, it
 * has places with the numbers of the launcher's processes that run, if the others can be told by
 * counting. Those in whose places others have come are among the reasons. `own` as for
 * ended_judge. */
void ended_leave(struct ended *ended, const struct returning *returning, const struct job *own,
                 struct coordinator *coordinator, uint64_t now_ms);

#endif
