/* Describes the job, and starts its processes. */
#include "tests/sim/cluster.h"

#include "common/base/signals.h"
#include "common/service/launch_number.h"
#include "common/thread/slow_disk.h"
#include "ps-server/checkpoint/keeper.h"
#include "ps-server/coordinator/generation.h"
#include "ps-server/record/progress.h"
#include "ps-server/server.h"
#include "ps-server/shard/shard_service.h"
#include "tests/sim/disk.h"
#include "tests/sim/story.h"
#include "tests/support/common/sample_job.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct security insecure = {.is_insecure = true};

#define COORDINATOR_HOST 1

// That of the world: the coordinator's verdict is noted in it.
static struct cluster *running;

/* Of a job that has completed: it says what the last loss has cost. */
static bool has_costs(const struct coordinator *coordinator)
{
    const struct generation *generation = coordinator->generation;
    return generation == NULL || generation->recoveries[generation->recovery_count - 1].seconds ==
                                     (double)(coordinator->started_ms - generation->lost_ms) / 1000;
}

static void note_absence(struct cluster *cluster, const struct coordinator *coordinator)
{
    const struct generation *generation = coordinator->generation;
    if (generation != NULL) {
        const struct recovery *last = &generation->recoveries[generation->recovery_count - 1];
        snprintf(cluster->loss, sizeof(cluster->loss), "%s", last->reason);
        cluster->trained_on = last->trained_on;
        cluster->away_s = last->seconds;
        cluster->steps_meanwhile = last->steps_meanwhile;
    }
}

// NOLINTBEGIN(readability-identifier-naming): the linker's names
void __real_progress_closing(struct progress *progress, const struct coordinator *coordinator);
void __wrap_progress_closing(struct progress *progress, const struct coordinator *coordinator);

/* Where the product says how a job has ended. */
void __wrap_progress_closing(struct progress *progress, const struct coordinator *coordinator)
{
    running->has_verdict = true;
    running->verdict = coordinator->verdict;
    running->workers_lost = coordinator->workers_lost;
    running->workers_left = coordinator->carriers.processes;
    running->generation = coordinator->generation != NULL ? coordinator->generation->number : 0;
    running->restarts = generation_restarts(coordinator);
    running->has_costs = has_costs(coordinator);
    note_absence(running, coordinator);
    running->begin_step =
        coordinator->resume != NULL && running->generation == 0 ? coordinator->resume->step : 0;
    running->has_gathered = running->generation > 0 || coordinator->phase_layout.bucket_count > 0;
    snprintf(running->reason, sizeof(running->reason), "%s", coordinator->reason);
    story_say("the job has ended: %s%s%s", status_text(coordinator->verdict),
              coordinator->reason[0] != '\0' ? ": " : "", coordinator->reason);
    __real_progress_closing(progress, coordinator);
}

enum status __real_keeper_begin_writing(struct keeper *keeper, struct coordinator *coordinator);
enum status __wrap_keeper_begin_writing(struct keeper *keeper, struct coordinator *coordinator);

enum status __wrap_keeper_begin_writing(struct keeper *keeper, struct coordinator *coordinator)
{
    enum status status = __real_keeper_begin_writing(keeper, coordinator);
    running->cannot_write = running->cannot_write || status != STATUS_OK;
    return status;
}

enum status __real_slow_disk_await(const struct slow_disk_wait *wait,
                                   const struct slow_disk_work *work);
enum status __wrap_slow_disk_await(const struct slow_disk_wait *wait,
                                   const struct slow_disk_work *work);

/* A world's disk takes its time, and does not hang: what is short is done without a thread, so that
 * a seed does not depend on how many of them there are. */
enum status __wrap_slow_disk_await(const struct slow_disk_wait *wait,
                                   const struct slow_disk_work *work)
{
    if (work->moved != NULL) {
        return __real_slow_disk_await(wait, work);
    }
    work->run(work->data);
    return STATUS_OK;
}

void __real_checkpointing_note_written(struct coordinator *coordinator, uint64_t step,
                                       enum status status, const char *why, uint64_t now_ms);
void __wrap_checkpointing_note_written(struct coordinator *coordinator, uint64_t step,
                                       enum status status, const char *why, uint64_t now_ms);

