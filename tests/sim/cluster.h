/* A job in a simulated world: a coordinator, its shards and workers, each a process on a host. */
#ifndef TESTS_SIM_CLUSTER_H
#define TESTS_SIM_CLUSTER_H

#include "common/job/job.h"
#include "ps-server/coordinator/coordinator.h"
#include "tests/sim/sim_worker.h"
#include "tests/sim/world.h"

#include <stdbool.h>
#include <stdint.h>

#define CLUSTER_WORKERS_MAX SIM_RANKS_MAX
#define CLUSTER_SERVERS_MAX 4

struct cluster_shape {
    const char *mode;               // "ring", "ps-sync", "ps-ssp:2", "ps-async"
    const char *order, *all_reduce; // NULL: as the job has it
    uint32_t workers, servers, steps;
    uint32_t value_count, bucket_count;
    uint64_t compute_ns;             // of a step, at most
    double lost_after;               // seconds, and for stalls ten times that; 0: as the job has it
    bool redeals;                    // --on-loss redeal
    uint32_t min_workers;            // with that; 0: as the job has it
    uint32_t checkpoint_every, keep; // steps, and checkpoints that stay; 0: none are written
    bool resumes;                    // from the newest one on the disk
    double outlast;                  // seconds; 0: workers end with their coordinator
    uint32_t sum_every;              // steps; 0: never
    bool is_apart;                   // --coordinator-role alone
    bool has_momentum;               // --optimizer momentum, of one half; or else sgd
};

#define CLUSTER_WRITTEN_MAX 64

struct cluster {
    struct cluster_shape shape;
    struct job job;
    struct sim_process *servers[CLUSTER_SERVERS_MAX]; // the first one has the coordinator
    struct sim_process *workers[CLUSTER_WORKERS_MAX];
    struct sim_worker trainings[CLUSTER_WORKERS_MAX];
    uint32_t launches;                             // processes that were started
    uint32_t server_launches[CLUSTER_SERVERS_MAX]; // which of them each is
    char endpoint[256];                            // of the coordinator
    atomic_int is_interrupted;
    uint32_t returns;             // of the coordinator
    int launcher_fd, announce_fd; // the coordinator's ends of pipes; -1: there is no launcher

    // Of the coordinator, once it has closed the job.
    bool has_verdict;
    enum status verdict;
    char reason[COORDINATOR_REASON_BYTES];
    uint32_t workers_lost; // one that comes back may be lost again
    uint32_t workers_left; // of the last generation
    uint32_t generation;   // that it has closed
    uint32_t restarts;     // that it counts
    bool has_costs; // of a job that has completed: it says how long the last loss has held it up
    char loss[COORDINATOR_REASON_BYTES]; // the last one; "": there was none
    bool trained_on;                     // the last loss was that of the coordinator alone
    double away_s; // then: for how long there was none, and the steps that were made meanwhile
    uint64_t steps_meanwhile;
    bool has_gathered;        // all members were ready once
    uint64_t begin_step;      // of the first generation
    uint64_t copied;          // steps of the last copy that is whole, in memory or on the disk
    uint32_t arrivals;        // generations that began because somebody had come
    bool repeats_for_arrival; // one of them made steps again that a copy had

    // Of its checkpoints on the disk.
    bool cannot_write;                     // none can be, as was found before any was begun
    uint64_t written[CLUSTER_WRITTEN_MAX]; // (written_count) steps of those that it counts on
    uint32_t written_count, failed_count;
};

/* Begins a world and starts the job's processes in it: the coordinator and shard 0 on host 1,
 * worker r on host 2 + r, shard k on the host behind the workers. Fails the test if the job makes
 * no sense. */
void cluster_begin(struct cluster *cluster, const struct cluster_shape *shape, uint64_t seed,
                   const struct world_costs *costs);

/* Starts a coordinator where the first one was, which was killed. */
void cluster_return_coordinator(struct cluster *cluster);

/* Starts a worker again, which was killed. */
void cluster_start_worker(struct cluster *cluster, uint32_t rank);

/* Starts another server than the coordinator; again, if it was killed. */
void cluster_start_server(struct cluster *cluster, uint32_t index);

/* A process of the job by number: servers first, then workers. NULL: there are not so many. */
struct sim_process *cluster_process(const struct cluster *cluster, uint32_t number);

/* Which of the starts the process with the number is (common/service/launch_number.h). */
uint32_t cluster_launch(const struct cluster *cluster, uint32_t number);

/* Runs until every process has ended, or is stopped for good. False: some had not by then
 * (virtual nanoseconds). */
bool cluster_run(struct cluster *cluster, uint64_t until_ns);

#endif
