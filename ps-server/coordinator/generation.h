/* Generations of a job's processes: a job that loses a worker goes on with those that are left.
 * Pure.
 *
 * With --on-loss redeal a lost process does not end the job. The coordinator, which is RENEWING
 * until its loop has taken what else has come, sends STOP to all members with the reason AGAIN, and
 * begins a new generation: a coordinator of the same job with
 * one process less to carry its ranks, or its parameters if a server was lost. The others join
 * again, by new connections and under the numbers that they had, and go on from the newest
 * checkpoint, or from the beginning if there is none. So the way on after a loss is the way on
 * after a restart (--resume), without the restart. Bits follow from ranks, not from processes
 * (common/job/carriers.h), so the job ends with those of an undisturbed one, unless gradients race.
 *
 *     generation 0: workers 0 1 2 3    worker 2 is lost
 *     generation 1: workers 0 1   3    slots 0 1 2 of the membership; ranks 0-1, 2, 3
 *
 * A server keeps its number, too, which is that of its process; its thread t joins by
 * that number and t times JOB_SERVERS_MAX more. Slots of servers are dealt anew: thread t of the
 * k-th process that is left has slot t K + k, as ever (job_shard_count).
 *
 * With --on-loss commit a program of its own goes on by itself from what it has committed. Its
 * processes that are left are the workers of the next generation, with ranks from 0 in the order of
 * before; those that have come are behind them. So rank 0 has the last commit, and gives it to the
 * others. A process that has made its last step (DONE) has done its part, and is not among them.
 *
 * A worker that comes while the job is under way gets a place in the next generation in the same
 * manner (newcomers.h).
 *
 * A worker that has not joined again may be in a long step, and still says by its last connection
 * that it is there. It is lost when that is silent, too.
 *
 * Each generation has a job id of its own, so nothing that was on its way reaches the next one. */
#ifndef PS_SERVER_COORDINATOR_GENERATION_H
#define PS_SERVER_COORDINATOR_GENERATION_H

#include "ps-server/coordinator/coordinator.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GENERATION_RECOVERIES_MAX 64 // that are written down: the newest

/* What a loss has cost. */
struct recovery {
    char reason[COORDINATOR_REASON_BYTES]; // which worker was lost, and how that is known
    uint64_t lost_step;                    // the most steps that a worker was known to have made
    bool is_in_place;                      // no step is made again: lost_step is what servers had
    bool has_gone_on;                      // training has: begin_step is known
    uint64_t begin_step;                   // steps made that training went on from
    uint32_t processes;                    // that are left
    uint32_t ranks;                        // that take part
    uint64_t bytes;                        // that members fetched of what they went on from
    double seconds;                        // from the loss to training, or to a loss before that
    bool trained_on;                       // training went on meanwhile, without the coordinator
    uint64_t steps_meanwhile;              // then: how many, of the worker that made most

    // How fast the job was. Images per second of all processes; 0: not known.
    double before, after;   // of the generation that ended with the loss; of the one after it
    double images_per_step; // before the loss
    uint64_t before_step;   // at which the generation before the loss began
    uint64_t before_ms;     // for how long that one had trained; 0: it had not
    bool is_measured;       // what follows is known
    double seconds_behind;  // from the loss until the job had as many steps again as before it, or
                            // until the next loss or the end
    double during;          // in that time, of steps that were made again; 0: there were none
};

/* Its slots are FREE, with what is known of those who come to them. */
struct generation {
    uint32_t number;        // from 1: the first one has none of these
    uint64_t in_place_step; // the step at which it begins in place (in_place.h); 0: it does not
    struct slot *workers;   // (process_count) in the order of numbers; owned
    uint32_t process_count;
    uint32_t places;      // worker processes that the job began with
    struct slot *servers; // (server_count) one for each process; owned
    uint32_t server_count;
    uint32_t workers_lost;       // before
    uint64_t checkpoint_step;    // of the last checkpoint on the disk; 0: none is known
    bool has_checkpoint_failed;  // the last one that was to go to the disk: it was said
    bool is_disk_slow;           // see checkpointing.h: it was said as well
    bool does_disk_hang;         // likewise
    uint64_t copy_took_ms;       // likewise: how long the last copy for memory alone came; 0: none
    uint64_t lost_ms;            // when the last one was
    uint64_t started_ms;         // when the job began to train; 0: no generation has
    double seconds_before;       // of training, in processes before this one
    uint32_t restarts_before;    // of those
    struct recovery *recoveries; // (recovery_count) the newest last, owned
    uint32_t recovery_count;
};

/* Whether the job can go on when it loses the member; otherwise a sentence says why not: "" if
 * nobody has asked for it. */
bool generation_may_follow(const struct coordinator *coordinator, const struct sender *lost,
                           char *ret_why, size_t why_size);

/* A member is lost: the job goes on without it if it can, and fails with the status otherwise. The
 * sentence says which member, and how that is known. Of several that are lost before the others
 * have been told, the first is the reason, unless the job then fails; what is written of the loss
 * names all. */
void generation_lose(struct coordinator *coordinator, enum status status, const char *sentence,
                     const struct sender *lost, uint64_t now_ms);

