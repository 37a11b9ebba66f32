/* Runs the programs of a job in one process, in virtual time.
 *
 * The code under test is the product's own, loops and threads included: the coordinator's loop, the
 * shards' threads, the workers' communication threads, the exchange. Each of their threads is a
 * fiber, and one fiber runs at a time, until it waits. What they ask of the system is answered from
 * here: pthreads (threads.c), the clock and the presence of processes (system.c), and messages
 * (transport_sim.c over network.c). Time passes only while every fiber waits: then it jumps to the
 * next event. So an hour of a job takes as long as its events take to be computed.
 *
 * All that is left to chance comes from one seed: which of several fibers goes on, how long a
 * message travels, whether a receiver lets others run first. The same seed repeats a run, event by
 * event.
 *
 * A host is a number; a process belongs to a host. A process can be killed (its fibers end where
 * they stand, its connections close), stopped and continued. */
#ifndef TESTS_SIM_WORLD_H
#define TESTS_SIM_WORLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WORLD_NEVER         UINT64_MAX
#define WORLD_NAME_BYTES    24
#define WORLD_PROCESSES_MAX 64

struct fiber;
struct network;

enum process_state { PROCESS_RUNS, PROCESS_STOPPED, PROCESS_ENDED };

struct sim_process {
    char name[WORLD_NAME_BYTES]; // "worker 1"
    uint32_t host, id;           // id: from 1, never given twice
    enum process_state state;
    struct fiber *fibers; // all it has had
    int exit_status;      // of its first fiber, once that has ended
    bool is_killed, is_stopped_for_good;
    uint64_t clock_ns;   // that its clock is ahead of the world's
    uint64_t receive_ns; // that it takes for a message, besides what all take
};

/* What one world costs and hides. Times in nanoseconds. */
struct world_costs {
    uint64_t latency_ns, jitter_ns; // of a message between hosts: at least, and up to so much more
    uint64_t pair_ns;               // between two hosts always: up to so much more
    uint64_t near_ns;               // of a message within a host
    double bytes_per_ns;            // of a connection; 0: without limit
    uint64_t receive_ns;            // of taking one message
};

/* Ends the world that is there, if there is one, and begins another at time 0. */
void world_begin(uint64_t seed, const struct world_costs *costs);
void world_end(void);

const struct world_costs *world_costs(void);

/* For how long a message from one host to another, or within one, travels at least. */
uint64_t world_latency_ns(uint32_t from, uint32_t to);

struct network *world_network(void);

/* Nanoseconds since the world began. */
uint64_t world_now_ns(void);

/* Events so far: switches of fibers, and what was due at a time. */
uint64_t world_event_count(void);

/* A number below `bound`, which is not 0, from the world's seed. */
uint64_t world_draw(uint64_t bound);

/* Starts a process whose first fiber runs main(data); its result is the exit status. */
struct sim_process *world_start(const char *name, uint32_t host, int (*main)(void *data),
                                void *data);
struct sim_process *world_find(uint32_t process_id); // NULL: there was none

void world_kill(struct sim_process *process);
void world_stop(struct sim_process *process, bool for_good);
void world_continue(struct sim_process *process);

/* Calls act(data) at that time, outside of any process. */
void world_at(uint64_t time_ns, void (*act)(void *data), void *data);

/* Lets time pass until `is_over` says so, nothing is left to happen, or the time is reached. False
 * in the last two cases. */
bool world_run(bool (*is_over)(void *data), void *data, uint64_t until_ns);

/* What follows is for the process that runs. */
struct sim_process *world_current(void); // NULL outside of any

/* Outside of any process: what is called from now on is done for this one, as by a thread of a
 * library. Returns for whom it was before. */
struct sim_process *world_act_as(struct sim_process *process);

/* Waits for world_wake(what), or the time. False: the time came. */
bool world_wait(const void *what, uint64_t until_ns);

/* Ends the waits of the process's fibers for `what`: all of them, or one. */
void world_wake(const struct sim_process *process, const void *what, bool all);

/* Lets others run first. */
void world_yield(void);

/* Is busy for so long. */
void world_spend(uint64_t time_ns);

/* Memory for twice as many items, or for some; *size is their number. */
void *world_grow(void *memory, uint32_t *size, size_t item_bytes);

/* A fiber of the current process, as pthread_create starts a thread, and its end. */
struct fiber *world_start_fiber(void *(*run)(void *data), void *data);
void *world_join_fiber(struct fiber *fiber);

#endif
