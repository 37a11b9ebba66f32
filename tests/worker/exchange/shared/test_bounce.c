/* Tests of bounce buffers: N workers in one thread, who do one thing after another in random order.
 */
#include "common/base/random.h"
#include "worker/exchange/shared/bounce.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <stdlib.h>
#include <string.h>

#define WORLD_MAX 9
#define ROUNDS    3

struct job {
    uint32_t world;
    const struct layout *layout;
    unsigned char *start;
    struct bounce *bounces[WORLD_MAX];
    float *vectors[WORLD_MAX];
    uint32_t ready[WORLD_MAX]; // buckets of this round that a worker has said are
    uint64_t draws;
};

static float value_of(uint32_t rank, uint64_t round, uint64_t index)
{
    uint64_t key = random_key(23, RANDOM_SPLIT, rank, round);
    return random_unit_float(random_element(key, (uint32_t)index)) - 0.5f;
}

static uint32_t draw(struct job *job, uint32_t below)
{
    uint64_t key = random_key(31, RANDOM_SPLIT, job->world, job->draws++);
    return random_element(key, 0) % below;
}

static void open_job(struct job *job, uint32_t world, const struct layout *layout)
{
    *job = (struct job){.world = world, .layout = layout};
    size_t bytes =
        (bounce_bytes(world) + BOUNCE_ALIGNMENT - 1) / BOUNCE_ALIGNMENT * BOUNCE_ALIGNMENT;
    job->start = aligned_alloc(BOUNCE_ALIGNMENT, bytes);
    memset(job->start, 0, bytes);
    for (uint32_t i = 0; i < world; i++) {
        job->vectors[i] = calloc(layout->value_count, sizeof(float));
        const struct bounce_options options = {
            .rank = i,
            .world = world,
            .layout = layout,
            .vector = job->vectors[i],
            .start = job->start,
        };
        assert_int_equal(bounce_create(&options, &job->bounces[i]), STATUS_OK);
    }
}

static void close_job(struct job *job)
{
    for (uint32_t i = 0; i < job->world; i++) {
        bounce_destroy(job->bounces[i]);
        free(job->vectors[i]);
    }
    free(job->start);
}

static void begin_round(struct job *job, uint64_t round)
{
    for (uint32_t i = 0; i < job->world; i++) {
        job->ready[i] = 0;
        for (uint64_t k = 0; k < job->layout->value_count; k++) {
            job->vectors[i][k] = value_of(i, round, k);
        }
    }
}

static bool has_all(const struct job *job, uint32_t rank)
{
    bool is_complete = job->ready[rank] == job->layout->bucket_count;
    for (uint32_t bucket = 0; bucket < job->layout->bucket_count && is_complete; bucket++) {
        is_complete = bounce_is_complete(job->bounces[rank], bucket);
    }
    return is_complete;
}

/* One thing, by some worker. Returns whether any of them has something left to do. */
static bool go_on(struct job *job)
{
    uint32_t first = draw(job, job->world);
    for (uint32_t k = 0; k < job->world; k++) {
        uint32_t rank = (first + k) % job->world;
        struct bounce *bounce = job->bounces[rank];
        if (job->ready[rank] < job->layout->bucket_count && draw(job, 3) == 0) {
            bounce_arrive(bounce, job->ready[rank]++);
            return true;
        }
        bool has_work = bounce_has_work(bounce);
        bool did = bounce_work(bounce) != BOUNCE_NOTHING;
        assert_true(did == has_work);
        if (did) {
            return true;
        }
    }
    for (uint32_t rank = 0; rank < job->world; rank++) {
        if (job->ready[rank] < job->layout->bucket_count) {
            return true;
        }
    }
    return false;
}

static void check_round(const struct job *job, uint64_t round)
{
    uint32_t world = job->world;
    for (uint32_t bucket = 0; bucket < job->layout->bucket_count; bucket++) {
        for (uint32_t chunk = 0; chunk < world; chunk++) {
            struct span span = span_part(job->layout->buckets[bucket], world, chunk);
            for (uint64_t i = span.offset; i < span.offset + span.count; i++) {
                float sum = value_of(chunk, round, i);
                for (uint32_t k = 1; k < world; k++) {
                    sum += value_of((chunk + k) % world, round, i);
                }
                sum *= 1.0f / (float)world;
                for (uint32_t rank = 0; rank < world; rank++) {
                    assert_memory_equal(&job->vectors[rank][i], &sum, sizeof(sum));
                }
            }
        }
    }
}

