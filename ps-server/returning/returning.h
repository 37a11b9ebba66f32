/* Members that have outlasted their coordinator, and the one that takes its place. Pure.
 *
 * Members knock at the endpoint of the coordinator that they have lost (BACK, see
 * worker/link/absence.h). A coordinator that has just begun becomes that of their job: with their
 * job id, their processes, and the step that they have reached. It waits for all of them as a later
 * generation does for those that come back (generation.h); who does not come is lost.
 *
 * What a member says first may have waited in a socket, so it is asked to say it again (HEARTBEAT
 * with AGAIN): how many steps it has made, and since when it has had no coordinator, are those of
 * its answer.
 *
 * Once all are there it goes on to TRAINING at once if they train, which workers of a ring do, and
 * GO lets them tell what they have to tell. Nothing is decided anew: what was decided, members
 * know, and sums that some of them have not got are sent again as others have them.
 *
 * If any of them cannot go on as it is, all are told to join the next generation (STOP with AGAIN),
 * which goes on from the newest checkpoint. So it is where a shard was lost with the coordinator:
 * the shard that the new one has joins, and comes back to nothing. It counts as being back, and so
 * does a process that somebody has started in the place of another one, if its number shows which
 * that was: numbers are those of slots as long as nobody was lost. Later, a worker that has
 * trained, or a server, which joins since it was told to before the coordinator was lost, has a
 * place, too, and any free slot serves: the next generation is dealt anew. */
#ifndef PS_SERVER_RETURNING_RETURNING_H
#define PS_SERVER_RETURNING_RETURNING_H

#include "common/base/status.h"
#include "ps-server/coordinator/coordinator.h"
#include "ps-server/coordinator/generation.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What is known of members that are back; zeroed at first. */
struct returning {
    uint64_t begin_step, sum_round; // of the job; of those that are back, the newest
    double *sum;                    // (sum_count) that one, owned; NULL: not known
    uint32_t sum_count;
    uint64_t commit_step; // if has_commit: the newest, of a program that commits
    uint32_t phase;       // that they train in
    uint32_t term;        // how many coordinators have taken them in before
    bool has_commit;
    bool is_anew;                  // some cannot go on as they are
    bool has_workers, has_servers; // all that the job began with: none was lost before
};

/* Whether the coordinator may become theirs: it has begun nothing of its own, but for members that
 * have joined, which it sends away. */
bool returning_may_begin(const struct coordinator *coordinator);

/* Whether the job of one that is back has begun to train. If not, the member has nothing that a
 * coordinator which has begun nothing either would have to know: it joins that one like others. */
bool returning_has_begun(const struct message *back);

/* Frees the place that such a member has here, if it is this coordinator that it has missed. */
void returning_release(struct coordinator *coordinator, const struct message *back);

/* The job of one that is back, which has to be that of the coordinator. Otherwise a sentence says
 * why it is not. */
enum status returning_read_job(const struct message *back, const struct job *own,
                               struct job *ret_job, char *ret_why, size_t why_size);

/* What is known of the job before. */
struct returning_past {
    double seconds;                  // that it had trained before the generation of its members
    uint32_t restarts;               // in all, with this one
    bool was_away;                   // it is the same coordinator, which they have missed
    const struct generation *before; // then: the one that it had; NULL: none. Borrowed
    uint64_t fetched_bytes;          // then: by members, of what that one went on from
};

/* Whether one that has been taken in said this before it knew that it was: it counts for nothing.
 */
bool returning_is_old(const struct coordinator *coordinator, uint64_t peer,
                      const struct message *back);

/* Fills the generation of those who are to come back. Until generation_finish. */
enum status returning_generation(const struct message *back, const struct job *job,
                                 const struct returning_past *past, uint64_t now_ms,
                                 struct generation *ret_generation);

/* Whether a member of this coordinator's job has been taken in by a later one: this one was away
 * for so long, and decides nothing any more. */
bool returning_is_replaced(const struct coordinator *coordinator, const struct message *back);

/* Whether a member that comes back has lost only its connection to this coordinator, which has a
 * shard, while both were there all the time. Such a connection is made again like any other between
 * two that live (stalls_check_connections). */
bool returning_is_reconnected(const struct coordinator *coordinator, const struct message *back);

/* Lets all members connect anew because of that. */
void returning_renew(struct coordinator *coordinator, uint64_t peer, const struct message *back,
                     uint64_t now_ms);

/* Makes a new coordinator of that job the one that they come back to. `own`: the job as its own
 * options have it. */
void returning_begin(struct returning *returning, const struct message *back, const struct job *own,
                     struct generation *generation, struct coordinator *coordinator);

/* What they had when their generation began is not known: nobody can be taken in as it is. */
void returning_forget(struct returning *returning);

/* Takes one that is back, and asks it to say so again. The last answer lets training go on, or the
 * next generation begin. False: it has no place, and nothing has changed. */
bool returning_take(struct returning *returning, struct generation *generation,
                    struct coordinator *coordinator, uint64_t peer, const struct message *back,
                    uint64_t now_ms);

/* Takes one that asks to join meanwhile as one that is back, and tells it to ask again. False: it
 * is nobody's place that it asks for. */
bool returning_take_join(struct returning *returning, struct generation *generation,
                         struct coordinator *coordinator, uint64_t peer, const struct message *join,
                         uint64_t now_ms);

/* The next generation begins, before all are back or for any other reason. Those who are back learn
 * what some of them know: the newest sum, and with it the newest commit of a program, which is then
 * that of all of them. */
void returning_settle(const struct returning *returning, struct coordinator *coordinator);

void returning_finish(struct returning *returning); // zeroed is fine

#endif
