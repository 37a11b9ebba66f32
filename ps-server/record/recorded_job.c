/* Compares a job with job.json. */
#include "ps-server/record/recorded_job.h"

#include "common/base/new_file.h"
#include "ps-server/record/job_record.h"

#include <jansson.h>

#include <stdio.h>

#define PATH_BYTES 4200

const char *recorded_job_other_option(const char *folder, const struct job *job)
{
    char path[PATH_BYTES];
    snprintf(path, sizeof(path), "%.4096s/job.json", folder);
    FILE *file = new_file_read(path);
    json_t *record = file != NULL ? json_loadf(file, 0, NULL) : NULL;
    if (file != NULL) {
        fclose(file);
    }
    const char *name = job_record_stranger(record, job);
    const json_t *epochs = json_object_get(json_object_get(record, "options"), "epochs");
    if (name == NULL && epochs != NULL && json_integer_value(epochs) != (json_int_t)job->epochs) {
        name = "epochs";
    }
    json_decref(record);
    return name;
}
