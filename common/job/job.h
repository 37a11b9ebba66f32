/* The job: one training run, described once. The coordinator holds it and hands it to everybody in
 * its welcome, so ranks cannot disagree.
 *
 * This header knows none of those that read it:
 *
 *     job_options    its rows: one table for command lines, config files and the wire
 *     job_modes      the modes that it has over its length
 *     phases         which mode rules when, and when parameters are looked at
 *     job_checks     contradictions between its options
 *     job_resolve    fills what follows from other options, then checks
 *     job_text       writes it as text and reads it back, for the wire
 *     job_effects    options that were given and do nothing
 */
#ifndef COMMON_JOB_JOB_H
#define COMMON_JOB_JOB_H

#include "common/codec/codec.h"
#include "common/job/job_choices.h"
#include "common/job/mode.h"
#include "common/optimizer/optimizer.h"
#include "common/optimizer/schedule.h"
#include "common/options/names.h"
#include "common/plan/rank_list.h"
#include "common/trace/trace.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define JOB_NAME_BYTES      32
#define JOB_AUGMENT_BYTES   96
#define JOB_NORMALIZE_BYTES 96
#define JOB_PATH_BYTES      1024
/* In a run folder, until there is a summary: room that the summary takes over. */
#define JOB_RESERVE_NAME  ".summary.reserve"
#define JOB_RESERVE_BYTES 32768 // more than a summary has, if it is not of very many epochs

#define JOB_WORKERS_MAX            4096
#define JOB_SERVERS_MAX            256       // and of shards
#define JOB_BATCH_MAX              (1 << 24) // images in a step of all workers
#define JOB_GPU_SERVER_WORKERS_MAX 16        // of servers that keep parameters on a GPU
#define JOB_CONNECTIONS_MAX        1000      // of a process to shards and workers
#define JOB_IMAGE_SIZE_MAX         1024
#define JOB_CLASSES_MAX            1000000
#define JOB_LOADER_THREADS_MAX     256 // of a process

struct job {
    struct mode mode;
    uint32_t workers, servers;
    uint32_t processes;      // that carry the workers' ranks, see carriers.h; 0: one for each
    uint32_t server_threads; // shards of each server
    char model[JOB_NAME_BYTES];
    char data[JOB_PATH_BYTES];           // "cifar10:/data"
    uint32_t image_size;                 // rows and columns of images; 0: as the data have them
    uint32_t eval_size;                  // the same of test images; 0: image_size
    uint32_t classes;                    // outputs of the model; 0: as many as the data have
    enum bad_images bad_images;          // in folders of images
    char augment[JOB_AUGMENT_BYTES];     // of training images: none, or see augmentation.h
    char normalize[JOB_NORMALIZE_BYTES]; // of all images: usual, or see normalization.h
    uint32_t batch;                      // per worker; 0: from global_batch
    uint32_t global_batch;               // 0: workers x batch
    uint32_t epochs;                     // 0: from steps
    uint64_t steps;                      // 0: from epochs
    enum optimizer_kind optimizer;
    struct optimizer_settings settings;
    double lr; // of one worker; 0: the optimizer's default
    enum lr_scale lr_scale;
    uint32_t lr_workers; // that `linear` counts; 0: workers
    double warmup_epochs;
    enum schedule_kind lr_schedule;
    double lr_step_epochs; // step schedule: period
    double lr_gamma;       // step schedule: factor
    uint64_t seed;
    enum sample_split shard;
    enum evaluation eval;
    uint64_t eval_every;              // steps between evaluations; 0: an epoch
    double target_accuracy;           // the job ends once it is reached; 0: there is none
    uint64_t limit_train, limit_test; // use only so many samples; 0: all
    char device[JOB_NAME_BYTES];
    char server_device[JOB_NAME_BYTES]; // host, cuda, cuda:1
    uint32_t threads;                   // per worker; 0: cores / workers on the host
    uint32_t loader_threads; // per worker process; 0: auto, see worker/data/batches/loaders.h
    enum job_cache cache;    // of decoded images
    uint32_t cache_mb;       // MiB of each host; 0: half of what is free
    enum job_conv conv;
    enum job_precision precision;
    bool allow_nondeterministic;   // algorithms whose bits differ from run to run
    enum job_engines cuda_engines; // how cuDNN's are chosen
    bool cuda_graphs;              // of what steps launch
    bool cuda_peers;               // GPUs of one host sum gradients by themselves
    bool cuda_sync_check;          // wait for each operation, and name the one that fails
    double bucket_mb;              // 0: auto, see phases.h
    uint32_t gradients_per_update; // ps-ssp and ps-async
    enum remedy_kind remedy;
    double remedy_lambda; // of dc and dc-adaptive; 0: the remedy's default
    enum server_optimizer server_optimizer;
    char straggler[JOB_PATH_BYTES]; // slow workers: none, or see straggler.h
    char faults[JOB_PATH_BYTES];    // that it brings on itself: none, or see faults.h
    char order[JOB_NAME_BYTES];     // free, seeded:DIST
    enum delay_model delay_model;
    char switches[JOB_PATH_BYTES]; // to other modes: none, or see phases.h
    bool sync_bn;                  // batch normalisation over the batches of all workers
    uint32_t backup;               // ps-sync: workers whose gradients an update does not need
    uint32_t sync_every;           // steps that a worker makes alone (local SGD); 1: none
    enum transport_kind transport;
    uint32_t connections; // between each pair of processes that exchange over a network
    enum security_kind security;
    struct codec compress;              // of gradients on the wire
    enum all_reduce_choice all_reduce;  // of ring
    uint32_t report_every;              // steps between metrics
    bool timeline;                      // its processes record what they do
    struct trace_window timeline_steps; // that are recorded then
    struct checkpoint_every checkpoint_every;
    uint32_t keep; // checkpoints
    enum on_loss on_loss;
    enum coordinator_role coordinator_role;
    struct rank_list left_out;                                // see carriers.h
    uint32_t min_workers;                                     // processes that have to be left
    double start_timeout, lost_after, stall_warn, stall_fail; // seconds
    double outlast; // seconds that workers go on without their coordinator
};

