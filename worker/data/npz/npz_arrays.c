/* Finds members, unpacks them, and judges types and shapes. */
#include "worker/data/npz/npz_arrays.h"

#include "common/base/log.h"
#include "common/base/memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ADVICE                                                                               \
    "--data npz:FILE wants what numpy.savez(FILE, images=..., labels=...) writes, of bytes " \
    "(N, H, W) or (N, H, W, C), and whole numbers (N)"

/* A member that was found to be an array. */
struct array {
    struct npy npy;
    const uint8_t *items; // in the file, or in `unpacked`
    void *unpacked;       // owned
    uint64_t unpacked_bytes;
};

static bool is_called(const struct zip_member *member, const char *name)
{
    static const char suffix[] = ".npy";
    size_t size = strlen(name);
    return member->name_size == size + strlen(suffix) && memcmp(member->name, name, size) == 0 &&
           memcmp(member->name + size, suffix, strlen(suffix)) == 0;
}

/* From `at` of the directory on, which it moves behind the member. STATUS_END_OF_DATA: there is
 * none. */
static enum status find_next(const struct npz_file *file, const char *name, uint64_t *at,
                             struct zip_member *ret_member, char *ret_why, size_t why_size)
{
    enum status status = STATUS_OK;
    do {
        status = zip_next(&file->zip, at, ret_member, ret_why, why_size);
    } while (status == STATUS_OK && !is_called(ret_member, name));
    return status;
}

/* STATUS_END_OF_DATA: there is none. Of two with one name, NumPy would take the last. */
static enum status find_member(const struct npz_file *file, const char *name,
                               struct zip_member *ret_member, char *ret_why, size_t why_size)
{
    uint64_t at = file->zip.directory;
    struct zip_member other;
    char why[DATA_FILE_WHY_BYTES];
    enum status status = find_next(file, name, &at, ret_member, ret_why, why_size);
    if (status == STATUS_OK && find_next(file, name, &at, &other, why, sizeof(why)) == STATUS_OK) {
        snprintf(ret_why, why_size, "it is there twice: save the arrays to a new file");
        return STATUS_MALFORMED;
    }
    return status;
}

/* Splits "DIR/NAME", and opens it. */
static enum status open_file(const char *path, struct data_file **ret_file)
{
    char folder[DATA_FILE_PATH_BYTES];
    const char *slash = strrchr(path, '/');
    int size = slash != NULL ? (int)(slash - path) : 1;
    int written = snprintf(folder, sizeof(folder), "%.*s", size, slash != NULL ? path : ".");
    if (written >= (int)sizeof(folder)) {
        log_error("the path of the .npz file is too long: %s", path);
        return STATUS_INVALID;
    }
    const char *const names[] = {slash != NULL ? slash + 1 : path, NULL};
    return data_file_open(folder, names, ADVICE, ret_file);
}

enum status npz_file_open(const char *path, struct npz_file *ret_file)
{
    struct npz_file file = {.file = NULL};
    struct zip_member member;
    char why[DATA_FILE_WHY_BYTES];
    enum status status = open_file(path, &file.file);
    if (status != STATUS_OK) {
        return status;
    }
    status = zip_open(file.file->bytes, file.file->size, &file.zip, why, sizeof(why));
    if (status == STATUS_OK) {
        uint64_t at = file.zip.directory;
        status = find_next(&file, "", &at, &member, why, sizeof(why)); // through the whole of it
        status = status == STATUS_END_OF_DATA ? STATUS_OK : status;
    }
    if (status != STATUS_OK) {
        log_error("%s cannot be read: %s; " ADVICE, file.file->path, why);
        npz_file_close(&file);
        return status;
    }
    *ret_file = file;
    return STATUS_OK;
}

void npz_file_close(struct npz_file *file)
{
    data_file_close(file->file);
    *file = (struct npz_file){0};
}

bool npz_file_has(const struct npz_file *file, const char *name)
{
    struct zip_member member;
    char why[DATA_FILE_WHY_BYTES];
    uint64_t at = file->zip.directory;
    return find_next(file, name, &at, &member, why, sizeof(why)) == STATUS_OK;
}

