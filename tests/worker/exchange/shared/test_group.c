/* Tests of the all-reduce in shared memory: N workers, each a thread, in random order and speed. */
#include "common/base/random.h"
#include "common/job/carriers.h"
#include "worker/exchange/shared/group.h"
#include "worker/exchange/shared/posts.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define WORLD_MAX 9
#define ROUNDS    12

struct worker {
    uint32_t rank, world; // the first rank, of how many
    struct rank_block ranks;
    uint32_t processes;
    const struct layout *layout;
    float *const *grads; // of all
    bool has_bounce;     // none is mapped
    struct group *group;
    pthread_t thread;
};

static float gradient_of(uint32_t rank, uint64_t round, uint64_t index)
{
    uint64_t key = random_key(11, RANDOM_SPLIT, rank, round);
    return random_unit_float(random_element(key, (uint32_t)index)) - 0.5f;
}

/* The mean in the order of ranks from the chunk's on. */
static float mean_of(const struct worker *worker, struct span bucket, uint64_t round,
                     uint64_t index)
{
    uint32_t chunk = 0, world = worker->world;
    struct span part = span_part(bucket, world, chunk);
    while (index >= part.offset + part.count) {
        part = span_part(bucket, world, ++chunk);
    }
    float sum = gradient_of(chunk, round, index);
    for (uint32_t k = 1; k < world; k++) {
        sum += gradient_of((chunk + k) % world, round, index);
    }
    return sum * (1.0f / (float)world);
}

static bool never(void *context)
{
    (void)context;
    return false;
}

static bool always(void *context)
{
    (void)context;
    return true;
}

/* Some time, another one for each worker, bucket and round. */
static void dawdle(const struct worker *worker, uint64_t round, uint32_t bucket)
{
    uint64_t key = random_key(5, RANDOM_SPLIT, worker->rank, round);
    for (uint32_t i = random_element(key, bucket) % 8; i > 0; i--) {
        sched_yield();
    }
}

static uint32_t last_rank(const struct worker *worker)
{
    return worker->rank + (worker->ranks.count - 1);
}

static void check_bucket(const struct worker *worker, uint64_t round, uint32_t bucket)
{
    struct span span = worker->layout->buckets[bucket];
    for (uint64_t i = span.offset; i < span.offset + span.count; i++) {
        float wanted = mean_of(worker, span, round, i);
        if (memcmp(&worker->grads[last_rank(worker)][i], &wanted, sizeof(wanted)) != 0) {
            fail_msg("rank %u of %u, round %llu, value %llu: %a instead of %a", worker->rank,
                     worker->world, (unsigned long long)round, (unsigned long long)i,
                     (double)worker->grads[last_rank(worker)][i], (double)wanted);
        }
    }
}

static void *train(void *data)
{
    struct worker *worker = data;
    const struct layout *layout = worker->layout;
    for (uint64_t round = 0; round < ROUNDS; round++) {
        for (uint32_t bucket = 0; bucket < layout->bucket_count; bucket++) {
            struct span span = layout->buckets[bucket];
            for (uint32_t rank = worker->rank; rank <= last_rank(worker); rank++) {
                for (uint64_t i = span.offset; i < span.offset + span.count; i++) {
                    worker->grads[rank][i] = gradient_of(rank, round, i);
                }
            }
            dawdle(worker, round, bucket);
            assert_int_equal(group_arrive(worker->group, bucket), STATUS_OK);
        }
        for (uint32_t bucket = 0; bucket < layout->bucket_count; bucket++) {
            assert_int_equal(group_wait(worker->group, bucket, never, NULL), STATUS_OK);
            check_bucket(worker, round, bucket);
        }
    }
    return NULL;
}

