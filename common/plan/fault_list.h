/* The list of faults that a job brings on itself, as an experiment (--fault). Pure.
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
 *     after=step:150,join
 *         a worker comes in the place of one that was killed, and is taken in when the job has made
 *         150 steps, or a few more: where there is a copy of what the job has (newcomers.h). Who
 *         comes sooner waits
 *
 * Several of them are joined by semicolons. Steps count from 1, as in all that users see.
 *
 * Each fault but a join strikes once, although steps may be made again after a loss. Faults stand
 * in the order in which a job comes to them: by step; of one step those of ranks before those of
 * shards, as a step is made before its updates, and joins last; then as they were given. A fault
 * strikes if no kill comes before it. When that has struck, the coordinator strikes it and what
 * came before it off the list that it gives to members, so the next one's turn comes. So of several
 * kills at one step the second one strikes when the step is made again, and a stop strikes when its
 * step is made for the first time. Of a job that is resumed, the faults at steps that its
 * checkpoint has are off the list. */
#ifndef COMMON_PLAN_FAULT_LIST_H
#define COMMON_PLAN_FAULT_LIST_H

#include "common/base/fault.h"
#include "common/base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FAULTS_MAX         16
#define FAULTS_SECONDS_MAX 3600
#define FAULT_TEXT_BYTES   96

enum fault_place { FAULT_AT_RANK, FAULT_AT_SHARD, FAULT_AT_JOB }; // in the order of a step

struct fault {
    enum fault_place place;
    uint32_t number; // of the rank or the shard; 0 of the job
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

/* As it is given. */
void fault_format(const struct fault *fault, char ret_text[FAULT_TEXT_BYTES]);

/* All of them, as they are given; "none" if there are none. There is room for the text that they
 * were read from. */
void faults_format(const struct faults *faults, char *ret_text, size_t text_size);

/* Whether a job comes to the first one before the second, which are of the same list. */
bool fault_comes_before(const struct fault *first, const struct fault *second);

/* The kill that comes first; NULL: there is none. Borrowed. */
const struct fault *faults_next_kill(const struct faults *faults);

/* The join that comes first; NULL: there is none. Borrowed. */
const struct fault *faults_next_join(const struct faults *faults);

/* How many joins there are at steps 1 to `steps`. */
uint32_t faults_count_joins(const struct faults *faults, uint64_t steps);

/* The first one that strikes this seat behind a step (0: the beginning); NULL: none does.
 * Borrowed. */
const struct fault *faults_next(const struct faults *faults, const struct fault_seat *seat,
                                uint64_t step);

#endif
