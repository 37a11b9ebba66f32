/* A dataset in memory whose samples say which they are, and batchers of it. */
#ifndef TESTS_SUPPORT_DATA_NUMBERED_H
#define TESTS_SUPPORT_DATA_NUMBERED_H

#include "worker/data/batches/batcher.h"

#include <semaphore.h>
#include <stdatomic.h>
#include <stdint.h>

#define NUMBERED_SAMPLES 50
#define NUMBERED_PIXELS  6
#define NUMBERED_CLASSES 7
#define NUMBERED_SEED    11 // of batches

struct numbered_reads {
    atomic_uint count;
    uint32_t gate_at;    // this one waits at the gate; UINT32_MAX: none does
    atomic_uint broken;  // the number from 1 of the sample that cannot be read; 0: all can
    sem_t arrived, gate; // the loader is there; it may go on
};

struct numbered {
    struct dataset dataset;
    struct numbered_reads *reads; // borrowed: what a real dataset would not change
};

void numbered_init(struct numbered *numbered, struct numbered_reads *reads);

/* Options of the batches that a rank trains on, `depth` of them read ahead. */
struct batcher_options numbered_training(uint32_t global_batch, uint32_t world, uint32_t rank,
                                         uint32_t depth);

struct batcher *numbered_batcher(struct batcher_options options, const struct numbered *numbered);

/* The next batch, which there must be. */
struct batch numbered_next(struct batcher *batcher);

/* Checks that a sample of a batch is whole; returns which it is. */
uint32_t numbered_check_sample(const struct batch *batch, uint32_t i);

void numbered_check_equal(const struct batch *a, const struct batch *b, uint32_t batch_size);

#endif
