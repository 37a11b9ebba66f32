/* Threads that share the cores of their machine, in virtual time.
 *
 * All threads of a machine that have work go on equally fast, as a fair scheduler lets them: with
 * their cores each, or with what is left of these for each (processor sharing; Kleinrock 1967). A
 * thread does its work in the order in which it got it. Computing is slower beside others, by what
 * they take from each other (memory, caches): by nothing where one worker computes, by `crowding`
 * where all cores are busy, and in proportion in between. Where threads that compute are twice as
 * many as cores, it is slower by `turns` besides, as each finds less of its own in the caches; with
 * n on each core by 2 - 2/n of that, as it becomes rarer that one goes on after itself.
 *
 * With `messages_first`, threads that compute have what the others leave, as a scheduler does it
 * for threads that ask for short turns (common/base/slice.h).
 *
 * With `slice_s`, a thread has a core to itself. It keeps the core until it has no more work, or,
 * while others wait, for a slice at most. What follows at once and takes no time, such as
 * forward of the next bucket of a layer, is no turn of its own. Threads that do not compute go
 * before those that do, and with `messages_first` they do not wait for the end of a slice either.
 * Threads of one kind wait in a queue. A free core takes the first thread that waits, whichever
 * core that had before. A thread that computes and gets a core back takes `refill_s` longer if
 * others have had it for a slice or more in between, and in proportion if for less. That takes the
 * place of `turns`.
 *
 * Work is measured in seconds of a core. A thread that stands for several needs as many cores, and
 * knows no slices. */
#ifndef DEPLOY_PREDICT_ENGINE_CORES_H
#define DEPLOY_PREDICT_ENGINE_CORES_H

#include "common/base/status.h"
#include "deploy/predict/basis/network.h"

#include <stdbool.h>
#include <stdint.h>

enum cores_thread {
    CORES_MESSAGES, // takes, adds up and sends
    CORES_COMPUTE,  // of a worker: as many as it computes with
    CORES_OUT,      // of the library and the kernel: carries messages away,
    CORES_IN,       // and takes them in
    CORES_INPUT,    // reads batches
    CORES_THREADS,
};

struct cores_share {
    uint32_t compute_threads; // 0 stands for 1
    double crowding, turns;   // how many times as long computing takes; 0 for 1
    bool messages_first;      // threads that do not compute go before those that do
    double slice_s;           // 0: all threads with work go on at once
    double refill_s;          // of the caches, where a core comes back behind others
};

#define CORES_NOBODY UINT32_MAX

/* Work that is done. */
struct cores_work {
    uint32_t process;
    enum cores_thread thread;
    uint32_t kind, token; // the caller's
};

struct cores;

/* hosts: of each process. The network says how many cores each has. */
enum status cores_create(const struct network *network, const uint32_t *hosts, uint32_t processes,
                         const struct cores_share *share, struct cores **ret_cores);
void cores_destroy(struct cores *cores); // NULL is fine

/* Whether the host of a process has a number of cores; otherwise no work can be added. */
bool cores_are_limited(const struct cores *cores, uint32_t process);

/* Gives a thread work, behind what it has. False if there is no memory. */
bool cores_add(struct cores *cores, double now, const struct cores_work *work, double seconds);

/* Whether a thread has nothing to do. */
bool cores_is_idle(const struct cores *cores, uint32_t process, enum cores_thread thread);

/* When the next work or slice is over, as things are; DBL_MAX: there is none. Ask when there is
 * nothing else to do at that time: threads that have got no more work lose their cores. */
double cores_next_end(struct cores *cores);

/* Ends that, at its time. There has to be some. If it was a slice, the process is CORES_NOBODY. */
struct cores_work cores_end_next(struct cores *cores, double now);

/* Of what grows with work that waits. */
double cores_bytes(const struct cores *cores);

#endif