/* Samples of a step that `rank` computes: part `rank` of `workers` of the global batch; 0 if it is
 * left out. */
uint32_t job_batch_of(const struct job *job, uint32_t rank);

/* Samples of a step: the global batch, without the parts of ranks that are left out. */
uint32_t job_batch_present(const struct job *job);

/* The most samples of a step that a rank computes. All programs are compiled for as many, so that
 * the bits of a rank's results do not depend on who carries it. */
uint32_t job_batch_max(const struct job *job);

/* Seconds in which a disk has to do something of what is asked of it, or it hangs: half of
 * --stall-fail, after which members that wait for it would be given up. */
double job_disk_fail_s(const struct job *job);

/* How many training samples the job uses of those that are available. */
uint64_t job_train_samples(const struct job *job, uint64_t available);

/* Steps in an epoch of sample_count training samples (a last, short batch is left out) and in the
 * whole job. steps_per_epoch is 0 if there are fewer samples than one global batch. */
uint64_t job_steps_per_epoch(const struct job *job, uint64_t sample_count);
uint64_t job_total_steps(const struct job *job, uint64_t sample_count);

/* --bucket-mb auto: the size is found in the first steps. */
bool job_tunes_buckets(const struct job *job);

/* The steps that its processes record; none without a timeline. */
struct trace_window job_timeline(const struct job *job);

/* Its optimizer, for people: "adam"; or, where a program of its own makes the updates, or has not
 * said yet, whose it is. */
#define JOB_OPTIMIZER_OF_PROGRAM "the program's"
const char *job_optimizer_text(const struct job *job);

/* How long a worker may time what its GPU's library offers, before it trains (--cuda-engines). */
uint32_t job_timing_seconds(const struct job *job);

/* Parts of the parameters: each thread of each server holds one. Thread t of server k of K holds
 * shard t K + k. */
uint32_t job_shard_count(const struct job *job);

/* Processes of `ps`: the servers, and the coordinator where it is none of them. Of a resolved job.
 * Process 0 has the coordinator, and the first server is process 0 or 1. */
uint32_t job_ps_count(const struct job *job);
uint32_t job_first_server(const struct job *job);

struct schedule job_schedule(const struct job *job, uint64_t sample_count);

// What --model and --data begin with where a program of its own trains, by libringside.
#define JOB_EXTERNAL_PREFIX "external:"

#define JOB_PROGRAM_BYTES (16 << 10) // of that program's command line, with the '\0'

/* Whether a program of its own trains. It brings its model and its data, and Ringside knows
 * neither. */
bool job_is_external(const struct job *job);

/* The length of a job that ends when its programs do: more steps than any has. */
#define JOB_STEPS_OPEN UINT64_C(1000000000000)

/* Whether nobody knows how many steps the job has: its model is a program of its own, which makes
 * as many as it likes. */
bool job_is_open(const struct job *job);

/* As job_total_steps, for people: 0 if nobody knows it. */
uint64_t job_known_steps(const struct job *job, uint64_t sample_count);

/* "cifar10:/data" -> "cifar10", "/data" (points into `data`; "" if there is none). */
void job_split_data(const char *data, char ret_name[JOB_NAME_BYTES], const char **ret_path);

#endif
