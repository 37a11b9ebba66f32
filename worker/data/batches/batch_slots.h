/* Memory for batches that are read ahead: one allocation, cut into slots. */
#ifndef WORKER_DATA_BATCHES_BATCH_SLOTS_H
#define WORKER_DATA_BATCHES_BATCH_SLOTS_H

#include "common/base/status.h"
#include "worker/device/device.h"

#include <stdbool.h>
#include <stdint.h>

struct batch_position {
    uint64_t epoch, step;
};

/* Room for a batch, and what is known of the one that lies there. */
struct batch_slot {
    void *pixels; // (batch_size, C, H, W), floats or bytes
    uint32_t *labels;
    struct mixed_label *mixed;
    uint32_t *indices;
    uint64_t *sample_keys;
    uint32_t count;
    struct batch_position position;
    uint32_t pending;  // samples that are not read yet
    uint64_t began_ns; // with a trace
};

struct batch_slots {
    struct batch_slot *list; // (count), owned, views into the memory
    uint32_t count;
    void *memory; // owned: pixels of all slots, keys, mixed, labels, indices
    uint64_t memory_bytes;
    struct device *device; // that has locked it, borrowed; NULL: none has
};

/* Slots of batch_size samples. A device that copies from them locks their memory; NULL: none does.
 * Finish them in any case. Each begins at a multiple of MEMORY_ALIGNMENT. */
enum status batch_slots_init(struct batch_slots *slots, uint32_t count, uint32_t batch_size,
                             uint64_t sample_bytes, struct device *device);
void batch_slots_finish(struct batch_slots *slots); // zeroed is fine

#endif
