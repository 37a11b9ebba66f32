/* The job: one training run, described once. The coordinator holds it and hands it to everybody in
 * its welcome, so ranks cannot disagree. Its option table serves `ringside`, `ps`, config files and
 * the wire. */
#ifndef COMMON_JOB_JOB_H
#define COMMON_JOB_JOB_H

#include "common/base/status.h"
#include "common/job/schedule.h"
#include "common/optimizer/optimizer.h"
#include "common/options/options.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define JOB_NAME_BYTES 32
#define JOB_PATH_BYTES 1024
/* In a run folder, until there is a summary: room that the summary takes over. */
#define JOB_RESERVE_NAME ".summary.reserve"

#define JOB_WORKERS_MAX     4096
#define JOB_SERVERS_MAX     256       // and of shards
#define JOB_BATCH_MAX       (1 << 24) // images in a step of all workers
#define JOB_CONNECTIONS_MAX 1000      // of a process to shards and workers
#define JOB_IMAGE_SIZE_MAX  1024
#define JOB_TEXT_BYTES      (16 * 1024)

struct job {
    char mode[JOB_NAME_BYTES];
    uint32_t workers, servers;
    uint32_t server_threads; // shards of each server
    char model[JOB_NAME_BYTES];
    char data[JOB_PATH_BYTES]; // "cifar10:/data"
    uint32_t image_size;       // rows and columns of images; 0: as the data have them
    uint32_t batch;            // per worker; 0: from global_batch
    uint32_t global_batch;     // 0: workers x batch
    uint32_t epochs;           // 0: from steps
    uint64_t steps;            // 0: from epochs
    char optimizer[JOB_NAME_BYTES];
    struct optimizer_settings settings;
    double lr;                     // of one worker; 0: the optimizer's default
    char lr_scale[JOB_NAME_BYTES]; // none, linear
    uint32_t lr_workers;           // that `linear` counts; 0: workers
    double warmup_epochs;
    char lr_schedule[JOB_NAME_BYTES]; // constant, step, cosine
    double lr_step_epochs;            // step schedule: period
    double lr_gamma;                  // step schedule: factor
    uint64_t seed;
    char shard[JOB_NAME_BYTES];       // global, local: how samples are dealt
    char eval[JOB_NAME_BYTES];        // epoch, end, none
    uint64_t eval_every;              // steps between evaluations; 0: an epoch
    double target_accuracy;           // the job ends once it is reached; 0: there is none
    uint64_t limit_train, limit_test; // use only so many samples; 0: all
    char device[JOB_NAME_BYTES];
    uint32_t threads;                 // per worker; 0: cores / workers on the host
    char conv[JOB_NAME_BYTES];        // auto, direct, winograd
    char precision[JOB_NAME_BYTES];   // fp32, tf32, bf16
    bool allow_nondeterministic;      // algorithms whose bits differ from run to run
    bool cuda_graphs;                 // of what steps launch
    double bucket_mb;                 // 0: auto, see phases.h
    uint32_t gradients_per_update;    // ps-ssp and ps-async
    char remedy[JOB_NAME_BYTES];      // against staleness: none, staleness-lr, dc, dc-adaptive
    double remedy_lambda;             // of dc and dc-adaptive; 0: the remedy's default
    char straggler[JOB_PATH_BYTES];   // who is slow: none, or see straggler.h
    char order[JOB_NAME_BYTES];       // free, seeded:DIST
    char delay_model[JOB_NAME_BYTES]; // server, per-worker: of a seeded order
    char switches[JOB_PATH_BYTES];    // to other modes: none, or see phases.h
    bool sync_bn;                     // batch normalisation over the batches of all workers
    uint32_t backup;                  // ps-sync: workers whose gradients an update does not need
    uint32_t sync_every;              // steps that a worker makes alone (local SGD); 1: none
    char transport[JOB_NAME_BYTES];   // auto, tcp, ipc, shm
    uint32_t connections;             // of each two that exchange over a network
    char security[JOB_NAME_BYTES];    // curve, auth-only
    char compress[JOB_NAME_BYTES];    // none, or see codec.h: of gradients on the wire
    char all_reduce[JOB_NAME_BYTES];  // auto, or see all_reduce.h: of ring
    uint32_t report_every;            // steps between metrics
    double start_timeout, lost_after, stall_warn, stall_fail; // seconds
};

extern const struct option job_options[];
extern const size_t job_option_count;

/* The set of `job` for a program's tables. */
struct option_set job_option_set(struct job *job);

/* Checks what rows cannot: contradictions between options. Fills what follows from others (batch,
 * the largest share of a worker, from global_batch; lr, decay and epsilon from the optimizer;
 * threads stay). Resolving again changes nothing. On STATUS_INVALID ret_error says what to change.
 *
 * `local` becomes one worker with the whole global batch. lr_workers stays the number of workers
 * that it replaces, so that linear scaling gives it their learning rate. */
enum status job_resolve(struct job *job, char *ret_error, size_t error_size);

/* "name=value\n" for every row, and back. For the wire: decode checks every value, fails on names
 * it does not know, and resolves: a job from a peer is as sound as one from the command line. */
enum status job_encode(const struct job *job, char *ret_text, size_t text_size);
enum status job_decode(const char *text, struct job *ret_job, char *ret_error, size_t error_size);

/* Samples of a step that `rank` computes: part `rank` of `workers` of the global batch. */
uint32_t job_batch_of(const struct job *job, uint32_t rank);

/* Steps in an epoch of sample_count training samples (a last, short batch is left out) and in the
 * whole job. steps_per_epoch is 0 if there are fewer samples than one global batch. */
uint64_t job_steps_per_epoch(const struct job *job, uint64_t sample_count);
uint64_t job_total_steps(const struct job *job, uint64_t sample_count);

/* Every push is an update: ps-ssp and ps-async. */
bool mode_updates_on_push(const char *mode);

/* Steps of workers are apart from each other in this mode: every push is an update, or late ones
 * are dropped (--backup). Then steps_per_epoch and total_steps count those of the average worker,
 * and the servers say how far the job is. */
bool job_is_free_in(const struct job *job, const char *mode);

/* In any of its phases. */
bool job_is_free(const struct job *job);
bool job_has_mode(const struct job *job, const char *mode); // up to a colon
bool job_has_servers(const struct job *job);

/* --bucket-mb auto: the size is found in the first steps. */
bool job_tunes_buckets(const struct job *job);

/* Bytes of the buckets that a model is cut into: with auto the smallest that are tried, which are
 * then merged. */
uint64_t job_bucket_bytes(const struct job *job);

/* Parts of the parameters: each thread of each server holds one. Thread t of server k of K holds
 * shard t K + k. */
uint32_t job_shard_count(const struct job *job);

struct schedule job_schedule(const struct job *job, uint64_t sample_count);

/* "cifar10:/data" -> "cifar10", "/data" (points into `data`; "" if there is none). */
void job_split_data(const char *data, char ret_name[JOB_NAME_BYTES], const char **ret_path);

#endif
