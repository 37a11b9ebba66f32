/* Resolving a job, moving it as text, and what follows from it. */
#include "common/job/job.h"

#include "common/job/job_checks.h"
#include "common/job/phases.h"
#include "common/options/names.h"
#include "common/vector/layout.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define DEFAULT_BATCH 32

static bool mode_is(const struct job *job, const char *mode)
{
    return strcmp(job->mode, mode) == 0;
}

static enum status resolve_batch(struct job *job, char *ret_error, size_t error_size)
{
    uint32_t workers = job->workers;
    if (job->batch == 0 && job->global_batch == 0) {
        job->batch = DEFAULT_BATCH;
    }
    if (job->global_batch == 0) {
        uint64_t global = (uint64_t)job->batch * workers;
        if (global > JOB_BATCH_MAX) {
            snprintf(ret_error, error_size,
                     "--batch %u times %u workers is more than the %u images that a step may have",
                     job->batch, workers, JOB_BATCH_MAX);
            return STATUS_INVALID;
        }
        job->global_batch = (uint32_t)global;
    }
    if (job->global_batch < workers) {
        snprintf(
            ret_error, error_size,
            "--global-batch %u leaves some of the %u workers without an image: make it larger, "
            "or use fewer --workers",
            job->global_batch, workers);
        return STATUS_INVALID;
    }
    uint32_t share = (job->global_batch + workers - 1) / workers;
    if (job->batch != 0 && job->batch != share) {
        snprintf(ret_error, error_size,
                 "--batch %u and --global-batch %u contradict each other with %u workers: give one "
                 "of them",
                 job->batch, job->global_batch, workers);
        return STATUS_INVALID;
    }
    job->batch = share;
    return STATUS_OK;
}

static enum status resolve_length(struct job *job, char *ret_error, size_t error_size)
{
    if (job->epochs != 0 && job->steps != 0) {
        snprintf(ret_error, error_size,
                 "--epochs %u and --steps %llu contradict each other: give one of them",
                 job->epochs, (unsigned long long)job->steps);
        return STATUS_INVALID;
    }
    if (job->epochs == 0 && job->steps == 0) {
        job->epochs = 1;
    }
    return STATUS_OK;
}

static enum status resolve_optimizer(struct job *job, char *ret_error, size_t error_size)
{
    if (job->lr <= 0) {
        job->lr = optimizer_default_rate(job->optimizer);
    }
    optimizer_fill_defaults(job->optimizer, &job->settings);
    // As the loops have it; a divisor that vanishes there is what epsilon is to prevent.
    if (job->settings.epsilon > 0 && (float)job->settings.epsilon <= 0) {
        snprintf(ret_error, error_size, "--epsilon %g is 0 in single precision: make it larger",
                 job->settings.epsilon);
        return STATUS_INVALID;
    }
    return STATUS_OK;
}

enum status job_resolve(struct job *job, char *ret_error, size_t error_size)
{
    enum status status = resolve_length(job, ret_error, error_size);
    if (status != STATUS_OK) {
        return status;
    }
    status = resolve_batch(job, ret_error, error_size);
    if (status != STATUS_OK) {
        return status;
    }
    if (job->stall_warn > job->stall_fail) {
        snprintf(ret_error, error_size,
                 "--stall-warn %g is longer than --stall-fail %g: there would be no warning",
                 job->stall_warn, job->stall_fail);
        return STATUS_INVALID;
    }
    if (strcmp(job->lr_scale, "linear") != 0) {
        job->lr_workers = 1; // counts for nothing: jobs that differ in it are the same
    } else if (job->lr_workers == 0) {
        job->lr_workers = job->workers;
    }
    if (mode_is(job, "local")) {
        job->workers = 1;
        job->batch = job->global_batch;
        job->sync_every = 1; // one worker is in step with itself
    }
    if (!job_has_mode(job, "ring")) {
        snprintf(job->all_reduce, sizeof(job->all_reduce), "auto"); // counts for nothing
    }
    if (mode_is(job, "local")) {
        snprintf(job->compress, sizeof(job->compress), "none");
    }
    if (!job_has_servers(job)) {
        job->servers = 0;
    } else if (job->servers == 0) {
        snprintf(ret_error, error_size, "mode %s needs at least one of --servers",
                 mode_is(job, "ring") ? job->switches : job->mode);
        return STATUS_INVALID;
    }
    status = job_check(job, ret_error, error_size);
    if (status != STATUS_OK) {
        return status;
    }
    return resolve_optimizer(job, ret_error, error_size);
}

bool job_tunes_buckets(const struct job *job)
{
    return job->bucket_mb <= 0;
}

uint64_t job_bucket_bytes(const struct job *job)
{
    return job_tunes_buckets(job) ? phases_trial_bytes(0)
                                  : (uint64_t)(job->bucket_mb * 1024 * 1024);
}

