/* The algorithms of the all-reduce that `ring` mode runs, and the choice between them. Those of
 * ours add up chunk c of N in the order of ranks c, c+1, ..., so they end with the same bits.
 * NCCL's order is its own. Pure. */
#ifndef COMMON_JOB_ALL_REDUCE_H
#define COMMON_JOB_ALL_REDUCE_H

#include <stdbool.h>
#include <stdint.h>

#define ALL_REDUCE_SHARED_MAX 128 // workers
#define ALL_REDUCE_DIRECT_MAX 64  // workers that all connect to all, unless that was asked for

enum all_reduce {
    ALL_REDUCE_RING,    // by messages: to the next worker, 2(N-1) times
    ALL_REDUCE_DIRECT,  // by messages: to the worker that adds up this part, and back from it
    ALL_REDUCE_SHARED,  // in each other's memory: all workers on one host
    ALL_REDUCE_HALVING, // by messages: halving and doubling, see halving_plan.h
    ALL_REDUCE_NCCL,    // among GPUs, by NVIDIA's library: no worker connects to another
    ALL_REDUCE_COUNT,
};

/* What --all-reduce asks for. */
enum all_reduce_choice {
    ALL_REDUCE_CHOICE_AUTO,
    ALL_REDUCE_CHOICE_RING,
    ALL_REDUCE_CHOICE_DIRECT,
    ALL_REDUCE_CHOICE_HALVING,
    ALL_REDUCE_CHOICE_NCCL,
};

/* "ring", "direct", "direct in shared memory", "halving-doubling", "nccl" */
const char *all_reduce_name(enum all_reduce algorithm);

/* Whether what --all-reduce asks for leaves the host's memory alone, also where it could be shared.
 */
bool all_reduce_shuns_memory(enum all_reduce_choice choice);

/* Whether a worker connects to the one that is `offset` ranks ahead of it, modulo the workers.
 * Always to the next one, which is what large buckets go to; but to none where a library connects
 * them. */
bool all_reduce_meets(enum all_reduce algorithm, uint32_t workers, uint32_t offset);

/* By messages: which buckets take which algorithm. */
struct all_reduce_limits {
    uint64_t halving_floats_max; // buckets of so many floats by halving and doubling;
    uint64_t direct_floats_max;  // larger ones up to so many directly; and above round the ring
};

/* Which a bucket takes. */
enum all_reduce all_reduce_of_bucket(const struct all_reduce_limits *limits, uint64_t floats);

/* Of the algorithms that buckets may take, the one that has a worker connect to most others. */
enum all_reduce all_reduce_widest(const struct all_reduce_limits *limits);

/* The path between two workers, as measured. */
struct all_reduce_path {
    uint64_t latency_ns; // of a message, one way
    uint64_t message_ns; // of each further one: to send it, and to receive one, meanwhile
    uint64_t bandwidth;  // bytes per second
};

/* What a step adds up, and among whom. */
struct all_reduce_load {
    uint32_t workers;
    uint32_t buckets;
    uint64_t floats; // of all buckets
    bool may_meet;   // all workers may connect to all, as direct needs
    bool may_halve;  // halving and doubling are possible
};

/* Chooses the algorithm by which all buckets of a step take the least time. If a step used several
 * algorithms, their flows would share links and delay each other. An all-reduce of S
 * bytes by messages is reckoned to take L for each message that is waited for after another one, g
 * for each that a worker sends and receives beside those, and the time for what goes out of each
 * worker (the model of latency, gap and bandwidth of Culler et al. 1993, LogP, and of Alexandrov et
 * al. 1995, LogGP). Messages beside those that are waited for, and bytes, are on their way
 * together, so the longer of the two counts. With K and P(N) as in halving_plan.h:
 *
 *     ring                2(N-1) L     + 2(N-1)/N S/B
 *     direct              2 L          + the longer of 2(N-2) g and 2(N-1)/N S/B
 *     halving-doubling    2K L         + (P(N)+N-1)/N S/B
 *
 * That is the last bucket of a step, which nothing hides. Those before it are on their way
 * together. Their waits overlap, but a worker handles one message at a time, and its link carries
 * one byte after the other. So each of them adds its bytes, as above, or its messages, if these
 * take longer: 2(N-1) g by ring and directly, 2K g by halving-doubling.
 *
 * Buckets are taken for equally large. Additions and copies are left out, and so is what backward
 * hides, which nobody knows before the job begins. Ring and direct differ in the last bucket alone:
 * of that, direct has to save a tenth. So has halving-doubling of a step by rings: in a ring no
 * worker has more than one sender, and none sends more. */
enum all_reduce all_reduce_choose(const struct all_reduce_load *load,
                                  const struct all_reduce_path *path);

#endif
