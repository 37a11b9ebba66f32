/* Finds images that cannot be used, by looking at the beginning and the end of each file: what is
 * no JPEG or PNG, what is of a kind that cannot be decoded, and what was cut short. What is broken
 * in its middle shows only when it is decoded. */
#ifndef WORKER_DATA_IMAGES_IMAGE_CHECK_H
#define WORKER_DATA_IMAGES_IMAGE_CHECK_H

#include "common/base/status.h"
#include "worker/data/images/image_list.h"

#include <stddef.h>
#include <stdint.h>

/* Looks at the beginning and the end of a file that is open, of `size` bytes. STATUS_MALFORMED,
 * with the reason in ret_why: it cannot be used. */
enum status image_check_file(int descriptor, uint64_t size, char *ret_why, size_t why_size);

/* Looks at all files of a list that are not checked yet, in several threads. Writes how many those
 * were. */
enum status image_check_list(struct image_list *list, uint64_t *ret_count);

#endif
