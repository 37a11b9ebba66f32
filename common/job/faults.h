/* Faults that a job brings on itself, as an experiment (--fault). Pure.
 *
 *     rank=2,step=100,kill
 *         the process that carries rank 2 kills itself when it is about to make step 100
 *     rank=2,step=100,stop=5s
 *         it stands still for 5 seconds instead
 *     shard=0,step=50,kill
 *         the process that holds shard 0 kills itself when the shard's parameters have had the
 *         updates of 50 steps: in ps-ssp and ps-async when it has had as many gradients as all
 *         workers make in 50 steps
 *
 * Several of them are joined by semicolons. Steps count from 1, as in all that users see.
 *
 * Each fault strikes once, although steps may be made again after a loss. Faults stand in the order
 * in which a job comes to them: by step; of one step those of ranks before those of shards, as a
 * step is made before its updates; then as they were given. The coordinator counts the kills that
 * have struck, and tells members when they join: a fault strikes when the kills before it have, and
 * no other. So of several kills at one step the second one strikes when the step is made again, and
 * a stop strikes when its step is made for the first time. Of a job that is resumed, the faults at
 * steps that its checkpoint has do not strike, and those after them do. */
#ifndef COMMON_JOB_FAULTS_H
#define COMMON_JOB_FAULTS_H

#include "common/base/fault.h"
#include "common/base/status.h"
#include "common/job/job.h"
#include "common/job/phases.h"

#include <stddef.h>
#include <stdint.h>

#define FAULTS_MAX          16
#define FAULTS_STOP_SECONDS 3600 // at most
#define FAULT_TEXT_BYTES    96

enum fault_place { FAULT_AT_RANK, FAULT_AT_SHARD }; // in the order of a step

struct fault {
    enum fault_place place;
    uint32_t number; // of the rank or the shard
    uint64_t step;   // from 1
    enum fault_kind kind;
    double seconds; // of a stop
};

struct faults {
    struct fault list[FAULTS_MAX];
    uint32_t count;
};

/* Whom a fault may strike. */
struct fault_seat {
    enum fault_place place;
    uint32_t number;
    uint64_t kills; // that have struck
};

/* Reads --fault. STATUS_INVALID: ret_why says what would be right. */
enum status faults_parse(const char *text, struct faults *ret_faults, char *ret_why,
                         size_t why_size);

/* Of a job whose option was checked. */
struct faults faults_of(const struct job *job);

/* As it is given. */
void fault_format(const struct fault *fault, char ret_text[FAULT_TEXT_BYTES]);

/* How many kills come before it; it is one of these. */
uint64_t fault_kills_before(const struct faults *faults, const struct fault *fault);

/* How many kills a job that is resumed after so many steps has behind it. */
uint64_t faults_kills_behind(const struct faults *faults, uint64_t begin_step);

/* The kill that comes next when so many have struck; NULL: none. Borrowed. */
const struct fault *faults_next_kill(const struct faults *faults, uint64_t kills);

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
