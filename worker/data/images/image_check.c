/* Reads a few kilobytes of each file. Threads take files in turn; each writes to its file alone. */
#include "worker/data/images/image_check.h"

#include "worker/data/helpers.h"
#include "worker/data/images/decoder_parts.h"
#include "worker/data/images/jpeg_header.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define HEAD_BYTES     16384 // mostly enough
#define TAIL_BYTES     4096
#define PNG_HEAD_BYTES 24 // to its width and height
#define FILE_MAX       ((uint64_t)1 << 28)
#define THREADS_MAX    16 // they wait for the file system more than for processors
#define SHARE_MIN      64 // files that a thread is worth

/* Reads exactly `size` bytes. */
static enum status read_at(int descriptor, uint64_t at, uint8_t *ret_bytes, size_t size,
                           char *ret_why, size_t why_size)
{
    size_t used = 0;
    while (used < size) {
        ssize_t got = pread(descriptor, ret_bytes + used, size - used, (off_t)(at + used));
        if (got == 0 || (got < 0 && errno != EINTR)) {
            snprintf(ret_why, why_size, "it cannot be read: %s",
                     got == 0 ? "it became shorter" : strerrordesc_np(errno));
            return STATUS_MALFORMED;
        }
        used += got > 0 ? (size_t)got : 0;
    }
    return STATUS_OK;
}

static enum status refuse(const char *why, char *ret_why, size_t why_size)
{
    snprintf(ret_why, why_size, "%s", why);
    return STATUS_MALFORMED;
}

/* The end of a file, behind `from`. */
static enum status check_end(int descriptor, uint64_t size, uint64_t from, bool is_png,
                             char *ret_why, size_t why_size)
{
    uint8_t tail[TAIL_BYTES];
    uint64_t at = size - from > TAIL_BYTES ? size - TAIL_BYTES : from;
    size_t count = (size_t)(size - at);
    enum status status = read_at(descriptor, at, tail, count, ret_why, why_size);
    if (status != STATUS_OK) {
        return status;
    }
    bool has_end =
        is_png ? memmem(tail, count, "IEND", 4) != NULL : jpeg_header_has_end(tail, count);
    return has_end ? STATUS_OK
                   : refuse("it has no end marker: it was cut short", ret_why, why_size);
}

/* Parses the head, of which as much is read as it takes. */
static enum status read_header(int descriptor, uint64_t size, struct jpeg_header *ret_header,
                               char *ret_why, size_t why_size)
{
    uint8_t *head = NULL;
    enum status status = STATUS_END_OF_DATA;
    for (uint64_t wanted = HEAD_BYTES; status == STATUS_END_OF_DATA; wanted *= 8) {
        size_t count = (size_t)(wanted < size ? wanted : size);
        uint8_t *grown = realloc(head, count);
        if (grown == NULL) {
            free(head);
            return STATUS_NO_MEMORY;
        }
        head = grown;
        status = read_at(descriptor, 0, head, count, ret_why, why_size);
        if (status == STATUS_OK) {
            status = jpeg_header_parse(head, count, ret_header, ret_why, why_size);
        }
        if (status == STATUS_END_OF_DATA && count == size) {
            status = refuse("it ends in its head: it was cut short", ret_why, why_size);
        }
    }
    free(head);
    return status;
}

static uint32_t get_u32(const uint8_t *bytes)
{
    return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
}

/* Its size is in the first of its chunks, which has the same place in every file. */
static enum status check_png(int descriptor, uint64_t size, char *ret_why, size_t why_size)
{
    uint8_t head[PNG_HEAD_BYTES];
    enum status status = decoder_allows_png(ret_why, why_size);
    if (status != STATUS_OK) {
        return STATUS_MALFORMED;
    }
    if (size < sizeof(head)) {
        return refuse("it ends in its head: it was cut short", ret_why, why_size);
    }
    status = read_at(descriptor, 0, head, sizeof(head), ret_why, why_size);
    if (status == STATUS_OK && memcmp(head + 12, "IHDR", 4) != 0) {
        status = refuse("its head is broken", ret_why, why_size);
    }
    if (status == STATUS_OK) {
        status = decoder_check_size(get_u32(head + 16), get_u32(head + 20), ret_why, why_size);
    }
    return status == STATUS_OK ? check_end(descriptor, size, sizeof(head), true, ret_why, why_size)
                               : status;
}

