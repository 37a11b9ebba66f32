/* Keeps the results that a generation of a job has begun with. */
#include "ps-server/checkpoint/beginning.h"

#include "common/base/new_file.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

#define PATH_BYTES 4200

static void path_of(const char *folder, const char *end, char ret_path[PATH_BYTES])
{
    snprintf(ret_path, PATH_BYTES, "%.4096s/" BEGINNING_FILE "%s", folder, end);
}

/* The tree has it for the call alone. */
static bool dump(FILE *file, uint64_t step, const json_t *part)
{
    json_t *copy = json_deep_copy(part);
    json_t *tree =
        copy != NULL ? json_pack("{s:I, s:o}", "step", (json_int_t)step, "part", copy) : NULL;
    bool is_written = tree != NULL && json_dumpf(tree, file, JSON_REAL_PRECISION(17)) == 0 &&
                      fputc('\n', file) != EOF && fflush(file) == 0 && fsync(fileno(file)) == 0;
    json_decref(tree);
    return is_written;
}

enum status beginning_write(const char *folder, uint64_t step, const json_t *part)
{
    char path[PATH_BYTES], draft[PATH_BYTES];
    path_of(folder, "", path);
    path_of(folder, ".part", draft);
    FILE *file = new_file_stream(draft, true);
    bool is_written = file != NULL && dump(file, step, part);
    if (file != NULL && fclose(file) != 0) {
        is_written = false;
    }
    if (is_written && rename(draft, path) == 0) {
        return STATUS_OK;
    }
    int error = errno;
    unlink(draft);
    errno = error;
    return STATUS_IO;
}

enum status beginning_read(const char *folder, uint64_t step, const struct job *job,
                           struct job_part *ret_part)
{
    char path[PATH_BYTES], error[1024];
    path_of(folder, "", path);
    json_t *tree = json_load_file(path, 0, NULL);
    const json_t *part = json_object_get(tree, "part");
    json_int_t of = json_integer_value(json_object_get(tree, "step"));
    enum status status = STATUS_INVALID;
    if (json_is_object(part) && of > 0 && (uint64_t)of == step) {
        status = job_part_read(part, job, step, ret_part, error, sizeof(error));
    }
    json_decref(tree);
    return status == STATUS_OK || status == STATUS_NO_MEMORY ? status : STATUS_INVALID;
}