/* Where the product learns what has become of a checkpoint. */
void __wrap_checkpointing_note_written(struct coordinator *coordinator, uint64_t step,
                                       enum status status, const char *why, uint64_t now_ms)
{
    running->copied = status == STATUS_OK ? step : running->copied;
    if (coordinator->checkpointing.is_written && status == STATUS_OK &&
        running->written_count < CLUSTER_WRITTEN_MAX) {
        running->written[running->written_count++] = step;
    }
    running->failed_count += status == STATUS_IO;
    __real_checkpointing_note_written(coordinator, step, status, why, now_ms);
}

void __real_generation_note_start(struct generation *generation,
                                  const struct coordinator *coordinator, uint64_t now_ms);
void __wrap_generation_note_start(struct generation *generation,
                                  const struct coordinator *coordinator, uint64_t now_ms);

/* Where the product says from which step the job goes on. */
void __wrap_generation_note_start(struct generation *generation,
                                  const struct coordinator *coordinator, uint64_t now_ms)
{
    __real_generation_note_start(generation, coordinator, now_ms);
    const char *reason = generation->recoveries[generation->recovery_count - 1].reason;
    bool is_arrival = strstr(reason, " has come") != NULL || strstr(reason, " have come") != NULL;
    running->arrivals += is_arrival;
    if (is_arrival && generation_begin_step(coordinator) < running->copied) {
        running->repeats_for_arrival = true;
    }
}
// NOLINTEND(readability-identifier-naming)

static struct job job_of(const struct cluster_shape *shape)
{
    char mode[64], workers[32], servers[32], steps[32], order[64], all_reduce[64];
    snprintf(mode, sizeof(mode), "mode=%s", shape->mode);
    snprintf(workers, sizeof(workers), "workers=%u", shape->workers);
    snprintf(servers, sizeof(servers), "servers=%u", shape->servers);
    snprintf(steps, sizeof(steps), "steps=%u", shape->steps);
    snprintf(order, sizeof(order), "order=%s", shape->order != NULL ? shape->order : "free");
    snprintf(all_reduce, sizeof(all_reduce), "all-reduce=%s",
             shape->all_reduce != NULL ? shape->all_reduce : "auto");
    bool is_ring = strcmp(shape->mode, "ring") == 0;
    struct job job = SAMPLE_JOB(mode, workers, steps, "transport=tcp", "eval=none",
                                shape->has_momentum ? "optimizer=momentum" : "optimizer=sgd",
                                is_ring ? all_reduce : order, is_ring ? NULL : servers);
    job.lr = 0.25;
    job.settings.momentum = shape->has_momentum ? 0.5 : job.settings.momentum;
    if (shape->lost_after > 0) {
        job.lost_after = shape->lost_after;
        job.stall_warn = 2 * shape->lost_after;
        job.stall_fail = 10 * shape->lost_after;
    }
    job.outlast = shape->outlast;
    job.coordinator_role = shape->is_apart ? COORDINATOR_APART : COORDINATOR_WITH_SHARD;
    job.on_loss = shape->redeals ? ON_LOSS_REDEAL : ON_LOSS_FAIL;
    job.min_workers = shape->min_workers > 0 ? shape->min_workers : job.min_workers;
    if (shape->checkpoint_every > 0) {
        job.checkpoint_every = (struct checkpoint_every){CHECKPOINT_STEPS, shape->checkpoint_every};
        job.keep = shape->keep;
    }
    return sample_job_resolved(job);
}

static void address_of(char *ret_address, size_t size)
{
    snprintf(ret_address, size, "10.0.0.%u", world_current()->host);
}

static int run_coordinator(void *data)
{
    struct cluster *cluster = data;
    const struct server_options options = {
        .job = &cluster->job,
        .address = "10.0.0.1",
        .port = 4000,
        .port_range = "",
        .security = &insecure,
        .folder = cluster->shape.checkpoint_every > 0 ? DISK_ROOT : "",
        .resume = cluster->shape.resumes ? DISK_ROOT : "",
        .goes_on = cluster->returns > 0 && cluster->shape.checkpoint_every > 0,
        .restarted = "",
        .dashboard = "",
        .announce_fd = cluster->announce_fd,
        .launcher_fd = cluster->launcher_fd,
        .is_interrupted = &cluster->is_interrupted,
    };
    return (int)exit_code(server_run(&options));
}

