/* Decides on the layout, on bad images, and on which images a split has. */
#include "worker/data/images/image_set.h"

#include "common/base/log.h"
#include "common/vector/layout.h"
#include "worker/data/class_names.h"
#include "worker/data/images/image_cache.h"
#include "worker/data/images/image_check.h"
#include "worker/data/validation.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#define PATH_BYTES IMAGE_LIST_PATH_BYTES
#define NAMED_MAX  5 // bad images that are named
#define FRESH_S    2 // a file that was changed since may be changed without a sign

/* ---- bad images ---- */

static enum status check_files(struct image_list *list)
{
    uint64_t looked_at;
    struct image_cache *cache = image_cache_open(list->folder);
    if (cache != NULL) {
        image_cache_read(cache, list);
    }
    enum status status = image_check_list(list, &looked_at);
    if (status == STATUS_OK && cache != NULL && looked_at > 0) {
        struct timespec now;
        clock_gettime(CLOCK_REALTIME, &now);
        image_cache_write(cache, list, (int64_t)now.tv_sec * 1000000000 + now.tv_nsec);
    }
    image_cache_close(cache);
    return status;
}

static enum status refuse_bad(const struct image_list *list, const struct image_file *first,
                              uint64_t count)
{
    char shown[PATH_BYTES];
    image_list_show(list, first, shown);
    log_error("%s cannot be used: %s (%llu of %llu images in %s cannot): mend or remove them, or "
              "give --bad-images skip",
              shown, first->why, (unsigned long long)count, (unsigned long long)list->count,
              list->folder);
    return STATUS_MALFORMED;
}

static void tell_skipped(const struct image_list *list, const struct image_file *file,
                         uint64_t before)
{
    char shown[PATH_BYTES];
    if (before < NAMED_MAX) {
        image_list_show(list, file, shown);
        log_warn("%s is skipped: %s", shown, file->why);
    }
}

/* Names what is bad, and refuses it unless it is to be skipped. */
static enum status judge_files(const struct image_list *list, bool skips, bool tells)
{
    const struct image_file *first = NULL;
    uint64_t count = 0;
    for (uint64_t i = 0; i < list->count; i++) {
        const struct image_file *file = &list->files[i];
        if (file->why == NULL) {
            continue;
        }
        if (skips && tells) {
            tell_skipped(list, file, count);
        }
        first = first != NULL ? first : file;
        count++;
    }
    if (count > 0 && !skips) {
        return refuse_bad(list, first, count);
    }
    if (count > 0 && tells) {
        log_warn("%llu of %llu images in %s are skipped (--bad-images)", (unsigned long long)count,
                 (unsigned long long)list->count, list->folder);
    }
    return STATUS_OK;
}

/* ---- which images ---- */

/* Marks what is held back of each class; `places` is scratch for as many as there are files. */
static void split_classes(const struct image_list *list, uint64_t seed, uint32_t *places,
                          bool *held_back)
{
    uint64_t at = 0;
    for (uint32_t class = 0; class < list->class_count; class ++) {
        uint64_t count = 0;
        for (; at < list->count && list->files[at].class == class; at++) {
            if (list->files[at].why == NULL) {
                places[count++] = (uint32_t)at;
            }
        }
        validation_draw(seed, class, places, count, held_back);
    }
}

/* Fills order and count with the good images that are held back, or with those that are not. */
static void take_images(struct image_set *set, const bool *held_back, bool wanted)
{
    const struct image_list *list = set->list;
    set->count = 0;
    for (uint64_t i = 0; i < list->count; i++) {
        if (list->files[i].why == NULL && held_back[i] == wanted) {
            set->order[set->count++] = (uint32_t)i;
        }
    }
}

static enum status choose_images(struct image_set *set, bool is_flat,
                                 const struct dataset_options *options)
{
    const struct image_list *list = set->list;
    bool is_training = options->split == DATASET_TRAIN;
    bool *held_back = calloc(list->count, sizeof(*held_back));
    set->order = calloc(list->count, sizeof(*set->order));
    if (held_back == NULL || set->order == NULL) {
        free(held_back);
        return STATUS_NO_MEMORY;
    }
    if (is_flat) {
        split_classes(list, options->seed, set->order, held_back);
    }
    take_images(set, held_back, is_flat && !is_training);
    free(held_back);
    if (set->count == 0) {
        log_error("%s has no images for %s that can be used", list->folder,
                  is_training ? "training" : "validation");
        return STATUS_INVALID;
    }
    return STATUS_OK;
}