static void every_worker_gets_the_mean_whoever_does_what_when(void **state)
{
    (void)state;
    // Several pieces of both sizes, of less floats than workers, and more buckets than buffers.
    struct layout layout = {.value_count = 160000, .bucket_count = 14};
    uint64_t counts[] = {140000, 9000, 5000, 2048, 2049, 3, 1, 40, 700, 500, 300, 200, 100, 59};
    uint64_t end = layout.value_count;
    for (uint32_t i = 0; i < layout.bucket_count; i++) {
        end -= counts[i];
        layout.buckets[i] = (struct span){end, counts[i]};
    }
    assert_int_equal(end, 0);
    for (uint32_t world = 1; world <= WORLD_MAX; world++) {
        struct job job;
        open_job(&job, world, &layout);
        for (uint64_t round = 0; round < ROUNDS; round++) {
            begin_round(&job, round);
            while (go_on(&job)) {
            }
            for (uint32_t rank = 0; rank < world; rank++) {
                assert_true(has_all(&job, rank));
            }
            check_round(&job, round);
        }
        close_job(&job);
    }
}

static const struct layout three = {.value_count = 3000, .bucket_count = 1, .buckets = {{0, 3000}}};

static void what_is_in_the_buffers_is_not_there_before_all_have_come(void **state)
{
    (void)state;
    struct job job;
    open_job(&job, 3, &three);
    begin_round(&job, 0);
    for (uint32_t rank = 0; rank < 2; rank++) {
        assert_false(bounce_has_work(job.bounces[rank]));
        bounce_arrive(job.bounces[rank], 0);
        while (bounce_work(job.bounces[rank]) != BOUNCE_NOTHING) {
        }
        assert_false(bounce_is_complete(job.bounces[rank], 0));
        assert_true(job.vectors[rank][0] == value_of(rank, 0, 0));
    }
    close_job(&job);
}

static void who_enters_last_tells_the_owner_and_the_owner_tells_all(void **state)
{
    (void)state;
    static const struct layout one = {.value_count = 60, .bucket_count = 1, .buckets = {{0, 60}}};
    struct job job;
    open_job(&job, 3, &one);
    begin_round(&job, 0);
    for (uint32_t rank = 0; rank < 3; rank++) {
        bounce_arrive(job.bounces[rank], 0);
    }
    assert_int_equal(bounce_work(job.bounces[1]), BOUNCE_WORK); // enters
    assert_int_equal(bounce_work(job.bounces[2]), BOUNCE_NEWS);
    assert_int_equal(bounce_work(job.bounces[2]), BOUNCE_NOTHING);
    assert_int_equal(bounce_work(job.bounces[0]), BOUNCE_WORK); // has it ready
    assert_int_equal(bounce_work(job.bounces[0]), BOUNCE_NEWS); // adds it up
    for (uint32_t rank = 0; rank < 3; rank++) {
        assert_false(bounce_is_complete(job.bounces[rank], 0));
        assert_int_equal(bounce_work(job.bounces[rank]), BOUNCE_WORK); // leaves
        assert_true(bounce_is_complete(job.bounces[rank], 0));
    }
    check_round(&job, 0);
    close_job(&job);
}

static void what_others_write_over_the_buffers_leaves_the_rest_of_memory_alone(void **state)
{
    (void)state;
    struct job job;
    open_job(&job, 2, &three);
    begin_round(&job, 0);
    memset(job.start, 0x5A, bounce_bytes(2));
    bounce_arrive(job.bounces[0], 0);
    while (bounce_work(job.bounces[0]) != BOUNCE_NOTHING) {
    }
    assert_false(bounce_is_complete(job.bounces[0], 0));
    assert_true(job.vectors[1][0] == value_of(1, 0, 0));
    close_job(&job);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_worker_gets_the_mean_whoever_does_what_when),
        cmocka_unit_test(what_is_in_the_buffers_is_not_there_before_all_have_come),
        cmocka_unit_test(who_enters_last_tells_the_owner_and_the_owner_tells_all),
        cmocka_unit_test(what_others_write_over_the_buffers_leaves_the_rest_of_memory_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
