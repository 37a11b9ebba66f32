/* Reads folders, and sorts what is in them. */
#include "worker/data/images/image_list.h"

#include "common/base/log.h"
#include "common/base/printable.h"
#include "worker/data/helpers.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

// Listing waits for the file system more than for processors.
#define THREADS_MAX 16
#define CLASSES_MIN 8 // that a thread is worth

/* ---- paths ---- */

bool image_list_path(const struct image_list *list, const struct image_file *file,
                     char ret_path[IMAGE_LIST_PATH_BYTES])
{
    int length = snprintf(ret_path, IMAGE_LIST_PATH_BYTES, "%s/%s/%s", list->folder,
                          list->classes[file->class], list->names + file->name_at);
    return length > 0 && length < IMAGE_LIST_PATH_BYTES;
}

void image_list_show(const struct image_list *list, const struct image_file *file,
                     char ret_path[IMAGE_LIST_PATH_BYTES])
{
    image_list_path(list, file, ret_path);
    printable_make_utf8(ret_path);
}

const char *image_list_show_class(const struct image_list *list, uint32_t class,
                                  char ret_path[IMAGE_LIST_PATH_BYTES])
{
    snprintf(ret_path, IMAGE_LIST_PATH_BYTES, "%.800s/%.400s", list->folder, list->classes[class]);
    printable_make_utf8(ret_path);
    return ret_path;
}

/* ---- entries of folders ---- */

/* NULL: there are no more, and errno is 0; or the folder cannot be read on, and errno says why. */
static const struct dirent *next_entry(DIR *directory)
{
    errno = 0;
    return readdir(directory); // NOLINT(concurrency-mt-unsafe): the stream is this thread's
}

/* Why there is nothing behind a name, by errno. */
static const char *why_nothing(void)
{
    return errno == ELOOP    ? "its symbolic links go round in a circle"
           : errno == ENOENT ? "it is a symbolic link to nothing"
                             : strerrordesc_np(errno);
}

/* Takes room for one more of `size` bytes: capacities are powers of two. */
static bool grow(void **array, uint64_t count, size_t size)
{
    if ((count & (count - 1)) != 0) {
        return true;
    }
    void *grown = reallocarray(*array, count == 0 ? 1 : 2 * count, size);
    *array = grown != NULL ? grown : *array;
    return grown != NULL;
}

/* ---- classes ---- */

static enum status add_class(struct image_list *list, const char *name)
{
    if (list->class_count == IMAGE_LIST_CLASSES_MAX) {
        log_error("%s has more than %u folders of classes", list->folder, IMAGE_LIST_CLASSES_MAX);
        return STATUS_INVALID;
    }
    char *copy = strdup(name);
    if (copy == NULL || !grow((void **)&list->classes, list->class_count, sizeof(char *))) {
        free(copy);
        return STATUS_NO_MEMORY;
    }
    list->classes[list->class_count++] = copy;
    return STATUS_OK;
}