static uint64_t count_good(const struct image_list *list)
{
    uint64_t count = 0;
    for (uint64_t i = 0; i < list->count; i++) {
        count += list->files[i].why == NULL;
    }
    return count;
}

/* Says how many images there are; and, once, how a flat folder was split, which nobody asked for.
 */
static void tell(const struct image_set *set, bool is_flat, const struct dataset_options *options)
{
    bool is_training = options->split == DATASET_TRAIN;
    if (is_flat && is_training) {
        log_warn("%s has no train/ and val/: one image in ten of each of its %u classes is for "
                 "validation, drawn from --seed: %llu of them, and %llu for training",
                 set->list->folder, set->list->class_count,
                 (unsigned long long)(count_good(set->list) - set->count),
                 (unsigned long long)set->count);
    } else if (!is_flat) {
        log_info("%s: %llu images for %s, of %u classes", set->list->folder,
                 (unsigned long long)set->count, is_training ? "training" : "validation",
                 image_set_classes(set)->class_count);
    }
}

/* ---- labels ---- */

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static enum status find_labels(struct image_set *set)
{
    const struct image_list *list = set->list, *classes = image_set_classes(set);
    if (classes->class_count == 1) {
        char shown[PATH_BYTES];
        log_error("%s is the only class, and there have to be two; " IMAGE_LIST_ADVICE,
                  image_list_show_class(classes, 0, shown));
        return STATUS_INVALID;
    }
    set->labels = calloc(list->class_count, sizeof(*set->labels));
    if (set->labels == NULL) {
        return STATUS_NO_MEMORY;
    }
    for (uint32_t i = 0; i < list->class_count; i++) {
        char **found = bsearch(&list->classes[i], classes->classes, classes->class_count,
                               sizeof(char *), compare_names);
        if (found == NULL) {
            char shown[PATH_BYTES];
            log_error("the class %s is not in %s, and cannot be learned: add it there, or remove "
                      "the folder",
                      image_list_show_class(list, i, shown), classes->folder);
            return STATUS_INVALID;
        }
        set->labels[i] = (uint32_t)(found - classes->classes);
    }
    return STATUS_OK;
}

/* Every class needs images to train; which a class without files was refused for before. */
static enum status check_each_class(const struct image_set *set)
{
    uint64_t at = 0;
    for (uint32_t class = 0; class < set->list->class_count; class ++) {
        uint64_t begin = at;
        while (at < set->count && set->list->files[set->order[at]].class == class) {
            at++;
        }
        if (at == begin) {
            char shown[PATH_BYTES];
            log_error("the class %s has no image that can be used: remove the folder, or mend them",
                      image_list_show_class(set->list, class, shown));
            return STATUS_INVALID;
        }
    }
    return STATUS_OK;
}

static enum status list_classes(struct image_set *set, const struct dataset_options *options)
{
    const struct image_list *classes = image_set_classes(set);
    char *text = class_names_list(classes->classes, classes->class_count);
    if (text == NULL) {
        return STATUS_NO_MEMORY;
    }
    if (strlen(text) <= DATASET_CLASS_TEXT_BYTES) {
        set->class_text = text;
        return STATUS_OK;
    }
    free(text);
    if (options->tells && options->split == DATASET_TRAIN) {
        log_warn("job.json has no names of classes: those of %s take more than %zu MiB together",
                 classes->folder, DATASET_CLASS_TEXT_BYTES >> 20);
    }
    return STATUS_OK;
}

/* ---- opening ---- */

