/* Members that have ended before a coordinator had taken them in, as its launcher says. Pure.
 *
 * Those who come back say who they are, and not who the others were: a job that has lost members
 * before, and taken in others, has slots whose numbers nobody knows until their members are back.
 * So who is lost is found by counting. The launcher tells a coordinator that has come back of each
 * of its processes that does not run:
 *
 *     LOST    the job may have counted on it still
 *     OVER    the job had gone on without it
 *     AGAIN   as LOST, and the launcher can start another one in its place
 *
 * Once all of its processes that run are back, a slot that is still free is one of the LOST, if
 * there are no more free slots than LOST ones. If there are more, somebody may come back that the
 * launcher does not know (`ringside join`): that is waited for, as ever (--lost-after).
 *
 * If they were just about to begin the next generation, they come by JOIN, as to a job that begins.
 * So nobody says that it has begun but the launcher, by LOST and OVER. Once all of its processes
 * that run have joined, the next generation begins without the others.
 *
 * Numbers are certain where the job has as many members as it began with. There, another process
 * can take the place of one of AGAIN, as long as members come back (returning_take_join). */
#ifndef PS_SERVER_RETURNING_ENDED_H
#define PS_SERVER_RETURNING_ENDED_H

#include "common/job/job.h"
#include "ps-server/coordinator/launcher_news.h"
#include "ps-server/returning/returning.h"

#include <stdbool.h>
#include <stdint.h>

enum ended_kind {
    ENDED_NOT, // it runs, as far as is known
    ENDED_OVER,
    ENDED_LOST,
    ENDED_AWAITED, // another one is started in its place
};

/* Zeroed: none. */
struct ended {
    bool has_any;
    unsigned char workers[JOB_WORKERS_MAX]; // by number, an ended_kind
    unsigned char servers[JOB_SERVERS_MAX + 1];
    char sentence[COORDINATOR_REASON_BYTES]; // of the first that is LOST, or OVER if none is
    bool says_lost;
};

/* Keeps what the launcher says of a member, if this coordinator has none yet, or they come back to
 * it. False: launcher_news_apply is to be called, too. */
bool ended_take(struct ended *ended, const struct returning *returning,
                struct coordinator *coordinator, const struct launcher_news *news);

/* Gives up those that are lost, once it is certain which they are. `own`: the job as the launcher
 * has started it. Call it at every turn. */
void ended_judge(struct ended *ended, const struct returning *returning, const struct job *own,
                 struct coordinator *coordinator, uint64_t now_ms);

/* The next generation begins for another reason, before all are back: it has no place for those
 * that are certain to be lost. */
void ended_leave(struct ended *ended, const struct returning *returning,
                 struct coordinator *coordinator, uint64_t now_ms);

#endif