/* The folder that a class is must not be one that it lies in. */
static enum status check_circle(const struct image_list *list, const struct stat *class,
                                const char *name)
{
    char path[IMAGE_LIST_PATH_BYTES], shown[IMAGE_LIST_PATH_BYTES];
    const char *above[] = {"", "/..", "/../.."};
    for (size_t i = 0; i < sizeof(above) / sizeof(above[0]); i++) {
        struct stat facts;
        snprintf(path, sizeof(path), "%.1270s%s", list->folder, above[i]);
        if (stat(path, &facts) == 0 && facts.st_dev == class->st_dev &&
            facts.st_ino == class->st_ino) {
            snprintf(shown, sizeof(shown), "%.800s/%.400s", list->folder, name);
            printable_make_utf8(shown);
            log_error("%s is a symbolic link to a folder that it lies in: remove it", shown);
            return STATUS_INVALID;
        }
    }
    return STATUS_OK;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Adds what is a folder. A link to nothing may have been a class. */
static enum status consider_class(struct image_list *list, int folder, const char *name)
{
    struct stat facts;
    if (fstatat(folder, name, &facts, 0) != 0) {
        char shown[IMAGE_LIST_PATH_BYTES];
        const char *why = why_nothing();
        snprintf(shown, sizeof(shown), "%.800s/%.400s", list->folder, name);
        printable_make_utf8(shown);
        log_error("%s cannot be used as a class: %s: mend or remove it", shown, why);
        return STATUS_INVALID;
    }
    if (!S_ISDIR(facts.st_mode)) {
        return STATUS_OK;
    }
    enum status status = check_circle(list, &facts, name);
    return status == STATUS_OK ? add_class(list, name) : status;
}

static enum status find_classes(struct image_list *list, DIR *directory)
{
    enum status status = STATUS_OK;
    const struct dirent *entry;
    while (status == STATUS_OK && (entry = next_entry(directory)) != NULL) {
        if (entry->d_name[0] != '.') {
            status = consider_class(list, dirfd(directory), entry->d_name);
        }
    }
    if (status == STATUS_OK && errno != 0) {
        log_error("cannot read %s to its end: %m", list->folder);
        return STATUS_IO;
    }
    return status;
}

enum status image_list_open(const char *folder, struct image_list **ret_list)
{
    if (strlen(folder) >= IMAGE_LIST_PATH_BYTES - 256) {
        log_error("the path of the images is too long: %zu bytes", strlen(folder));
        return STATUS_INVALID;
    }
    DIR *directory = opendir(folder);
    if (directory == NULL) {
        log_error("cannot read %s: %m; " IMAGE_LIST_ADVICE, folder);
        return STATUS_IO;
    }
    struct image_list *list = calloc(1, sizeof(*list));
    enum status status = STATUS_NO_MEMORY;
    if (list != NULL) {
        snprintf(list->folder, sizeof(list->folder), "%s", folder);
        status = find_classes(list, directory);
    }
    closedir(directory);
    if (status == STATUS_OK && list->class_count == 0) {
        log_error("%s has no folders of classes; " IMAGE_LIST_ADVICE, list->folder);
        status = STATUS_INVALID;
    }
    if (status != STATUS_OK) {
        image_list_close(list);
        return status;
    }
    qsort(list->classes, list->class_count, sizeof(char *), compare_names);
    *ret_list = list;
    return STATUS_OK;
}

static void free_files(struct image_list *list)
{
    for (uint64_t i = 0; i < list->count; i++) {
        free(list->files[i].why);
    }
    free(list->files);
    free(list->names);
}

void image_list_close(struct image_list *list)
{
    if (list == NULL) {
        return;
    }
    for (uint32_t i = 0; i < list->class_count; i++) {
        free(list->classes[i]);
    }
    free_files(list);
    free(list->classes);
    free(list);
}

/* ---- files ---- */

static bool add_name(struct image_list *list, const char *name, size_t *ret_at)
{
    size_t size = strlen(name) + 1;
    if (list->names_capacity - list->names_size < size) {
        size_t capacity = 2 * list->names_capacity + size;
        char *names = realloc(list->names, capacity);
        if (names == NULL) {
            return false;
        }
        list->names = names;
        list->names_capacity = capacity;
    }
    memcpy(list->names + list->names_size, name, size);
    *ret_at = list->names_size;
    list->names_size += size;
    return true;
}

static enum status add_file(struct image_list *list, const struct image_file *file,
                            const char *name)
{
    if (!grow((void **)&list->files, list->count, sizeof(*file))) {
        return STATUS_NO_MEMORY;
    }
    struct image_file *added = &list->files[list->count];
    *added = *file;
    if (!add_name(list, name, &added->name_at)) {
        return STATUS_NO_MEMORY;
    }
    list->count++; // which owns its why from here on
    return STATUS_OK;
}

/* One entry of the folder of a class. What is no file is an image that cannot be used. */
static enum status add_entry(struct image_list *list, uint32_t class, int folder, const char *name)
{
    struct stat facts = {0};
    struct image_file file = {.class = class};
    if (fstatat(folder, name, &facts, 0) != 0) {
        file.why = strdup(why_nothing());
    } else if (S_ISDIR(facts.st_mode)) {
        char shown[IMAGE_LIST_PATH_BYTES];
        log_error("%s has a folder in it, \"%.200s\": a class has files alone; " IMAGE_LIST_ADVICE,
                  image_list_show_class(list, class, shown), name);
        return STATUS_INVALID;
    } else if (!S_ISREG(facts.st_mode)) {
        file.why = strdup("it is no regular file");
    }
    file.is_checked = file.why != NULL;
    file.size = (uint64_t)facts.st_size;
    file.changed_ns = (int64_t)facts.st_mtim.tv_sec * 1000000000 + facts.st_mtim.tv_nsec;
    enum status status = add_file(list, &file, name);
    if (status != STATUS_OK) {
        free(file.why);
    }
    return status;
}

static int compare_files(const void *a, const void *b, void *names)
{
    return strcmp((const char *)names + ((const struct image_file *)a)->name_at,
                  (const char *)names + ((const struct image_file *)b)->name_at);
}

static enum status scan_class(struct image_list *list, uint32_t class)
{
    char path[IMAGE_LIST_PATH_BYTES + 256], shown[IMAGE_LIST_PATH_BYTES];
    snprintf(path, sizeof(path), "%s/%s", list->folder, list->classes[class]);
    DIR *directory = opendir(path);
    if (directory == NULL) {
        log_error("cannot read the class %s: %m", image_list_show_class(list, class, shown));
        return STATUS_IO;
    }
    uint64_t before = list->count;
    enum status status = STATUS_OK;
    const struct dirent *entry;
    while (status == STATUS_OK && (entry = next_entry(directory)) != NULL) {
        if (entry->d_name[0] != '.') {
            status = add_entry(list, class, dirfd(directory), entry->d_name);
        }
    }
    if (status == STATUS_OK && errno != 0) {
        log_error("cannot read the class %s to its end: %m",
                  image_list_show_class(list, class, shown));
        status = STATUS_IO;
    }
    closedir(directory);
    if (status == STATUS_OK && list->count == before) {
        log_error("the class %s has no images: remove the folder, or fill it",
                  image_list_show_class(list, class, shown));
        return STATUS_INVALID;
    }
    if (status == STATUS_OK) {
        qsort_r(list->files + before, list->count - before, sizeof(*list->files), compare_files,
                list->names);
    }
    return status;
}

/* ---- all classes: threads take them in turn ---- */

/* Where the files of a class are, in the list of the thread that found them. */
struct place {
    uint32_t thread;
    uint64_t begin, count;
};

struct scan {
    struct image_list *list;
    struct place *places;      // (class_count), owned
    struct image_list *shares; // (THREADS_MAX), owned: what each thread has found
    atomic_uint_fast32_t next_class, next_share;
    atomic_int failure; // enum status; of one of the classes that fail
};

static void *run_scan(void *argument)
{
    struct scan *scan = argument;
    uint32_t thread = (uint32_t)atomic_fetch_add(&scan->next_share, 1);
    struct image_list *share = &scan->shares[thread];
    for (;;) {
        uint32_t class = (uint32_t)atomic_fetch_add(&scan->next_class, 1);
        if (class >= share->class_count || atomic_load(&scan->failure) != STATUS_OK) {
            return NULL;
        }
        uint64_t before = share->count;
        enum status status = scan_class(share, class);
        if (status != STATUS_OK) {
            atomic_store(&scan->failure, (int)status);
            return NULL;
        }
        scan->places[class] = (struct place){thread, before, share->count - before};
    }
}

/* Takes the files of all threads to one list, by class. These lose what they had. */
static enum status join_shares(struct scan *scan)
{
    struct image_list *list = scan->list;
    size_t names_at[THREADS_MAX];
    for (uint32_t i = 0; i < THREADS_MAX; i++) {
        names_at[i] = list->names_size;
        list->names_size += scan->shares[i].names_size;
        list->count += scan->shares[i].count;
    }
    list->names_capacity = list->names_size;
    list->names = malloc(list->names_size);
    list->files = calloc(list->count, sizeof(*list->files));
    if (list->names == NULL || list->files == NULL) {
        list->count = 0;
        return STATUS_NO_MEMORY;
    }
    for (uint32_t i = 0; i < THREADS_MAX; i++) {
        if (scan->shares[i].names_size > 0) {
            memcpy(list->names + names_at[i], scan->shares[i].names, scan->shares[i].names_size);
        }
        scan->shares[i].count = 0; // the list owns what these have from here on
    }
    struct image_file *to = list->files;
    for (uint32_t class = 0; class < list->class_count; class ++) {
        const struct place *place = &scan->places[class];
        memcpy(to, scan->shares[place->thread].files + place->begin, place->count * sizeof(*to));
        for (const struct image_file *end = to + place->count; to < end; to++) {
            to->name_at += names_at[place->thread];
        }
    }
    return STATUS_OK;
}

static enum status scan_all(struct scan *scan)
{
    struct image_list *list = scan->list;
    for (uint32_t i = 0; i < THREADS_MAX; i++) {
        struct image_list *share = &scan->shares[i];
        memcpy(share->folder, list->folder, sizeof(share->folder));
        share->classes = list->classes; // borrowed
        share->class_count = list->class_count;
    }
    uint32_t worth = list->class_count / CLASSES_MIN + 1;
    helpers_run(run_scan, scan, worth < THREADS_MAX ? worth : THREADS_MAX);
    enum status status = (enum status)atomic_load(&scan->failure);
    return status == STATUS_OK ? join_shares(scan) : status;
}

enum status image_list_scan(struct image_list *list)
{
    struct scan scan = {.list = list,
                        .places = calloc(list->class_count, sizeof(*scan.places)),
                        .shares = calloc(THREADS_MAX, sizeof(*scan.shares))};
    enum status status =
        scan.places != NULL && scan.shares != NULL ? scan_all(&scan) : STATUS_NO_MEMORY;
    for (uint32_t i = 0; scan.shares != NULL && i < THREADS_MAX; i++) {
        free_files(&scan.shares[i]);
    }
    free(scan.shares);
    free(scan.places);
    if (status == STATUS_OK && list->count > UINT32_MAX) {
        log_error("%s has %llu images; %u are the limit", list->folder,
                  (unsigned long long)list->count, UINT32_MAX);
        return STATUS_INVALID;
    }
    return status;
}
