/* Reads single samples of a dataset as a batch has them: as floats or as bytes, and, for training,
 * changed by an augmentation. Which change a sample gets follows from (seed, epoch, sample). */
#ifndef WORKER_DATA_BATCHES_SAMPLE_READER_H
#define WORKER_DATA_BATCHES_SAMPLE_READER_H

#include "common/base/status.h"
#include "common/vector/layout.h"
#include "worker/data/augment/augment.h"
#include "worker/data/batches/batcher.h"
#include "worker/data/dataset.h"
#include "worker/data/idle_list.h"

#include <stdbool.h>
#include <stdint.h>

struct sample_reader {
    const struct dataset *dataset; // borrowed
    struct augmentation augmentation;
    uint64_t seed;
    struct span partners; // samples that may be mixed into others
    bool reads_bytes, augments;
    bool crops_part;            // the dataset reads parts of images; otherwise they are cut here
    uint64_t sample_bytes;      // of what is read
    uint64_t stored_bytes;      // of an image as it is stored; 0: nothing changes it
    size_t crop_bytes;          // of scratch to crop one; 0: none is cropped here
    struct augment_image image; // as stored
    struct idle_list rooms;     // of threads that change images
};

/* What a thread needs while it reads; NULL where it needs nothing. */
struct sample_room;

/* Borrows the dataset. Logs what cannot be augmented: STATUS_INVALID. Finish it in any case. */
enum status sample_reader_init(struct sample_reader *reader, const struct batcher_options *options,
                               const struct dataset *dataset, struct span partners);
void sample_reader_finish(struct sample_reader *reader); // zeroed is fine

/* Any thread; end it with the room that it got. STATUS_NO_MEMORY: there is none. */
enum status sample_reader_begin(struct sample_reader *reader, struct sample_room **ret_room);
void sample_reader_end(struct sample_reader *reader, struct sample_room *room);

/* Whether samples are mixed of two. */
bool sample_reader_mixes(const struct sample_reader *reader);

/* Where a sample goes. */
struct sample_target {
    void *pixels; // (sample_bytes)
    uint32_t *label;
    struct mixed_label *mixed; // written where samples are mixed
};

/* Any thread. */
enum status sample_reader_read(const struct sample_reader *reader, struct sample_room *room,
                               uint64_t epoch, uint32_t index, const struct sample_target *target);

#endif
