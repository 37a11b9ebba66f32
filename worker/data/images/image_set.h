/* The images of one split of a folder in ImageNet's layout, in their order, and their labels.
 *
 * Labels are the places of classes in the sorted list of train/, whichever split is opened. DIR
 * without train/ and val/ has one folder for each class: of each class, a tenth of the images (at
 * least one, if it has two) is drawn from the seed for validation. */
#ifndef WORKER_DATA_IMAGES_IMAGE_SET_H
#define WORKER_DATA_IMAGES_IMAGE_SET_H

#include "common/base/status.h"
#include "worker/data/dataset.h"
#include "worker/data/images/image_list.h"

#include <stdint.h>

struct image_set {
    struct image_list *list;  // owned: the files, good and bad, of this split or of both
    struct image_list *train; // owned where it is another one, whose classes make the labels
    uint32_t *order;          // (count), owned: places in the list
    uint64_t count;
    uint32_t *labels; // (classes of the list), owned
    char *class_text; // owned: the names of classes by label, a list in JSON; NULL: too long
    uint64_t digest;  // of the names of classes and files, and of sizes
    uint64_t stamp;   // and of times; 0: a file is so new that its time does not show a change
};

/* Finds the images, checks those that are new, and leaves out bad ones or refuses them. Logs. */
enum status image_set_open(const char *folder, const struct dataset_options *options,
                           struct image_set *ret_set);
void image_set_close(struct image_set *set); // zeros are fine

/* The names of the classes, by label. */
const struct image_list *image_set_classes(const struct image_set *set);

#endif
