/* What is known of the images of dataset `images` beyond their pixels. */
#ifndef WORKER_DATA_IMAGES_IMAGES_H
#define WORKER_DATA_IMAGES_IMAGES_H

#include "worker/data/dataset.h"

/* An image, and the file that it was decoded from. Zero before it is first used. */
struct images_whole {
    uint8_t *pixels; // (3, size, size), borrowed
    uint8_t *file;   // (file_size), owned by the caller, who frees it; grows as needed
    size_t file_size, file_capacity;
    uint32_t label;
};

/* Of a dataset `images` alone. As dataset_read_bytes; any thread. */
enum status images_read_whole(const struct dataset *dataset, uint64_t index,
                              struct images_whole *whole);

#endif