/* ---- an array ---- */

static void finish_array(struct array *array)
{
    memory_destroy_large(array->unpacked, array->unpacked_bytes);
    *array = (struct array){0};
}

static enum status unpack(const struct zip_member *member, struct array *array, char *ret_why,
                          size_t why_size)
{
    const uint8_t *bytes = member->packed;
    if (member->is_deflated && member->bytes > 0) {
        array->unpacked_bytes = member->bytes;
        array->unpacked = memory_create_large(member->bytes);
        if (array->unpacked == NULL) {
            return STATUS_NO_MEMORY;
        }
        bytes = array->unpacked;
    }
    enum status status = zip_read(member, array->unpacked, ret_why, why_size);
    if (status == STATUS_OK) {
        status = npy_parse(bytes, member->bytes, &array->npy, ret_why, why_size);
    }
    array->items = bytes + array->npy.at;
    return status;
}

static enum status read_array(const struct npz_file *file, const char *name,
                              struct array *ret_array)
{
    struct array array = {.unpacked = NULL};
    struct zip_member member;
    char why[DATA_FILE_WHY_BYTES] = "it is not there";
    enum status status = find_member(file, name, &member, why, sizeof(why));
    if (status == STATUS_OK) {
        status = unpack(&member, &array, why, sizeof(why));
    } else if (status == STATUS_END_OF_DATA) {
        status = STATUS_INVALID;
    }
    if (status == STATUS_OK && array.npy.is_fortran && array.npy.dim_count > 1) {
        snprintf(why, sizeof(why), "it is in Fortran's order: save numpy.ascontiguousarray(%s)",
                 name);
        status = STATUS_UNSUPPORTED;
    }
    if (status != STATUS_OK) {
        if (status != STATUS_NO_MEMORY) { // which whoever opens datasets says
            log_error("%s: the array %s cannot be read: %s; " ADVICE, file->file->path, name, why);
        }
        finish_array(&array);
        return status;
    }
    *ret_array = array;
    return STATUS_OK;
}

/* ---- images ---- */

static bool is_side(uint64_t pixels)
{
    return pixels >= 1 && pixels <= NPZ_SIDE_MAX;
}

static bool are_channels(uint64_t count)
{
    return count == 1 || count == 3;
}

static bool has_shape_of_images(const struct npy *npy)
{
    const uint64_t *dims = npy->dims;
    return (npy->dim_count == 3 || (npy->dim_count == 4 && are_channels(dims[3]))) &&
           dims[0] >= 1 && dims[0] <= UINT32_MAX && is_side(dims[1]) && is_side(dims[2]);
}

static enum status check_images(const struct npz_file *file, const char *name,
                                const struct npy *npy)
{
    char shape[128];
    npy_shape_text(npy, shape, sizeof(shape));
    if (npy->kind != 'u' || npy->item_bytes != 1) {
        log_error("%s: the array %s is of type %s; images are bytes from 0 to 255: save "
                  "%s.astype(\"uint8\"), and what goes from 0 to 1 times 255 before that",
                  file->file->path, name, npy->type, name);
        return STATUS_UNSUPPORTED;
    }
    if (!has_shape_of_images(npy)) {
        bool is_turned = npy->dim_count == 4 && are_channels(npy->dims[1]);
        log_error("%s: the array %s has the shape %s; images are (N, H, W) or (N, H, W, C), with 1 "
                  "or 3 channels C, and 1 to %d rows and columns%s",
                  file->file->path, name, shape, NPZ_SIDE_MAX,
                  is_turned ? ": channels go last, as by .transpose(0, 2, 3, 1)" : "");
        return STATUS_UNSUPPORTED;
    }
    return STATUS_OK;
}

