/* Opens what a job needs on this host, and tells about it. */
#include "worker/workplace.h"

#include "common/base/cores.h"
#include "common/base/log.h"
#include "common/job/job_text.h"
#include "common/vector/layout.h"
#include "worker/data/resized.h"

#include <jansson.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Whoever builds without optimisation looks for a fault.
#ifdef __OPTIMIZE__
static const bool is_debug_build = false;
#else
static const bool is_debug_build = true;
#endif

static uint32_t thread_count(const struct job *job, uint32_t local_size)
{
    if (job->threads > 0) {
        return job->threads;
    }
    uint32_t sharers = local_size > 0 ? local_size : job->workers;
    uint32_t threads = cores_available() / sharers;
    return threads > 0 ? threads : 1;
}

static enum status open_images(const struct job *job, enum dataset_split split,
                               struct dataset **ret_dataset)
{
    struct dataset *dataset;
    enum status status = dataset_open(job->data, job->seed, split, &dataset);
    return status == STATUS_OK ? dataset_resize(dataset, job->image_size, ret_dataset) : status;
}

/* A build for GPUs that does without one says so, once for the job. */
static void say_what_is_passed_over(const struct device *device)
{
    for (const struct device_ops *const *ops = device_backends(); *ops != device->ops; ops++) {
        char why[256] = "";
        if (!(*ops)->is_available(why, sizeof(why))) {
            log_warn("--device auto uses %s, because %s cannot be used: %s", device->ops->name,
                     (*ops)->name, why);
        }
    }
}

enum status workplace_open(struct workplace *workplace, const struct job *job,
                           const struct workplace_seat *seat)
{
    *workplace = (struct workplace){0};
    const struct device_options device = {
        .threads = thread_count(job, seat->local_size),
        .local_rank = seat->local_rank,
        .allows_nondeterministic = job->allow_nondeterministic,
        .replays_launches = job->cuda_graphs,
        .checks_operations = job->cuda_sync_check || is_debug_build,
    };
    enum status status = open_images(job, DATASET_TRAIN, &workplace->train);
    if (status != STATUS_OK) {
        goto fail;
    }
    status = open_images(job, DATASET_TEST, &workplace->test);
    if (status != STATUS_OK) {
        goto fail;
    }
    status = device_open(job->device, &device, &workplace->device);
    if (status != STATUS_OK) {
        goto fail;
    }
    if (seat->rank == 0 && strcmp(job->device, "auto") == 0) {
        say_what_is_passed_over(workplace->device);
    }
    status = trainer_create(job, seat->rank, workplace->device, workplace->train, workplace->test,
                            &workplace->trainer);
    if (status != STATUS_OK) {
        goto fail;
    }
    return STATUS_OK;

fail:
    workplace_close(workplace);
    return status;
}

void workplace_close(struct workplace *workplace)
{
    trainer_destroy(workplace->trainer);
    device_close(workplace->device);
    dataset_close(workplace->test);
    dataset_close(workplace->train);
    *workplace = (struct workplace){0};
}

static enum status print_line(json_t *object)
{
    char *line = object != NULL ? json_dumps(object, JSON_COMPACT) : NULL;
    json_decref(object);
    if (line == NULL) {
        return STATUS_NO_MEMORY;
    }
    bool is_written = puts(line) >= 0 && fflush(stdout) == 0;
    free(line);
    return is_written ? STATUS_OK : STATUS_IO;
}

enum status workplace_probe(void)
{
    char text[JOB_TEXT_BYTES], error[OPTION_ERROR_BYTES], program[512];
    struct job job;
    text[fread(text, 1, sizeof(text) - 1, stdin)] = '\0';
    if (job_decode(text, &job, error, sizeof(error)) != STATUS_OK) {
        log_error("the job on standard input: %s", error);
        return STATUS_INVALID;
    }
    struct workplace workplace;
    enum status status = workplace_open(&workplace, &job, &(struct workplace_seat){.rank = 0});
    if (status != STATUS_OK) {
        return status;
    }
    struct link_prepared prepared;
    trainer_describe(workplace.trainer, &prepared);
    trainer_describe_program(workplace.trainer, program, sizeof(program));
    status = print_line(json_pack("{s:s, s:I, s:I, s:I, s:s, s:s}", "model", job.model,
                                  "parameters", (json_int_t)prepared.parameters, "train_samples",
                                  (json_int_t)prepared.train_samples, "test_samples",
                                  (json_int_t)prepared.test_samples, "device", prepared.device,
                                  "program", program));
    workplace_close(&workplace);
    return status;
}

enum status workplace_print_backends(void)
{
    enum status status = STATUS_OK;
    for (const struct device_ops *const *backend = device_backends();
         *backend != NULL && status == STATUS_OK; backend++) {
        char why[256] = "", list[1024] = "";
        bool is_available = (*backend)->is_available(why, sizeof(why));
        if ((*backend)->list != NULL) {
            (*backend)->list(list, sizeof(list));
        }
        status = print_line(json_pack("{s:s, s:b, s:s, s:s, s:s}", "name", (*backend)->name,
                                      "available", is_available, "summary", (*backend)->summary,
                                      "why", why, "list", list));
    }
    return status;
}
