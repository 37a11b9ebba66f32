/* The images in a folder of classes: FOLDER/CLASS/FILE. Classes and files are sorted by the bytes
 * of their names, so that every process numbers them alike.
 *
 * Names that begin with a dot are passed over, and so are files beside the folders of classes.
 * Symbolic links are followed, but not in circles. */
#ifndef WORKER_DATA_IMAGES_IMAGE_LIST_H
#define WORKER_DATA_IMAGES_IMAGE_LIST_H

#include "common/base/status.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define IMAGE_LIST_PATH_BYTES  1280 // so that a line of the log holds it and what is wrong
#define IMAGE_LIST_CLASSES_MAX 65536

// For messages.
#define IMAGE_LIST_ADVICE \
    "--data images:DIR wants DIR/train/CLASS/FILE and DIR/val/CLASS/FILE, or DIR/CLASS/FILE alone"

struct image_file {
    size_t name_at; // in `names`
    uint32_t class;
    bool is_checked;
    atomic_bool is_broken; // it could not be decoded
    uint64_t size;         // in bytes
    int64_t changed_ns;    // its time of modification
    char *why;             // owned: why it cannot be used; NULL: nothing is known against it
};

struct image_list {
    char folder[IMAGE_LIST_PATH_BYTES];
    char **classes; // (class_count), owned, sorted
    uint32_t class_count;
    struct image_file *files; // (count), owned, by class and name
    uint64_t count;
    char *names; // owned: of files, each with its '\0'
    size_t names_size, names_capacity;
};

/* Finds the classes alone. Logs what is wrong, and what to do. */
enum status image_list_open(const char *folder, struct image_list **ret_list);

/* Finds the files of all classes, with their sizes and times, by several threads. Opens none. Logs;
 * where several classes cannot be read, one of them or more. */
enum status image_list_scan(struct image_list *list);
void image_list_close(struct image_list *list); // NULL is fine

/* The path of a file; false if it is too long. */
bool image_list_path(const struct image_list *list, const struct image_file *file,
                     char ret_path[IMAGE_LIST_PATH_BYTES]);

/* The same for messages: cut where it is too long, without what a terminal would obey. */
void image_list_show(const struct image_list *list, const struct image_file *file,
                     char ret_path[IMAGE_LIST_PATH_BYTES]);

/* FOLDER/CLASS likewise; returns ret_path. */
const char *image_list_show_class(const struct image_list *list, uint32_t class,
                                  char ret_path[IMAGE_LIST_PATH_BYTES]);

#endif
