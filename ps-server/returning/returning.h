/* Members that have outlasted their coordinator, and the one that takes its place. Pure.
 *
 * Workers of a ring train on when their coordinator is lost, and knock at its endpoint (BACK, see
 * worker/link/absence.h). A coordinator that has just begun, and has no members, becomes that of
 * their job: with their job id, their processes, and the step that they have reached. It waits for
 * all of them as a later generation does for those that come back (generation.h), and for nobody
 * else; who does not come is lost. Once all are there it goes on to TRAINING at once, and GO lets
 * them tell what they have to tell. Nothing is decided anew: what was decided, members know, and
 * sums that some of them have not got are sent again as others have them. */
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
};

/* Whether the coordinator may become theirs: it has begun nothing of its own. */
bool returning_may_begin(const struct coordinator *coordinator);

/* The job of one that is back, which has to be that of the coordinator. Otherwise a sentence says
 * why it is not. */
enum status returning_read_job(const struct message *back, const struct job *own,
                               struct job *ret_job, char *ret_why, size_t why_size);

/* Fills the generation of those who are to come back. `before`: seconds that the job had trained
 * before their generation; restarts: of the job in all, with this one. Until generation_finish. */
enum status returning_generation(const struct message *back, const struct job *job, double before,
                                 uint32_t restarts, uint64_t now_ms,
                                 struct generation *ret_generation);

/* Makes a new coordinator of that job the one that they come back to. */
void returning_begin(struct returning *returning, const struct message *back,
                     struct generation *generation, struct coordinator *coordinator);

/* Takes one that is back. The last one lets training go on. False: it has no place, and nothing has
 * changed. */
bool returning_take(struct returning *returning, struct generation *generation,
                    struct coordinator *coordinator, uint64_t peer, const struct message *back,
                    uint64_t now_ms);

void returning_finish(struct returning *returning); // zeroed is fine

#endif
