/* Cuts metrics.jsonl at a step. */
#include "ps-server/record/continuation.h"

#include "common/base/new_file.h"

#include <jansson.h>

#include <errno.h>
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

/* The last line may be cut, and what is no line of ours goes. */
static bool is_before(const char *line, uint64_t step)
{
    json_t *tree = json_loads(line, 0, NULL);
    const json_t *at = json_object_get(tree, "step");
    bool is = json_is_integer(at) && json_integer_value(at) >= 0 &&
              (uint64_t)json_integer_value(at) <= step;
    json_decref(tree);
    return is;
}

static bool copy_lines(FILE *from, FILE *to, uint64_t step)
{
    char *line = NULL;
    size_t size = 0;
    bool is_written = true;
    while (is_written && getline(&line, &size, from) > 0) {
        is_written = !is_before(line, step) || fputs(line, to) >= 0;
    }
    free(line);
    return is_written && ferror(from) == 0 && fflush(to) == 0 && fsync(fileno(to)) == 0;
}

static enum status cut_metrics(const char *from, const char *folder, uint64_t step)
{
    char source[PATH_BYTES], target[PATH_BYTES], draft[PATH_BYTES];
    path_of(from, "metrics.jsonl", source);
    path_of(folder, "metrics.jsonl", target);
    path_of(folder, "metrics.jsonl.part", draft);
    FILE *in = fopen(source, "re");
    if (in == NULL) {
        return errno == ENOENT ? STATUS_OK : STATUS_IO;
    }
    FILE *out = new_file_stream(draft, true);
    bool is_written = out != NULL && copy_lines(in, out, step);
    fclose(in);
    if (out != NULL && fclose(out) != 0) {
        is_written = false;
    }
    if (!is_written || rename(draft, target) != 0) {
        int error = errno;
        unlink(draft);
        errno = error;
        return STATUS_IO;
    }
    return STATUS_OK;
}

/* Adds a line to those of its rank, if it is of steps behind `begin`. */
static void add_line(const json_t *tree, uint32_t first, uint32_t count, uint64_t begin,
                     struct continuation_lines *lines)
{
    json_int_t rank = json_integer_value(json_object_get(tree, "rank"));
    json_int_t step = json_integer_value(json_object_get(tree, "step"));
    json_int_t steps = json_integer_value(json_object_get(tree, "steps"));
    json_int_t index = rank - (json_int_t)first;
    if (index >= 0 && index < (json_int_t)count && step > (json_int_t)begin && steps > 0) {
        lines[index].steps += (uint64_t)steps;
        lines[index].loss_steps += (double)steps * json_number_value(json_object_get(tree, "loss"));
    }
}

enum status continuation_read(const char *folder, uint32_t first, uint32_t count, uint64_t begin,
                              struct continuation_lines *ret_lines)
{
    char path[PATH_BYTES], *line = NULL;
    size_t size = 0;
    path_of(folder, "metrics.jsonl", path);
    memset(ret_lines, 0, count * sizeof(*ret_lines));
    FILE *file = fopen(path, "re");
    if (file == NULL) {
        return errno == ENOENT ? STATUS_OK : STATUS_IO;
    }
    while (getline(&line, &size, file) > 0) {
        json_t *tree = json_loads(line, 0, NULL);
        if (tree != NULL) {
            add_line(tree, first, count, begin, ret_lines);
        }
        json_decref(tree);
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

enum status continuation_begin(const char *from, const char *folder, uint64_t step)
{
    enum status status = cut_metrics(from, folder, step);
    return status == STATUS_OK ? continuation_remove_results(folder) : status;
}
