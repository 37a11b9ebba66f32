/* What programs hand to cuDNN and cuBLASLt, examined where the libraries would launch it.
 *
 * Everything before the launch is the libraries' own: plans, packs, layouts. Of each launch that
 * follows it is checked that every operand is named, lies where the plan or the algorithm was told
 * that it would, and overlaps no other. */
#ifndef TESTS_WORKER_DEVICE_CUDA_DESCRIBED_LAUNCHES_H
#define TESTS_WORKER_DEVICE_CUDA_DESCRIBED_LAUNCHES_H

#include <stdint.h>

struct launches {
    uint64_t convolutions, products;
    uint64_t statistics; // convolutions that were launched with them
    char defect[512];    // the first that was found; "" if there is none
};

/* Since the last call. */
struct launches launches_take(void);

#endif
