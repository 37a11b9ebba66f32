/* A sample that is mixed of two: its loss is share * (that of its label) + (1 - share) * (that of
 * the other). It counts as correct where its label is found. */
#ifndef WORKER_DEVICE_MIXED_LABEL_H
#define WORKER_DEVICE_MIXED_LABEL_H

#include <stdint.h>

struct mixed_label {
    uint32_t other; // below the channels of the last operation
    float share;    // of the label, from 0 to 1
};

#endif
