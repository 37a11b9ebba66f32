/* The modes of a job over its whole length: --mode and those that --switch goes on with. Pure. */
#ifndef COMMON_JOB_JOB_MODES_H
#define COMMON_JOB_JOB_MODES_H

#include "common/job/job.h"
#include "common/job/mode.h"
#include "common/job/switches.h"

#include <stdbool.h>

/* The rules of --switch, which were checked when they were set. */
struct switch_rules job_switches(const struct job *job);

/* In any of its phases. */
bool job_has_mode(const struct job *job, enum mode_kind kind);
bool job_has_servers(const struct job *job);
bool job_has_gpu_servers(const struct job *job); // --server-device is not host

/* Servers make the updates, and hold the parameters. In other jobs each worker makes them, from the
 * mean gradient: without servers, or with --server-optimizer none. */
bool job_servers_update(const struct job *job);

/* NCCL adds up the gradients of its ring phases: then the bits of the job are NCCL's. */
bool job_has_nccl(const struct job *job);

/* Whether members can go back to what the job had before, and join a coordinator anew. A program of
 * its own can that commits (--on-loss commit). */
bool job_may_begin_anew(const struct job *job);

/* Members do not end when their coordinator is lost, and wait for the next one. GPU memory that
 * others map ends with its process, and a program that cannot begin anew needs every server. */
bool job_outlasts_coordinator(const struct job *job);
uint32_t job_outlast_ms(const struct job *job); // for how long; 0: they end

/* Then they train on meanwhile: nothing that they exchange goes through the coordinator's process
 * (in ring, or with --coordinator-role alone), and the next one learns from them what it has to
 * know. Otherwise they join it anew. */
bool job_trains_alone(const struct job *job);

/* Workers are unsynchronised in this mode: every push is an update, or late gradients are dropped
 * (--backup). Then steps_per_epoch and total_steps count those of the average worker, and the
 * servers say how much of the job is done. */
bool job_is_unsynchronised_in(const struct job *job, enum mode_kind kind);

/* In any of its phases. */
bool job_is_unsynchronised(const struct job *job);

#endif
