/* Keeps the bytes of decoded images, for all processes of a host: none decodes what another one
 * has, and none decodes twice.
 *
 * They lie in a file, in memory (/dev/shm) or in the user's folder of caches. An image has a place
 * of its own there, which is empty until somebody has decoded it, and its bytes have a checksum. So
 * nobody waits for anybody: a place that is empty, or half written by a process that was killed, or
 * is just being written, is an image that has to be decoded. The file's name stands for the images
 * (names, sizes and times), and for how the first of them are decoded.
 *
 * Where the budget is too small for all, every process writes the same images, spread over the
 * list, and the others are decoded each time; parts of images are, too. The file in memory goes
 * with the last process that has it open; where all were killed, the next job that keeps images in
 * memory removes it. */
#ifndef WORKER_DATA_CACHED_H
#define WORKER_DATA_CACHED_H

#include "common/base/status.h"
#include "worker/data/dataset.h"

#include <stdbool.h>
#include <stdint.h>

enum cached_place { CACHED_NOWHERE, CACHED_IN_MEMORY, CACHED_ON_DISK };

struct cached_options {
    enum cached_place place;
    uint64_t budget;  // bytes, of all processes of the host; 0: half of what is free there
    uint64_t samples; // the first so many are read, and the others need no room; 0: all
    const struct dataset *before; // which has the room first, and leaves the rest; NULL: none
    bool tells;                   // what does not fit is logged,
    bool is_test;                 // as of test images, not of training images
    const char *folder;           // where the file lies; NULL: the usual place
};

/* Takes over `inner` (on failure, too). Where nothing can be kept, because images are not slow to
 * read, or changed a moment ago, or there is no place, it says so, and returns the inner one. */
enum status dataset_cache(struct dataset *inner, const struct cached_options *options,
                          struct dataset **ret_dataset);

struct cached_counts {
    uint64_t found, kept, missed; // images: from the file; decoded and kept; that did not fit
    uint64_t budget, taken;       // bytes, of all processes: that there may be; that there will be
};

/* Of the dataset, or of the one that it wraps. False if neither keeps any. */
bool dataset_cache_counts(const struct dataset *dataset, struct cached_counts *ret_counts);

#endif
