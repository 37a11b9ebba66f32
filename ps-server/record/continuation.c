/* Cuts metrics.jsonl at a step. */
#include "ps-server/record/continuation.h"

#include "common/base/new_file.h"

#include <jansson.h>

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PATH_BYTES 4200

static void path_of(const char *folder, const char *name, char ret_path[PATH_BYTES])
{
    snprintf(ret_path, PATH_BYTES, "%.4096s/%s", folder, name);
}

/* What is told of ranks, and where it goes. */
struct tally {
    uint32_t first, count;            // of the ranks
    uint64_t begin;                   // steps behind it count
    struct continuation_lines *lines; // (count), borrowed
};

/* Adds a line to those of its rank. */
static void add_line(const json_t *tree, const struct tally *tally)
{
    json_int_t rank = json_integer_value(json_object_get(tree, "rank"));
    json_int_t step = json_integer_value(json_object_get(tree, "step"));
    json_int_t steps = json_integer_value(json_object_get(tree, "steps"));
    json_int_t index = rank - (json_int_t)tally->first;
    if (index >= 0 && index < (json_int_t)tally->count && step > (json_int_t)tally->begin &&
        steps > 0) {
        struct continuation_lines *lines = &tally->lines[index];
        lines->steps += (uint64_t)steps;
        lines->loss_steps += (double)steps * json_number_value(json_object_get(tree, "loss"));
    }
}

/* Whether the line stays, and then adds it. The last line may be cut, and what is no line of ours
 * goes. */
static bool take_line(const char *line, uint64_t step, const struct tally *tally)
{
    json_t *tree = json_loads(line, 0, NULL);
    const json_t *at = json_object_get(tree, "step");
    bool stays = json_is_integer(at) && json_integer_value(at) >= 0 &&
                 (uint64_t)json_integer_value(at) <= step;
    if (stays) {
        add_line(tree, tally);
    }
    json_decref(tree);
    return stays;
}

/* The lines that stay, in memory: a job has a limited number of them. NULL and errno. The caller
 * frees them. */
static char *read_lines(FILE *from, uint64_t step, const struct tally *tally, size_t *ret_size)
{
    char *line = NULL, *kept = NULL;
    size_t line_size = 0;
    FILE *to = open_memstream(&kept, ret_size);
    bool is_read = to != NULL;
    while (is_read && getline(&line, &line_size, from) > 0) {
        if (take_line(line, step, tally)) {
            size_t size = strcspn(line, "\n"); // the last one may have been written without
            is_read = fwrite(line, 1, size, to) == size && fputc('\n', to) != EOF;
        }
    }
    is_read = is_read && ferror(from) == 0;
    free(line);
    if ((to != NULL && fclose(to) != 0) || !is_read) {
        free(kept);
        return NULL;
    }
    return kept;
}

/* Needs no room: what stays is a part of what is there. */
static bool cut_in_place(const char *path, const char *text, size_t size)
{
    int fd = open(path, O_WRONLY | O_NOFOLLOW | O_CLOEXEC);
    bool is_written = fd >= 0;
    for (size_t at = 0; is_written && at < size;) {
        ssize_t wrote = pwrite(fd, text + at, size - at, (off_t)at);
        is_written = wrote > 0 || errno == EINTR;
        at += wrote > 0 ? (size_t)wrote : 0;
    }
    is_written = is_written && ftruncate(fd, (off_t)size) == 0 && fsync(fd) == 0;
    if (fd >= 0) {
        close(fd);
    }
    return is_written;
}

static enum status cut_metrics(const char *from, const char *folder, uint64_t step,
                               const struct tally *tally)
{
    char source[PATH_BYTES], target[PATH_BYTES];
    size_t size;
    path_of(from, "metrics.jsonl", source);
    path_of(folder, "metrics.jsonl", target);
    FILE *in = new_file_read(source);
    if (in == NULL) {
        return errno == ENOENT ? STATUS_OK : STATUS_IO;
    }
    char *kept = read_lines(in, step, tally, &size);
    fclose(in);
    bool is_written = kept != NULL && new_file_replace(target, kept, size) == STATUS_OK;
    int error = errno;
    if (!is_written && kept != NULL && (error == ENOSPC || error == EDQUOT) &&
        strcmp(source, target) == 0) {
        is_written = cut_in_place(target, kept, size);
    }
    free(kept);
    errno = error;
    return is_written ? STATUS_OK : STATUS_IO;
}

enum status continuation_read(const char *folder, uint32_t first, uint32_t count, uint64_t begin,
                              struct continuation_lines *ret_lines)
{
    const struct tally tally = {first, count, begin, ret_lines};
    char path[PATH_BYTES], *line = NULL;
    size_t size = 0;
    path_of(folder, "metrics.jsonl", path);
    memset(ret_lines, 0, count * sizeof(*ret_lines));
    FILE *file = new_file_read(path);
    if (file == NULL) {
        return errno == ENOENT ? STATUS_OK : STATUS_IO;
    }
    while (getline(&line, &size, file) > 0) {
        (void)take_line(line, UINT64_MAX, &tally);
    }
    bool is_read = ferror(file) == 0;
    free(line);
    fclose(file);
    return is_read ? STATUS_OK : STATUS_IO;
}

enum status continuation_remove_results(const char *folder)
{
    static const char *const results[] = {"summary.json", "details.json"};
    char path[PATH_BYTES];
    for (size_t i = 0; i < sizeof(results) / sizeof(results[0]); i++) {
        path_of(folder, results[i], path);
        if (unlink(path) != 0 && errno != ENOENT) {
            return STATUS_IO;
        }
    }
    return STATUS_OK;
}

enum status continuation_begin(const char *from, const char *folder, uint64_t step,
                               uint32_t rank_count, struct continuation_lines *ret_lines)
{
    const struct tally tally = {0, rank_count, 0, ret_lines};
    memset(ret_lines, 0, rank_count * sizeof(*ret_lines));
    enum status status = cut_metrics(from, folder, step, &tally);
    return status == STATUS_OK ? continuation_remove_results(folder) : status;
}
