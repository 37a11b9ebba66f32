/* Works out the largest frame of a job, and rejects buckets beyond it. */
#include "ps-server/shard/frame_limit.h"

#include "common/base/log.h"
#include "common/codec/codec.h"
#include "common/job/phases.h"

/* Buckets are closed once they hold so many bytes. */
static uint64_t largest_target(const struct job *job)
{
    return job_tunes_buckets(job) ? phases_trial_bytes(PHASES_TRIALS - 1)
                                  : phases_bucket_bytes(job);
}

uint64_t frame_limit_of(const struct job *job)
{
    // A bucket is up to one and a half times what was asked for, a code up to five bytes for each
    // of its floats: 15/8. The parts of several shards are smaller.
    uint64_t limit = 2 * largest_target(job);
    return limit > FRAME_LIMIT_MIN ? limit : FRAME_LIMIT_MIN;
}

enum status frame_limit_check(const struct job *job, const struct layout *layout, uint32_t shard)
{
    uint64_t limit = frame_limit_of(job);
    for (uint32_t i = 0; i < layout->bucket_count; i++) {
        struct span part = span_part(layout->buckets[i], job_shard_count(job), shard);
        if (part.count > limit / CODEC_VALUE_BYTES_MAX) {
            log_error("a part of %.1f MiB is too large for the buckets that the job says (this "
                      "shard takes frames of %.1f MiB): give --bucket-mb %.0f or more",
                      (double)part.count * sizeof(float) / (1 << 20), (double)limit / (1 << 20),
                      (double)part.count * sizeof(float) / (1 << 20) + 1);
            return STATUS_INVALID;
        }
    }
    return STATUS_OK;
}
