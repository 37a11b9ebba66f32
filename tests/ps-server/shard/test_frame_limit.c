/* Tests of the largest frame that a shard takes: whatever a model is cut into, it is enough. */
#include "common/job/phases.h"
#include "ps-server/shard/frame_limit.h"
#include "tests/support/common/captured_log.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <string.h>

#define MIB (UINT64_C(1) << 20)

// Floats of what is one and a half times the size of a bucket, 1 MiB: it is not cut.
#define FITTING UINT64_C(393216)

static struct job job_of(double bucket_mb, uint32_t servers)
{
    return (struct job){.bucket_mb = bucket_mb, .servers = servers, .server_threads = 1};
}

/* A model of these tensors, in floats, each a layer of its own, as workers cut it. */
static struct layout cut(const struct job *job, const uint64_t *counts, uint32_t count)
{
    struct span tensors[8];
    const unsigned char may_close[8] = {1, 1, 1, 1, 1, 1, 1, 1};
    struct layout layout;
    uint64_t offset = 0;
    for (uint32_t i = 0; i < count; i++) {
        tensors[i] = (struct span){offset, counts[i]};
        offset += counts[i];
    }
    assert_int_equal(
        layout_make_buckets(tensors, may_close, count, phases_bucket_bytes(job), &layout),
        STATUS_OK);
    layout_split_buckets(&layout, phases_bucket_bytes(job));
    return layout;
}

static void the_limit_is_small_where_buckets_are(void **state)
{
    (void)state;
    struct job job = job_of(1, 1);
    assert_int_equal(frame_limit_of(&job), FRAME_LIMIT_MIN);
    job.bucket_mb = 0.001;
    assert_int_equal(frame_limit_of(&job), FRAME_LIMIT_MIN);
    job.bucket_mb = 0; // auto: up to 16 MiB are tried
    assert_int_equal(frame_limit_of(&job), 32 * MIB);
    job.bucket_mb = 65536;
    assert_int_equal(frame_limit_of(&job), 65536 * (2 * MIB));
}

static void buckets_of_a_large_model_are_within_it_at_any_size(void **state)
{
    (void)state;
    // The dense layers of VGG-16, and what just fits a bucket, or just does not.
    const uint64_t counts[] = {1792,    FITTING - 1, FITTING,  FITTING + 1,
                               2359808, 102764544,   16781312, 4097000};
    const double sizes[] = {0.001, 0.05, 0.3, 1, 7, 16, 100, 1000, 0};
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        for (uint32_t servers = 1; servers <= 3; servers += 2) {
            const struct job job = job_of(sizes[i], servers);
            struct layout fine = cut(&job, counts, 8), merged;
            assert_int_equal(frame_limit_check(&job, &fine, 0), STATUS_OK);
            for (uint32_t trial = 0; sizes[i] <= 0 && trial < PHASES_TRIALS; trial++) {
                layout_merge(&fine, phases_trial_bytes(trial), &merged);
                assert_int_equal(frame_limit_check(&job, &merged, servers - 1), STATUS_OK);
            }
        }
    }
}

static void a_bucket_that_is_not_within_it_is_refused_with_what_helps(void **state)
{
    (void)state;
    struct job job = job_of(1, 2);
    struct layout layout = {.value_count = 8 * MIB, .bucket_count = 1, .buckets = {{0, 8 * MIB}}};
    captured_log_begin();
    assert_int_equal(frame_limit_check(&job, &layout, 0), STATUS_INVALID);
    assert_non_null(strstr(captured_log_end(), "give --bucket-mb 17 or more"));
    job.servers = 3; // each with a part of it
    assert_int_equal(frame_limit_check(&job, &layout, 0), STATUS_OK);
    job = job_of(17, 2);
    assert_int_equal(frame_limit_check(&job, &layout, 0), STATUS_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_limit_is_small_where_buckets_are),
        cmocka_unit_test(buckets_of_a_large_model_are_within_it_at_any_size),
        cmocka_unit_test(a_bucket_that_is_not_within_it_is_refused_with_what_helps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
