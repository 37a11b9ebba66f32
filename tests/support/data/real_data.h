/* Real images for tests: the folder $RINGSIDE_DATA, which has cifar10/ and fashion-mnist/. */
#ifndef TESTS_SUPPORT_DATA_REAL_DATA_H
#define TESTS_SUPPORT_DATA_REAL_DATA_H

#include "worker/data/dataset.h"

/* Opens "NAME:$RINGSIDE_DATA/NAME". Skips the test, with a line that says so, where the variable is
 * not set. */
struct dataset *real_data_open(const char *name, enum dataset_split split);

/* Checks how many samples there are, that the classes are of one size, and that each channel has a
 * mean of 0 and a deviation of 1, to 0.01. */
void real_data_check(const struct dataset *dataset, uint64_t sample_count);

#endif