static uint64_t digest_of(const struct image_set *set)
{
    const struct image_list *classes = image_set_classes(set);
    uint64_t digest = LAYOUT_DIGEST_SEED;
    for (uint32_t i = 0; i < classes->class_count; i++) {
        digest = layout_digest_add(digest, classes->classes[i], strlen(classes->classes[i]) + 1);
    }
    for (uint64_t i = 0; i < set->count; i++) {
        const struct image_file *file = &set->list->files[set->order[i]];
        const char *name = set->list->names + file->name_at;
        digest = layout_digest_add(digest, name, strlen(name) + 1);
        digest = layout_digest_add(digest, &file->size, sizeof(file->size));
    }
    return digest;
}

static uint64_t stamp_of(const struct image_set *set)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    int64_t fresh_ns = ((int64_t)now.tv_sec - FRESH_S) * 1000000000;
    uint64_t stamp = set->digest;
    for (uint64_t i = 0; i < set->count; i++) {
        const struct image_file *file = &set->list->files[set->order[i]];
        if (file->changed_ns >= fresh_ns) {
            return 0;
        }
        stamp = layout_digest_add(stamp, &file->changed_ns, sizeof(file->changed_ns));
    }
    return stamp;
}

static bool is_folder(const char *folder, const char *name)
{
    char path[PATH_BYTES];
    struct stat facts;
    snprintf(path, sizeof(path), "%.1200s/%s", folder, name);
    return stat(path, &facts) == 0 && S_ISDIR(facts.st_mode);
}

/* Opens the lists that a split needs: of classes, and of files. */
static enum status open_lists(const char *folder, bool is_flat, enum dataset_split split,
                              struct image_set *set)
{
    char path[PATH_BYTES];
    if (is_flat) {
        return image_list_open(folder, &set->list);
    }
    snprintf(path, sizeof(path), "%.1200s/train", folder);
    enum status status = image_list_open(path, split == DATASET_TRAIN ? &set->list : &set->train);
    if (status != STATUS_OK || split == DATASET_TRAIN) {
        return status;
    }
    snprintf(path, sizeof(path), "%.1200s/val", folder);
    return image_list_open(path, &set->list);
}

static enum status fill_set(struct image_set *set, bool is_flat,
                            const struct dataset_options *options)
{
    enum status status = find_labels(set);
    if (status != STATUS_OK) {
        return status;
    }
    status = image_list_scan(set->list);
    if (status != STATUS_OK) {
        return status;
    }
    status = check_files(set->list);
    if (status != STATUS_OK) {
        return status;
    }
    // Both splits of a flat folder have the same files.
    bool tells = options->tells && !(is_flat && options->split == DATASET_TEST);
    status = judge_files(set->list, options->skips_bad, tells);
    if (status != STATUS_OK) {
        return status;
    }
    status = choose_images(set, is_flat, options);
    if (status != STATUS_OK || options->split != DATASET_TRAIN) {
        return status;
    }
    return check_each_class(set);
}

enum status image_set_open(const char *folder, const struct dataset_options *options,
                           struct image_set *ret_set)
{
    struct image_set set = {0};
    bool has_train = is_folder(folder, "train"), has_val = is_folder(folder, "val");
    if (has_train != has_val) {
        log_error("%s has the folder %s, but not %s; " IMAGE_LIST_ADVICE, folder,
                  has_train ? "train" : "val", has_train ? "val" : "train");
        return STATUS_INVALID;
    }
    bool is_flat = !has_train;
    enum status status = open_lists(folder, is_flat, options->split, &set);
    if (status == STATUS_OK) {
        status = fill_set(&set, is_flat, options);
    }
    if (status == STATUS_OK) {
        status = list_classes(&set, options);
    }
    if (status != STATUS_OK) {
        image_set_close(&set);
        return status;
    }
    set.digest = digest_of(&set);
    set.stamp = stamp_of(&set);
    if (options->tells) {
        tell(&set, is_flat, options);
    }
    *ret_set = set;
    return STATUS_OK;
}

void image_set_close(struct image_set *set)
{
    image_list_close(set->list);
    image_list_close(set->train);
    free(set->order);
    free(set->labels);
    free(set->class_text);
    *set = (struct image_set){0};
}

const struct image_list *image_set_classes(const struct image_set *set)
{
    return set->train != NULL ? set->train : set->list;
}