/* Marks a member as gone, and counts it if it is a worker that took part: that was ready once, in
 * any generation. None, if its slot is NULL. */
void generation_note_lost(struct coordinator *coordinator, const struct sender *lost,
                          uint64_t now_ms);

/* A worker cannot take part as the others do: they go on without it if it is new, else the job
 * ends. */
void generation_give_up(struct coordinator *coordinator, enum status status, const char *sentence,
                        const struct sender *member, uint64_t now_ms);

/* The job is about to go on for a reason, and this member is lost as well: says and notes so,
 * unless it was said of this member. It is marked as gone, or its slot is NULL. */
void generation_lose_too(struct coordinator *coordinator, const char *sentence,
                         const struct sender *lost);

/* The reason for which the job goes on, with all that is lost together. */
void generation_explain(const struct coordinator *coordinator,
                        char ret_reason[COORDINATOR_REASON_BYTES]);

/* Puts one more sentence behind others. False: there is no room for the whole of it. */
bool generation_join(char reason[COORDINATOR_REASON_BYTES], const char *sentence);

/* The same as generation_lose, of one that was killed, as the launcher says. If the job is about to
 * go on, that is a better reason than what others have said of their connections. */
void generation_lose_killed(struct coordinator *coordinator, const char *sentence,
                            const struct sender *lost, uint64_t now_ms);

/* Nobody is lost, but all members join the next generation. The sentence says why. Training stands
 * still since `since_ms`. */
void generation_renew(struct coordinator *coordinator, const char *sentence, uint64_t since_ms,
                      uint64_t now_ms);

/* Whether the process in the slot takes part from now on: those that were lost are GONE. Of a
 * program that commits, those that are DONE have done their part. */
bool generation_slot_is_left(const struct job *job, const struct slot *slot);

/* Whether all threads of the server process, one of `processes`, take part from now on: none of
 * their slots is GONE, or is `lost` (NULL: none). */
bool generation_server_is_left(const struct membership *membership, uint32_t processes,
                               uint32_t process, const struct slot *lost);

/* Before a generation that is RENEWING ends: whether enough workers are left, of which some may
 * have made their last step since; otherwise a sentence says why not. */
bool generation_has_enough(const struct coordinator *last, char *ret_why, size_t why_size);

/* generation_next.c: fills the next generation from the coordinator of the last one, whose verdict
 * is AGAIN. Until generation_finish. */
enum status generation_next(const struct coordinator *last, struct generation *ret_generation);

/* Fills the list of its losses: those of the generation before (NULL: there was none), as many as
 * are kept, and a zeroed one. */
enum status generation_list_recoveries(const struct generation *before,
                                       struct generation *generation);

/* Makes the job of the last one that of the next: its processes are those that are left, and what
 * has struck of --fault strikes no more. */
void generation_change_job(const struct coordinator *last, const struct generation *next,
                           struct job *job);

void generation_finish(struct generation *generation); // zeroed is fine

/* Makes a new coordinator that of a generation. Borrows the generation. */
void generation_begin(const struct generation *generation, struct coordinator *coordinator);

/* The most steps that a worker of this generation is known to have made. */
uint64_t generation_most_steps(const struct coordinator *coordinator);

/* So many steps were made before the loss, if that is more than was known. In races some workers
 * make more than the job has; those count as what it has, where that is known. */
void generation_raise_lost_step(const struct coordinator *coordinator, uint64_t step,
                                struct recovery *recovery);

/* A connection of the generation before has said that its process is there. */
void generation_note_alive(struct coordinator *coordinator, uint64_t peer, uint64_t now_ms);

/* Training has begun: takes down what the loss has cost. */
void generation_note_start(struct generation *generation, const struct coordinator *coordinator,
                           uint64_t now_ms);

/* generation_next.c: the generation begins to train, and is measured from here on. */
void generation_begin_measuring(struct coordinator *coordinator, uint64_t now_ms);

/* Signs of life have told of steps: notes whether those that were lost have been made again. */
void generation_note_steps(struct coordinator *coordinator, uint64_t now_ms);

/* Writes down how fast the generation was that went on after this loss. Without effect if it has
 * not trained. */
void generation_measure(const struct coordinator *coordinator, struct recovery *recovery);

/* Writes down how fast the generation was that this loss has ended, likewise. */
void generation_measure_before(const struct coordinator *last, struct recovery *recovery);

/* Steps that were made before the generation, which it goes on from. */
uint64_t generation_begin_step(const struct coordinator *coordinator);

/* Whether all workers have made their last step; of a program that commits, all that are left. */
bool generation_is_done(const struct coordinator *coordinator);

/* When the job began to train in this process; 0: it has not. */
uint64_t generation_started_ms(const struct coordinator *coordinator);

/* Seconds of training until then, with those of processes before this one. */
double generation_seconds(const struct coordinator *coordinator, uint64_t now_ms);

/* Whether this generation begins in place. */
bool generation_is_in_place(const struct coordinator *coordinator);

/* How often the job has gone on, by --resume or with other processes. */
uint32_t generation_restarts(const struct coordinator *coordinator);

#endif
