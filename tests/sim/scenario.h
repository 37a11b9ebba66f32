/* Scenarios of faults: drawn from a seed, run in a simulated world, judged, and made smaller.
 *
 * A job that may be disturbed promises this, whatever happens when:
 *
 *     it ends         every process that is left ends before its deadlines are over
 *     it is true      "completed" comes with the parameters of the undisturbed job on every worker
 *     it is just      a job without a fault that lasts completes, and a verdict blames nobody who
 *                     had no part in a fault
 *     it is bounded   no worker is further ahead of the slowest than the mode allows
 *     it is one       no worker takes a job for completed that the coordinator takes for failed
 *
 * And with --on-loss redeal:
 *
 *     it goes on      a job that has gathered completes if no fault of the coordinator lasted and
 *                     enough workers (--min-workers) had no fault that lasted, also if other
 *                     servers end or stand still; so does each of those workers
 *     it is frugal    workers that had no such fault are not lost, and a job that completes has
 *                     enough left; who comes makes it repeat no step that it has a copy of
 *     it sees         where members wait for each other in a circle, it finds the two that do not
 *                     reach each other
 *
 * Some jobs write checkpoints, to a disk that may be full, fail or become read-only, and when the
 * job has ended, may lose what was not synced, or be damaged. Then the job is resumed. That
 * promises:
 *
 *     it trains       no disk ends a job that has begun to write, and what it could not write it
 *                     says
 *     it keeps        checkpoints that a job counts on are whole, also when the power is lost
 *     it chooses      a job goes on from the newest one that is whole, says which it passes over,
 *                     and ends with the parameters of the undisturbed job
 *
 * Clocks of processes are apart by seconds from the beginning, and some run ahead suddenly, which
 * is to a process as if it had been stopped for so long. One that is merely slow is lost never.
 *
 * A worker that was stopped or cut off and comes back may have been lost meanwhile. It joins the
 * job again then, or ends with an error. Of two workers that do not reach each other, and both
 * reach the coordinator, one is lost, and no third one; of a worker and a server, the worker. */
#ifndef TESTS_SIM_SCENARIO_H
#define TESTS_SIM_SCENARIO_H

#include "tests/sim/cluster.h"
#include "tests/sim/disk_plan.h"

#include <stdbool.h>
#include <stdint.h>

#define SCENARIO_FAULTS_MAX 4
#define SCENARIO_TEXT_BYTES 1024

#define SCENARIO_LOST_AFTER  2                   // the jobs' --lost-after, in seconds
#define SCENARIO_HARMLESS_NS UINT64_C(500000000) // shorter faults of a member change nothing
#define SCENARIO_FOR_GOOD_NS (1000 * UINT64_C(1000000000)) // how long the longest ones last

enum fault_kind {
    FAULT_KILL,    // a process ends where it stands
    FAULT_STOP,    // a process stands still for a while
    FAULT_CUT,     // two hosts do not reach each other for a while
    FAULT_ONE_WAY, // the second one does not hear the first
    FAULT_JUMP,    // a process's clock jumps ahead, by the duration
    FAULT_SLOW,    // a process takes longer for each message that it receives, for a while
    FAULT_BREAK,   // the connections between two hosts break
    FAULT_KINDS,
};

struct fault {
    enum fault_kind kind;
    uint32_t process, other; // numbers in the cluster; other: of cuts and breaks
    uint64_t time_ns, duration_ns;
    uint64_t receive_ns; // of SLOW: so much longer
};

/* Whether it is about two processes. */
static inline bool fault_has_two(const struct fault *fault)
{
    return fault->kind == FAULT_CUT || fault->kind == FAULT_ONE_WAY || fault->kind == FAULT_BREAK;
}

/* Whether it is there for good, whatever its duration says. */
static inline bool fault_ends_something(const struct fault *fault)
{
    return fault->kind == FAULT_KILL || fault->kind == FAULT_BREAK;
}

struct scenario {
    uint64_t seed; // of the world
    struct cluster_shape shape;
    struct world_costs costs;
    struct fault faults[SCENARIO_FAULTS_MAX];
    uint32_t fault_count;
    struct disk_plan disk; // of a job that writes checkpoints
};

struct scenario scenario_draw(uint64_t seed);

/* How many processes a job has. */
uint32_t scenario_process_count(const struct cluster_shape *shape);

/* Runs it; false: a promise was broken, which ret_text names. */
bool scenario_run(const struct scenario *scenario, char ret_text[SCENARIO_TEXT_BYTES]);

/* Events of the last run. */
uint64_t scenario_events(void);

/* The smallest scenario that was found to break a promise, from one that does. */
struct scenario scenario_shrink(const struct scenario *scenario);

/* One line for a person, and the transcript of its run in the story. */
void scenario_describe(const struct scenario *scenario, char ret_text[SCENARIO_TEXT_BYTES]);

#endif