static enum status check_jpeg(int descriptor, uint64_t size, char *ret_why, size_t why_size)
{
    struct jpeg_header header;
    enum status status = read_header(descriptor, size, &header, ret_why, why_size);
    if (status == STATUS_OK) {
        status = decoder_check_size(header.width, header.height, ret_why, why_size);
    }
    return status == STATUS_OK
               ? check_end(descriptor, size, header.scan_at, false, ret_why, why_size)
               : status;
}

enum status image_check_file(int descriptor, uint64_t size, char *ret_why, size_t why_size)
{
    uint8_t magic[8] = {0};
    size_t count = size < sizeof(magic) ? (size_t)size : sizeof(magic);
    if (size == 0) {
        return refuse("it is empty", ret_why, why_size);
    }
    if (size > FILE_MAX) {
        return refuse("it has more than 256 MiB", ret_why, why_size);
    }
    enum status status = read_at(descriptor, 0, magic, count, ret_why, why_size);
    if (status != STATUS_OK) {
        return status;
    }
    if (decoder_is_png(magic, count)) {
        return check_png(descriptor, size, ret_why, why_size);
    }
    return magic[0] == 0xFF && magic[1] == 0xD8
               ? check_jpeg(descriptor, size, ret_why, why_size)
               : refuse("it is neither JPEG nor PNG", ret_why, why_size);
}

/* ---- all files of a list ---- */

struct check {
    struct image_list *list;
    atomic_uint_fast64_t next, checked;
    atomic_bool lacks_memory;
};

static void check_one(struct check *check, struct image_file *file)
{
    char path[IMAGE_LIST_PATH_BYTES], why[DECODER_WHY_BYTES] = "";
    enum status status = STATUS_MALFORMED;
    if (!image_list_path(check->list, file, path)) {
        snprintf(why, sizeof(why), "its path has more than %d bytes", IMAGE_LIST_PATH_BYTES);
    } else {
        int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
        if (descriptor < 0) {
            snprintf(why, sizeof(why), "it cannot be read: %s", strerrordesc_np(errno));
        } else {
            status = image_check_file(descriptor, file->size, why, sizeof(why));
            close(descriptor);
        }
    }
    file->is_checked = true;
    file->why = status == STATUS_OK ? NULL : strdup(why);
    if (status == STATUS_NO_MEMORY || (status != STATUS_OK && file->why == NULL)) {
        atomic_store(&check->lacks_memory, true);
    }
}

static void *run_checks(void *argument)
{
    struct check *check = argument;
    for (;;) {
        uint64_t index = atomic_fetch_add(&check->next, 1);
        if (index >= check->list->count || atomic_load(&check->lacks_memory)) {
            return NULL;
        }
        if (!check->list->files[index].is_checked) {
            check_one(check, &check->list->files[index]);
            atomic_fetch_add(&check->checked, 1);
        }
    }
}

static uint32_t count_threads(const struct image_list *list)
{
    uint64_t unchecked = 0;
    for (uint64_t i = 0; i < list->count && unchecked < (uint64_t)SHARE_MIN * THREADS_MAX; i++) {
        unchecked += !list->files[i].is_checked;
    }
    return (uint32_t)(unchecked / SHARE_MIN); // at most THREADS_MAX
}

enum status image_check_list(struct image_list *list, uint64_t *ret_count)
{
    struct check check = {.list = list};
    helpers_run(run_checks, &check, count_threads(list));
    *ret_count = atomic_load(&check.checked);
    return atomic_load(&check.lacks_memory) ? STATUS_NO_MEMORY : STATUS_OK;
}