struct shard_of {
    struct cluster *cluster;
    uint32_t index;
};

static int run_shard(void *data)
{
    struct shard_of *of = data;
    char address[32];
    address_of(address, sizeof(address));
    const struct shard_service_options options = {
        .coordinator = of->cluster->endpoint,
        .address = address,
        .port_range = "",
        .security = &insecure,
        .number = of->index,
        .launch = of->cluster->server_launches[of->index],
        .join_timeout_ms = 30000,
        .is_interrupted = &of->cluster->is_interrupted,
    };
    free(of);
    return (int)exit_code(shard_service_run(&options));
}

void cluster_start_server(struct cluster *cluster, uint32_t index)
{
    struct shard_of *of = malloc(sizeof(*of));
    char name[WORLD_NAME_BYTES];
    if (of == NULL) {
        abort();
    }
    *of = (struct shard_of){cluster, index};
    cluster->server_launches[index] = launch_number_make(++cluster->launches, index);
    snprintf(name, sizeof(name), "ps %u", index);
    cluster->servers[index] =
        world_start(name, COORDINATOR_HOST + cluster->shape.workers + index, run_shard, of);
}

void cluster_start_worker(struct cluster *cluster, uint32_t rank)
{
    struct sim_worker *training = &cluster->trainings[rank];
    char name[WORLD_NAME_BYTES];
    *training = (struct sim_worker){
        .number = rank,
        .launch = launch_number_make(++cluster->launches, job_ps_count(&cluster->job) + rank),
        .value_count = cluster->shape.value_count,
        .bucket_count = cluster->shape.bucket_count,
        .compute_ns = cluster->shape.compute_ns,
        .sum_every = cluster->shape.sum_every,
        .all = cluster->trainings,
        .all_count = cluster->shape.workers,
    };
    snprintf(training->coordinator, sizeof(training->coordinator), "%s", cluster->endpoint);
    snprintf(name, sizeof(name), "worker %u", rank);
    cluster->workers[rank] =
        world_start(name, COORDINATOR_HOST + 1 + rank, sim_worker_main, training);
}

void cluster_begin(struct cluster *cluster, const struct cluster_shape *shape, uint64_t seed,
                   const struct world_costs *costs)
{
    world_begin(seed, costs);
    running = cluster;
    memset(cluster, 0, sizeof(*cluster));
    cluster->shape = *shape;
    cluster->launcher_fd = cluster->announce_fd = -1;
    cluster->job = job_of(shape);
    snprintf(cluster->endpoint, sizeof(cluster->endpoint), "tcp://10.0.0.1:4000");
    cluster->servers[0] = world_start("ps 0", COORDINATOR_HOST, run_coordinator, cluster);
    for (uint32_t i = 1; i < job_ps_count(&cluster->job); i++) {
        cluster_start_server(cluster, i);
    }
    for (uint32_t rank = 0; rank < shape->workers; rank++) {
        cluster_start_worker(cluster, rank);
    }
}

void cluster_return_coordinator(struct cluster *cluster)
{
    cluster->returns++;
    cluster->has_verdict = false;
    cluster->servers[0] = world_start("ps 0", COORDINATOR_HOST, run_coordinator, cluster);
}

struct sim_process *cluster_process(const struct cluster *cluster, uint32_t number)
{
    uint32_t servers = job_ps_count(&cluster->job);
    if (number < servers) {
        return cluster->servers[number];
    }
    return number < servers + cluster->shape.workers ? cluster->workers[number - servers] : NULL;
}

uint32_t cluster_launch(const struct cluster *cluster, uint32_t number)
{
    uint32_t servers = job_ps_count(&cluster->job);
    return number < servers ? cluster->server_launches[number]
                            : cluster->trainings[number - servers].launch;
}

static bool has_ended(void *data)
{
    const struct cluster *cluster = data;
    const struct sim_process *process = cluster_process(cluster, 0);
    for (uint32_t i = 0; process != NULL; process = cluster_process(cluster, ++i)) {
        if (process->state != PROCESS_ENDED && !process->is_stopped_for_good) {
            return false;
        }
    }
    return true;
}

bool cluster_run(struct cluster *cluster, uint64_t until_ns)
{
    return world_run(has_ended, cluster, until_ns);
}