enum status npz_images_read(const struct npz_file *file, const char *name,
                            struct npz_images *ret_images)
{
    struct array array;
    enum status status = read_array(file, name, &array);
    if (status != STATUS_OK) {
        return status;
    }
    const struct npy *npy = &array.npy;
    status = check_images(file, name, npy);
    if (status != STATUS_OK) {
        finish_array(&array);
        return status;
    }
    *ret_images = (struct npz_images){
        .bytes = array.items,
        .count = npy->dims[0],
        .rows = (uint32_t)npy->dims[1],
        .columns = (uint32_t)npy->dims[2],
        .channels = npy->dim_count == 4 ? (uint32_t)npy->dims[3] : 1,
        .unpacked = array.unpacked,
        .unpacked_bytes = array.unpacked_bytes,
    };
    return STATUS_OK;
}

void npz_images_finish(struct npz_images *images)
{
    memory_destroy_large(images->unpacked, images->unpacked_bytes);
    *images = (struct npz_images){0};
}

/* ---- labels ---- */

static enum status check_labels(const struct npz_file *file, const char *name,
                                const struct npy *npy, uint64_t count)
{
    char shape[128];
    npy_shape_text(npy, shape, sizeof(shape));
    bool is_column = npy->dim_count == 2 && npy->dims[1] == 1; // as Keras has them of CIFAR
    if (npy->dim_count != 1 && !is_column) {
        log_error("%s: the array %s has the shape %s; labels are (N): a number for each image, and "
                  "no vector, which .argmax(axis=1) makes one of",
                  file->file->path, name, shape);
        return STATUS_UNSUPPORTED;
    }
    if ((npy->kind != 'u' && npy->kind != 'i') || npy->item_bytes > 8 ||
        (npy->order == '>' && npy->item_bytes > 1)) {
        log_error("%s: the array %s is of type %s; labels are whole numbers, little-endian: save "
                  "%s.astype(\"int64\")",
                  file->file->path, name, npy->type, name);
        return STATUS_UNSUPPORTED;
    }
    if (npy->dims[0] != count) {
        log_error("%s: the array %s has %llu labels for %llu images", file->file->path, name,
                  (unsigned long long)npy->dims[0], (unsigned long long)count);
        return STATUS_MALFORMED;
    }
    return STATUS_OK;
}

/* A negative label is one that is far too large. */
static uint64_t label_at(const struct array *array, uint64_t index)
{
    uint64_t label = 0;
    uint32_t bytes = array->npy.item_bytes;
    const uint8_t *item = array->items + index * bytes;
    for (uint32_t i = 0; i < bytes; i++) {
        label |= (uint64_t)item[i] << 8 * i;
    }
    bool is_negative = array->npy.kind == 'i' && item[bytes - 1] >= 128;
    return is_negative ? UINT64_MAX : label;
}

static enum status fill_labels(const struct npz_file *file, const char *name,
                               const struct array *array, uint32_t *ret_labels)
{
    for (uint64_t i = 0; i < array->npy.count; i++) {
        uint64_t label = label_at(array, i);
        if (label >= NPZ_CLASSES_MAX) {
            log_error("%s: label %llu (from 0) of the array %s is %s; labels are from 0 to %d",
                      file->file->path, (unsigned long long)i, name,
                      label == UINT64_MAX ? "negative" : "too large", NPZ_CLASSES_MAX - 1);
            return STATUS_MALFORMED;
        }
        ret_labels[i] = (uint32_t)label;
    }
    return STATUS_OK;
}

enum status npz_labels_read(const struct npz_file *file, const char *name, uint64_t count,
                            uint32_t **ret_labels)
{
    struct array array;
    enum status status = read_array(file, name, &array);
    if (status != STATUS_OK) {
        return status;
    }
    uint32_t *labels = NULL;
    status = check_labels(file, name, &array.npy, count);
    if (status == STATUS_OK) {
        labels = calloc(count, sizeof(*labels));
        status = labels != NULL ? fill_labels(file, name, &array, labels) : STATUS_NO_MEMORY;
    }
    finish_array(&array);
    if (status != STATUS_OK) {
        free(labels);
        return status;
    }
    *ret_labels = labels;
    return STATUS_OK;
}