static void open_group(struct worker *worker, void *board)
{
    const struct group_options options = {
        .rank = worker->rank,
        .world = worker->world,
        .layout = worker->layout,
        .processes = worker->processes,
        .own = worker->grads[last_rank(worker)],
        .vectors = worker->grads + worker->rank,
        .grads = worker->has_bounce ? NULL : worker->grads,
        .board = board,
    };
    assert_int_equal(group_create(&options, &worker->group), STATUS_OK);
}

static struct worker worker_of(struct carriers carriers, uint32_t process)
{
    struct rank_block ranks = carriers_block(carriers, process);
    return (struct worker){.rank = ranks.first,
                           .world = carriers.ranks,
                           .ranks = ranks,
                           .processes = carriers.processes};
}

static void run_carriers(struct carriers carriers, const struct layout *layout, bool has_bounce)
{
    uint32_t world = carriers.ranks, count = carriers.processes;
    size_t board_bytes = (group_board_bytes(layout, world, has_bounce) + POSTS_ALIGNMENT - 1) /
                         POSTS_ALIGNMENT * POSTS_ALIGNMENT;
    void *board = aligned_alloc(POSTS_ALIGNMENT, board_bytes);
    memset(board, 0, board_bytes);
    float *grads[WORLD_MAX];
    struct worker workers[WORLD_MAX];
    for (uint32_t i = 0; i < world; i++) {
        grads[i] = calloc(layout->value_count, sizeof(float));
    }
    for (uint32_t i = 0; i < count; i++) {
        workers[i] = worker_of(carriers, i);
        workers[i].layout = layout;
        workers[i].grads = grads;
        workers[i].has_bounce = has_bounce;
        open_group(&workers[i], board);
    }
    for (uint32_t i = 0; i < count; i++) {
        pthread_create(&workers[i].thread, NULL, train, &workers[i]);
    }
    for (uint32_t i = 0; i < count; i++) {
        pthread_join(workers[i].thread, NULL);
        group_destroy(workers[i].group);
    }
    for (uint32_t i = 0; i < world; i++) {
        free(grads[i]);
    }
    free(board);
}

/* A process for each rank. */
static void run_group(uint32_t world, const struct layout *layout, bool has_bounce)
{
    run_carriers((struct carriers){.ranks = world, .processes = world}, layout, has_bounce);
}

static void every_worker_gets_the_mean_bit_by_bit(void **state)
{
    (void)state;
    // Buckets of a float, of less floats than workers, and of several blocks.
    struct layout layout = {.value_count = 8004, .bucket_count = 4};
    layout.buckets[0] = (struct span){3004, 5000};
    layout.buckets[1] = (struct span){7, 2997};
    layout.buckets[2] = (struct span){6, 1};
    layout.buckets[3] = (struct span){0, 6};
    for (uint32_t world = 1; world <= WORLD_MAX; world++) {
        run_group(world, &layout, false);
        run_group(world, &layout, true);
    }
    for (uint32_t world = 2; world <= WORLD_MAX; world++) {
        for (uint32_t processes = 1; processes < world; processes++) {
            run_carriers((struct carriers){.ranks = world, .processes = processes}, &layout, false);
        }
    }
}

static void bounce_buffers_are_for_a_process_for_each_rank(void **state)
{
    (void)state;
    struct group *group;
    const struct group_options options = {.world = 3, .processes = 2};
    assert_int_equal(group_create(&options, &group), STATUS_UNSUPPORTED);
}

static void buckets_of_many_large_blocks_are_shared_out(void **state)
{
    (void)state;
    struct layout layout = {.value_count = 300000, .bucket_count = 2};
    layout.buckets[0] = (struct span){100000, 200000};
    layout.buckets[1] = (struct span){0, 100000};
    run_group(2, &layout, false);
    run_group(3, &layout, false);
}

static void what_goes_by_bounce_buffers_fills_them_many_times(void **state)
{
    (void)state;
    struct layout layout = {.value_count = 600000, .bucket_count = 2};
    layout.buckets[0] = (struct span){200000, 400000};
    layout.buckets[1] = (struct span){0, 200000};
    run_group(2, &layout, true);
    run_group(3, &layout, true);
}

