/* Datasets that must not open. */
#ifndef TESTS_SUPPORT_DATA_REFUSAL_H
#define TESTS_SUPPORT_DATA_REFUSAL_H

#include "worker/data/dataset.h"

/* Opens NAME:FOLDER, which must fail with the status and a single line of log that contains the
 * three texts (NULL: any). */
void refusal_check(const char *name, const char *folder, enum dataset_split split,
                   enum status expected, const char *const texts[3]);

#endif
