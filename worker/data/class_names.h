/* Names of classes, as job.json has them. */
#ifndef WORKER_DATA_CLASS_NAMES_H
#define WORKER_DATA_CLASS_NAMES_H

#include <stdint.h>

#define CLASS_NAME_BYTES 1280 // of one, terminator included

/* A list in JSON, in the order of labels. What a terminal would not show in a name is a question
 * mark. The caller frees it; NULL: no memory. */
char *class_names_list(char *const *names, uint32_t count);

#endif
