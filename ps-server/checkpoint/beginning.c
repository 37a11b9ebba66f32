/* Keeps the results that a generation of a job has begun with. */
#include "ps-server/checkpoint/beginning.h"

#include "common/base/log.h"
#include "common/base/new_file.h"
#include "common/checkpoint/tree_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PATH_BYTES 4200

struct beginning {
    char *folder; // owned
    uint64_t step;
    json_t *part; // owned
};

static void path_of(const char *folder, char ret_path[PATH_BYTES])
{
    snprintf(ret_path, PATH_BYTES, "%.4096s/" BEGINNING_FILE, folder);
}

enum status beginning_write(const char *folder, uint64_t step, const json_t *part)
{
    char path[PATH_BYTES];
    path_of(folder, path);
    json_t *copy = json_deep_copy(part);
    json_t *tree =
        copy != NULL ? json_pack("{s:I, s:o}", "step", (json_int_t)step, "part", copy) : NULL;
    return tree_file_replace(path, tree, JSON_REAL_PRECISION(17));
}

enum status beginning_read(const char *folder, uint64_t step, const struct job *job,
                           struct job_part *ret_part)
{
    char path[PATH_BYTES], error[1024];
    path_of(folder, path);
    FILE *file = new_file_read(path);
    json_t *tree = file != NULL ? json_loadf(file, 0, NULL) : NULL;
    if (file != NULL) {
        fclose(file);
    }
    const json_t *part = json_object_get(tree, "part");
    json_int_t of = json_integer_value(json_object_get(tree, "step"));
    enum status status = STATUS_INVALID;
    if (json_is_object(part) && of > 0 && (uint64_t)of == step) {
        status = job_part_read(part, job, step, ret_part, error, sizeof(error));
    }
    json_decref(tree);
    return status == STATUS_OK || status == STATUS_NO_MEMORY ? status : STATUS_INVALID;
}

struct beginning *beginning_create(const char *folder, uint64_t step, const json_t *part)
{
    struct beginning *beginning = calloc(1, sizeof(*beginning));
    if (beginning == NULL) {
        return NULL;
    }
    *beginning = (struct beginning){strdup(folder), step, json_deep_copy(part)};
    if (beginning->folder == NULL || beginning->part == NULL) {
        beginning_destroy(beginning);
        return NULL;
    }
    return beginning;
}

void beginning_destroy(struct beginning *beginning)
{
    free(beginning->folder);
    json_decref(beginning->part);
    free(beginning);
}

void beginning_note(void *data)
{
    struct beginning *beginning = data;
    if (beginning_write(beginning->folder, beginning->step, beginning->part) != STATUS_OK) {
        log_warn("cannot write %s/" BEGINNING_FILE ": %m; a coordinator that has to take over does "
                 "not know what was before step %llu",
                 beginning->folder, (unsigned long long)beginning->step);
    }
    beginning_destroy(beginning);
}
