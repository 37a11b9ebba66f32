/* The faults of a job (--fault; see fault_list.h): what is off the list, and whether the job has
 * whom they strike. Pure. */
#ifndef COMMON_JOB_FAULTS_H
#define COMMON_JOB_FAULTS_H

#include "common/base/status.h"
#include "common/job/carriers.h"
#include "common/job/job.h"
#include "common/job/phases.h"
#include "common/plan/fault_list.h"

#include <stddef.h>
#include <stdint.h>

/* Of a job whose option was checked. */
struct faults faults_of(const struct job *job);

/* Strikes the first kill off the job's list, and what comes before it, but for joins. */
void faults_forget_kill(struct job *job);

/* Strikes those off, but for kills, that have struck a process which is lost: at its ranks, up to
 * the step that it was about to make. */
void faults_forget_ranks(struct job *job, struct rank_block ranks, uint64_t step);

/* Strikes those at the first so many steps off. */
void faults_forget_steps(struct job *job, uint64_t steps);

/* Strikes those off whose shard the job does not have any more. */
void faults_forget_shards(struct job *job);

/* Likewise those whose rank it does not have. */
void faults_forget_absent_ranks(struct job *job);

/* Strikes the first `count` joins off. */
void faults_forget_joins(struct job *job, uint32_t count);

/* Whether the job has the ranks, shards and steps that they name, as far as that is known without
 * its data. STATUS_INVALID with a sentence. A rank that mode local does not have, and a shard where
 * there are no servers, are for job_effects: other modes of a comparison may have them. */
enum status faults_check(const struct job *job, char *ret_error, size_t error_size);

/* Whether each worker that comes has the place of one that is killed before: of jobs whose launcher
 * starts it then. STATUS_INVALID with a sentence. */
enum status faults_check_replacements(const struct job *job, char *ret_error, size_t error_size);

/* The same as faults_check with the data: a step beyond the end, or a shard in a phase without
 * servers. */
enum status faults_check_phases(const struct faults *faults, const struct phases *phases,
                                char *ret_error, size_t error_size);

#endif