uint32_t job_shard_count(const struct job *job)
{
    return job->servers * job->server_threads;
}

enum status job_encode(const struct job *job, char *ret_text, size_t text_size)
{
    size_t used = 0;
    for (size_t i = 0; i < job_option_count; i++) {
        char value[OPTION_VALUE_BYTES];
        option_format(&job_options[i], job, value, sizeof(value));
        int wrote =
            snprintf(ret_text + used, text_size - used, "%s=%s\n", job_options[i].name, value);
        if (wrote < 0 || (size_t)wrote >= text_size - used) {
            return STATUS_INVALID;
        }
        used += (size_t)wrote;
    }
    return STATUS_OK;
}

/* Sets the option of one line. */
static enum status decode_line(const char *line, size_t size, const struct option_set *set,
                               char *ret_error, size_t error_size)
{
    char name[64], value[OPTION_VALUE_BYTES];
    const char *equals = memchr(line, '=', size);
    size_t name_size = equals != NULL ? (size_t)(equals - line) : size;
    if (equals == NULL || name_size >= sizeof(name) || size - name_size - 1 >= sizeof(value)) {
        snprintf(ret_error, error_size, "the line '%.*s' is no name=value",
                 (int)(size < 60 ? size : 60), line);
        return STATUS_INVALID;
    }
    memcpy(name, line, name_size);
    name[name_size] = '\0';
    memcpy(value, equals + 1, size - name_size - 1);
    value[size - name_size - 1] = '\0';
    return options_set_text(set, 1, name, value, ret_error, error_size);
}

enum status job_decode(const char *text, struct job *ret_job, char *ret_error, size_t error_size)
{
    static const struct job zero;
    struct job job = zero;
    struct option_set set = job_option_set(&job);
    options_reset(&set);
    while (*text != '\0') {
        size_t size = strcspn(text, "\n");
        enum status status = decode_line(text, size, &set, ret_error, error_size);
        if (status != STATUS_OK) {
            return status;
        }
        text += size + (text[size] == '\n');
    }
    enum status status = job_resolve(&job, ret_error, error_size);
    if (status == STATUS_OK) {
        *ret_job = job;
    }
    return status;
}

uint32_t job_batch_of(const struct job *job, uint32_t rank)
{
    assert(rank < job->workers);
    return (uint32_t)span_part((struct span){0, job->global_batch}, job->workers, rank).count;
}

uint64_t job_steps_per_epoch(const struct job *job, uint64_t sample_count)
{
    return sample_count / job->global_batch;
}

uint64_t job_total_steps(const struct job *job, uint64_t sample_count)
{
    uint64_t steps;
    if (job->steps > 0) {
        return job->steps;
    }
    // The count may come from a peer.
    bool is_too_large =
        __builtin_mul_overflow(job_steps_per_epoch(job, sample_count), job->epochs, &steps);
    return is_too_large ? UINT64_MAX : steps;
}

/* Steps in so many epochs, to the nearest. */
static uint64_t steps_of(double epochs, uint64_t steps_per_epoch)
{
    double steps = floor(epochs * (double)steps_per_epoch + 0.5);
    return steps < 0x1p63 ? (uint64_t)steps : UINT64_C(1) << 63;
}

struct schedule job_schedule(const struct job *job, uint64_t sample_count)
{
    uint64_t per_epoch = job_steps_per_epoch(job, sample_count);
    uint64_t warmup_steps = steps_of(job->warmup_epochs, per_epoch);
    uint64_t period_steps = steps_of(job->lr_step_epochs, per_epoch);
    bool is_linear = strcmp(job->lr_scale, "linear") == 0;
    struct schedule schedule = {
        .kind = SCHEDULE_CONSTANT,
        .base_rate = is_linear ? job->lr * job->lr_workers : job->lr,
        // Without a scale there is no rate of one worker to begin with. It begins near 0: at 0 the
        // first step would change nothing.
        .start_rate = is_linear ? job->lr : job->lr / ((double)warmup_steps + 1),
        .warmup_steps = warmup_steps,
        .period_steps = period_steps > 0 ? period_steps : 1,
        .gamma = job->lr_gamma,
        .total_steps = job_total_steps(job, sample_count),
    };
    if (strcmp(job->lr_schedule, "step") == 0) {
        schedule.kind = SCHEDULE_STEP;
    } else if (strcmp(job->lr_schedule, "cosine") == 0) {
        schedule.kind = SCHEDULE_COSINE;
    }
    return schedule;
}

void job_split_data(const char *data, char ret_name[JOB_NAME_BYTES], const char **ret_path)
{
    size_t size = strcspn(data, ":");
    const char *path = data[size] == ':' ? data + size + 1 : data + size;
    if (size >= JOB_NAME_BYTES) {
        size = JOB_NAME_BYTES - 1; // longer than any name there is
    }
    memcpy(ret_name, data, size);
    ret_name[size] = '\0';
    *ret_path = path;
}
