/* Faults that a job brings on itself, as an experiment (--fault). Pure.
 *
 *     rank=2,step=100,kill
 *         the process that carries rank 2 kills itself when it is about to make step 100
 *     rank=2,step=100,stop=5s
 *         it stands still for 5 seconds instead
 *     rank=2,step=100,partition=3s
 *         its sockets neither send nor receive for 3 seconds, while it goes on (partition.h)
 *     shard=0,step=50,kill
 *         the process that holds shard 0 kills itself when the shard's parameters have had the
 *         updates of 50 steps: in ps-ssp and ps-async when it has had as many gradients as all
 *         workers make in 50 steps
 *
 * Several of them are joined by semicolons. Steps count from 1, as in all that users see.
 *
 * Each fault strikes once, although steps may be made again after a loss. Faults stand in the order
 * in which a job comes to them: by step; of one step those of ranks before those of shards, as a
 * step is made before its updates; then as they were given. A fault strikes if no kill comes before
 * it. When that has struck, the coordinator strikes it and what came before it off the list that it
 * gives to members, so the next one's turn comes. So of several kills at one step the second one
 * strikes when the step is made again, and a stop strikes when its step is made for the first time.
 * Of a job that is resumed, the faults at steps that its checkpoint has are off the list. */
#ifndef COMMON_JOB_FAULTS_H
#define COMMON_JOB_FAULTS_H

#include "common/base/fault.h"
#include "common/base/status.h"
#include "common/job/carriers.h"
#include "common/job/job.h"
#include "common/job/phases.h"

#include <stddef.h>
#include <stdint.h>

#define FAULTS_MAX         16
#define FAULTS_SECONDS_MAX 3600
#define FAULT_TEXT_BYTES   96

enum fault_place { FAULT_AT_RANK, FAULT_AT_SHARD }; // in the order of a step

struct fault {
    enum fault_place place;
    uint32_t number; // of the rank or the shard
    uint64_t step;   // from 1
    enum fault_kind kind;
    double seconds; // of a stop or a partition
};

struct faults {
    struct fault list[FAULTS_MAX];
    uint32_t count;
};

/* A process that a fault may strike. */
struct fault_seat {
    enum fault_place place;
    uint32_t number;
};

/* Reads --fault. STATUS_INVALID: ret_why says what would be right. */
enum status faults_parse(const char *text, struct faults *ret_faults, char *ret_why,
                         size_t why_size);

/* Of a job whose option was checked. */
struct faults faults_of(const struct job *job);

/* As it is given. */
void fault_format(const struct fault *fault, char ret_text[FAULT_TEXT_BYTES]);

/* The kill that comes first; NULL: there is none. Borrowed. */
const struct fault *faults_next_kill(const struct faults *faults);

/* Strikes the first kill off the job's list, and what comes before it. */
void faults_forget_kill(struct job *job);

/* Strikes those off, but for kills, that have struck a process which is lost: at its ranks, up to
 * the step that it was about to make. */
void faults_forget_ranks(struct job *job, struct rank_block ranks, uint64_t step);

/* Strikes those at the first so many steps off. */
void faults_forget_steps(struct job *job, uint64_t steps);

/* Strikes those off whose shard the job does not have any more. */
void faults_forget_shards(struct job *job);

/* The first one that strikes this seat behind a step (0: the beginning); NULL: none does.
 * Borrowed. */
const struct fault *faults_next(const struct faults *faults, const struct fault_seat *seat,
                                uint64_t step);

/* Whether the job has the ranks, shards and steps that they name, as far as that is known without
 * its data. STATUS_INVALID with a sentence. A rank that mode local does not have, and a shard where
 * there are no servers, are for job_effects: other modes of a comparison may have them. */
enum status faults_check(const struct job *job, char *ret_error, size_t error_size);

/* The same with the data: a step beyond the end, or a shard in a phase without servers. */
enum status faults_check_phases(const struct faults *faults, const struct phases *phases,
                                char *ret_error, size_t error_size);

#endif
