/* Works out what follows from a job: batches, steps, the schedule. */
#include "common/job/job.h"

#include "common/vector/layout.h"

#include <assert.h>
#include <math.h>
#include <string.h>

bool job_tunes_buckets(const struct job *job)
{
    return job->bucket_mb <= 0;
}

uint32_t job_shard_count(const struct job *job)
{
    return job->servers * job->server_threads;
}

uint32_t job_first_server(const struct job *job)
{
    return job->servers > 0 && job->coordinator_role == COORDINATOR_APART ? 1 : 0;
}

uint32_t job_ps_count(const struct job *job)
{
    return job->servers > 0 ? job_first_server(job) + job->servers : 1;
}

/* Whether or not it is left out. */
static uint32_t part_of(const struct job *job, uint32_t rank)
{
    return (uint32_t)span_part((struct span){0, job->global_batch}, job->workers, rank).count;
}

uint32_t job_batch_of(const struct job *job, uint32_t rank)
{
    assert(rank < job->workers);
    return rank_list_has(&job->left_out, rank) ? 0 : part_of(job, rank);
}

uint32_t job_batch_present(const struct job *job)
{
    uint32_t count = job->global_batch;
    for (uint32_t i = 0; i < job->left_out.count; i++) {
        count -= part_of(job, job->left_out.ranks[i]);
    }
    return count;
}

uint32_t job_batch_max(const struct job *job)
{
    return part_of(job, 0); // the first part is as long as any
}

double job_disk_fail_s(const struct job *job)
{
    return job->stall_fail / 2;
}

uint64_t job_train_samples(const struct job *job, uint64_t available)
{
    return job->limit_train > 0 && job->limit_train < available ? job->limit_train : available;
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

struct trace_window job_timeline(const struct job *job)
{
    return job->timeline ? job->timeline_steps : (struct trace_window){0};
}

uint32_t job_timing_seconds(const struct job *job)
{
    return job->cuda_engines == JOB_ENGINES_TIMED ? 120 : 0; // as --help says
}

struct schedule job_schedule(const struct job *job, uint64_t sample_count)
{
    uint64_t per_epoch = job_steps_per_epoch(job, sample_count);
    uint64_t warmup_steps = steps_of(job->warmup_epochs, per_epoch);
    uint64_t period_steps = steps_of(job->lr_step_epochs, per_epoch);
    bool is_linear = job->lr_scale == LR_SCALE_LINEAR;
    return (struct schedule){
        .kind = job->lr_schedule,
        .base_rate = is_linear ? job->lr * job->lr_workers : job->lr,
        // Without a scale there is no rate of one worker to begin with. It begins near 0: at 0 the
        // first step would change nothing.
        .start_rate = is_linear ? job->lr : job->lr / ((double)warmup_steps + 1),
        .warmup_steps = warmup_steps,
        .period_steps = period_steps > 0 ? period_steps : 1,
        .gamma = job->lr_gamma,
        .total_steps = job_total_steps(job, sample_count),
    };
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

bool job_is_external(const struct job *job)
{
    return strncmp(job->model, JOB_EXTERNAL_PREFIX, strlen(JOB_EXTERNAL_PREFIX)) == 0;
}

bool job_is_open(const struct job *job)
{
    return job_is_external(job) && job->steps == JOB_STEPS_OPEN;
}

uint64_t job_known_steps(const struct job *job, uint64_t sample_count)
{
    return job_is_open(job) ? 0 : job_total_steps(job, sample_count);
}

const char *job_optimizer_text(const struct job *job)
{
    return job->optimizer == OPTIMIZER_AUTO ? JOB_OPTIMIZER_OF_PROGRAM
                                            : names_optimizers[job->optimizer].name;
}
