/* Batches for one worker, read ahead by threads (loaders.h).
 *
 * Training: every epoch has one permutation of the samples, drawn from (seed, epoch). Step s of the
 * epoch takes samples s*G ... s*G+G-1 of it (G the global batch), and the worker `rank` the part
 * `rank` of `world` of those (span_part). What is left after the last whole global batch is not
 * used in this epoch. So N workers together see what one would, in the same steps. With is_local
 * each worker permutes and keeps to its own fixed part of the samples instead.
 *
 * Training images are changed as the augmentation says, by keys of (seed, epoch, sample). With
 * mixup each is mixed with another of the samples that this worker may take, as that one is in this
 * epoch; the label with the larger share is the one in `labels`.
 *
 * Evaluation: batches of the part `rank` of `world` of all samples in their order, once; the last
 * batch is padded, and says so. */
#ifndef WORKER_DATA_BATCHES_BATCHER_H
#define WORKER_DATA_BATCHES_BATCHER_H

#include "common/base/status.h"
#include "common/plan/augmentation.h"
#include "common/trace/trace.h"
#include "common/vector/layout.h"
#include "worker/data/dataset.h"
#include "worker/device/device.h"

#include <stdbool.h>
#include <stdint.h>

struct batcher;
struct loaders;

/* Valid until the next batcher_next. */
struct batch {
    const float *pixels;             // (batch_size, C, H, W); NULL where it has bytes
    const uint8_t *bytes;            // (batch_size, C, H, W) as stored; NULL where it has pixels
    const uint32_t *labels;          // (batch_size)
    const struct mixed_label *mixed; // (batch_size); NULL: no sample is mixed of two
    const uint64_t *sample_keys;     // (batch_size) as program_input wants them:
                                     // random_key(seed, RANDOM_DROPOUT, epoch, sample index)
    uint32_t count;                  // samples that count; the rest is padding (a copy of sample 0)
    uint64_t epoch;
};

struct batcher_options {
    uint32_t batch_size;   // at least the worker's part of the global batch; the rest is padding
    uint32_t global_batch; // training only
    uint32_t rank, world;
    uint64_t seed;
    uint64_t sample_count; // the first so many of the dataset; 0: all
    bool is_local;         // training only
    bool is_training;
    bool reads_bytes;                 // of a dataset that stores them: see dataset_describe
    struct augmentation augmentation; // training only, of a dataset that stores bytes
    uint32_t depth;                   // batches read ahead, at least 1
    struct loaders *loaders;          // that read, borrowed; NULL: a thread of its own
    struct trace_tape *trace;         // of those who read; borrowed; NULL: none
    struct device *device; // that batches are copied to, borrowed; NULL: nobody says which
};

/* Borrows dataset. Reading begins (not if depth is 0: then batcher_next reads itself). */
enum status batcher_create(const struct batcher_options *options, const struct dataset *dataset,
                           struct batcher **ret_batcher);
void batcher_destroy(struct batcher *batcher); // NULL is fine; ends the reading

/* The samples that it takes: in training all, or with is_local its own. */
struct span batcher_part(const struct batcher *batcher);

/* The next batch; training goes on for ever, from epoch 0, step 0. Evaluation: STATUS_END_OF_DATA
 * after the last one. Where a sample of the batch cannot be read: its status, until a seek. */
enum status batcher_next(struct batcher *batcher, struct batch *ret_batch);

/* Training: go on at this step of this epoch (resume). Evaluation: start again from the first. */
enum status batcher_seek(struct batcher *batcher, uint64_t epoch, uint64_t step);

#endif