static const struct layout single = {.value_count = 8, .bucket_count = 1, .buckets = {{0, 8}}};

static void who_waits_for_a_worker_that_never_comes_can_be_stopped(void **state)
{
    (void)state;
    _Alignas(POSTS_ALIGNMENT) unsigned char board[16384] = {0};
    float mine[8] = {1}, other[8] = {0};
    float *grads[] = {mine, other};
    struct worker worker = worker_of((struct carriers){.ranks = 2, .processes = 2}, 0);
    worker.layout = &single;
    worker.grads = grads;
    assert_in_range(group_board_bytes(&single, 2, false), 1, sizeof(board));
    open_group(&worker, board);
    assert_int_equal(group_arrive(worker.group, 0), STATUS_OK);
    assert_int_equal(group_wait(worker.group, 0, always, NULL), STATUS_INTERRUPTED);
    group_destroy(worker.group);
}

static void the_last_to_come_does_not_wait(void **state)
{
    (void)state;
    _Alignas(POSTS_ALIGNMENT) unsigned char board[16384] = {0};
    float first[8] = {1, 2}, second[8] = {3, 4};
    float *grads[] = {first, second};
    struct worker workers[2];
    for (uint32_t i = 0; i < 2; i++) {
        workers[i] = worker_of((struct carriers){.ranks = 2, .processes = 2}, i);
        workers[i].layout = &single;
        workers[i].grads = grads;
        open_group(&workers[i], board);
    }
    // On one thread: a wait would last for ever, were anything left to others.
    assert_int_equal(group_arrive(workers[1].group, 0), STATUS_OK);
    assert_int_equal(group_arrive(workers[0].group, 0), STATUS_OK);
    for (uint32_t i = 0; i < 2; i++) {
        assert_int_equal(group_wait(workers[i].group, 0, always, NULL), STATUS_OK);
        assert_true(grads[i][0] == 2 && grads[i][1] == 3);
        group_destroy(workers[i].group);
    }
}

static void a_board_that_was_overwritten_is_an_error_and_no_access_outside(void **state)
{
    (void)state;
    static const struct layout blocks = {
        .value_count = 8192, .bucket_count = 1, .buckets = {{0, 8192}}};
    for (size_t place = 0; place < 3; place++) {
        _Alignas(POSTS_ALIGNMENT) uint32_t board[4096] = {0};
        static float mine[8192];
        float *grads[] = {mine};
        struct worker worker = worker_of((struct carriers){.ranks = 1, .processes = 1}, 0);
        worker.layout = &blocks;
        worker.grads = grads;
        open_group(&worker, board);
        assert_in_range(group_board_bytes(&blocks, 1, false), 1, sizeof(board));
        // Behind the header, a line and the cores: who has arrived, what is taken, what is
        // finished.
        board[16 + ALL_REDUCE_SHARED_MAX + place] = 0x40000000;
        enum status status = group_arrive(worker.group, 0);
        if (status == STATUS_OK) {
            status = group_wait(worker.group, 0, always, NULL);
        }
        assert_true(status == (place == 1 ? STATUS_MALFORMED : STATUS_INTERRUPTED));
        group_destroy(worker.group);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_worker_gets_the_mean_bit_by_bit),
        cmocka_unit_test(bounce_buffers_are_for_a_process_for_each_rank),
        cmocka_unit_test(buckets_of_many_large_blocks_are_shared_out),
        cmocka_unit_test(what_goes_by_bounce_buffers_fills_them_many_times),
        cmocka_unit_test(who_waits_for_a_worker_that_never_comes_can_be_stopped),
        cmocka_unit_test(the_last_to_come_does_not_wait),
        cmocka_unit_test(a_board_that_was_overwritten_is_an_error_and_no_access_outside),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
