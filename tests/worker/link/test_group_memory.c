/* Tests of the memory of a group: workers of this process, who map what the others offer. */
#include "worker/link/group_memory.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <stdio.h>
#include <string.h>

#define WORLD        3
#define PLACES_BYTES ((size_t)WORLD * ENDPOINTS_PLACE_BYTES)

static const struct layout layout = {
    .value_count = 4000, .bucket_count = 2, .buckets = {{1000, 3000}, {0, 1000}}};

struct worker {
    struct region region; // of its gradients, or empty
    float own[4000];      // where it has no region
    struct group_memory memory;
    char place[ENDPOINTS_PLACE_BYTES];
};

static const struct region *region_of(const struct worker *worker)
{
    return worker->region.bytes != NULL ? &worker->region : NULL;
}

static float *grads_of(struct worker *worker)
{
    return worker->region.bytes != NULL ? worker->region.bytes : worker->own;
}

/* Workers with a region where the bit of their rank is set; all have offered what they have. */
static void open_workers(struct worker workers[WORLD], uint32_t have_region, char *places)
{
    memset(workers, 0, WORLD * sizeof(*workers));
    size_t length = 0;
    for (uint32_t i = 0; i < WORLD; i++) {
        struct worker *worker = &workers[i];
        if (have_region >> i & 1) {
            size_t bytes = layout.value_count * sizeof(float);
            assert_int_equal(region_create(bytes, &worker->region), STATUS_OK);
        }
        (void)snprintf(worker->place, sizeof(worker->place), "00000000000000ab tcp://127.0.0.1:1");
        const struct group_members members = {{WORLD, WORLD}, i};
        assert_int_equal(group_memory_offer(&worker->memory, &members, &layout, region_of(worker),
                                            worker->place),
                         STATUS_OK);
        length += (size_t)snprintf(places + length, PLACES_BYTES - length, "%s\n", worker->place);
    }
}

static void close_workers(struct worker workers[WORLD])
{
    for (uint32_t i = 0; i < WORLD; i++) {
        group_memory_finish(&workers[i].memory);
        region_destroy(&workers[i].region);
    }
}

static bool never(void *context)
{
    (void)context;
    return false;
}

/* On one thread: of a bucket that is small enough, nobody has to wait for anybody twice. */
static void exchange_bucket(struct worker workers[WORLD], uint32_t bucket)
{
    struct span span = layout.buckets[bucket];
    for (uint32_t i = 0; i < WORLD; i++) {
        for (uint64_t k = 0; k < span.count; k++) {
            grads_of(&workers[i])[span.offset + k] = (float)(3 * (i + k));
        }
        assert_int_equal(group_arrive(workers[i].memory.group, bucket), STATUS_OK);
    }
    for (uint32_t i = 0; i < WORLD; i++) {
        assert_int_equal(group_wait(workers[i].memory.group, bucket, never, NULL), STATUS_OK);
    }
    for (uint32_t i = 0; i < WORLD; i++) {
        for (uint64_t k = 0; k < span.count; k++) {
            assert_true(grads_of(&workers[i])[span.offset + k] == (float)(3 * (1 + k)));
        }
    }
}

static void check_that_they_exchange(uint32_t have_region)
{
    static struct worker workers[WORLD];
    char places[PLACES_BYTES];
    open_workers(workers, have_region, places);
    for (uint32_t i = 0; i < WORLD; i++) {
        struct group_memory *memory = &workers[i].memory;
        assert_int_equal(group_memory_map(memory, places, region_of(&workers[i])), STATUS_OK);
    }
    for (uint32_t i = 0; i < WORLD; i++) {
        struct group_memory *memory = &workers[i].memory;
        float *const vectors[] = {grads_of(&workers[i])};
        assert_int_equal(group_memory_begin(memory, &layout, vectors), STATUS_OK);
    }
    exchange_bucket(workers, 1);
    close_workers(workers);
}

static void workers_that_have_mapped_each_others_gradients_exchange_them(void **state)
{
    (void)state;
    check_that_they_exchange(7);
}

static void workers_whose_gradients_lie_elsewhere_exchange_them_by_bounce_buffers(void **state)
{
    (void)state;
    check_that_they_exchange(0);
}

static void workers_of_which_some_offer_gradients_and_others_do_not_all_refuse(void **state)
{
    (void)state;
    static struct worker workers[WORLD];
    for (uint32_t have_region = 1; have_region < 7; have_region++) {
        char places[PLACES_BYTES];
        open_workers(workers, have_region, places);
        for (uint32_t i = 0; i < WORLD; i++) {
            struct group_memory *memory = &workers[i].memory;
            assert_int_equal(group_memory_map(memory, places, region_of(&workers[i])),
                             STATUS_UNREACHABLE);
            float *const vectors[] = {grads_of(&workers[i])};
            assert_int_equal(group_memory_begin(memory, &layout, vectors), STATUS_MALFORMED);
        }
        close_workers(workers);
    }
}

/* Ranks 0 and 1 are carried by the first of two processes, rank 2 by the other. */
static const struct carriers two_carry_three = {3, 2};

/* A process with vectors for so many ranks, as it has said. */
static void open_process(struct worker *worker, uint32_t process, uint32_t vector_count,
                         char *places)
{
    const struct group_members members = {two_carry_three, process};
    uint64_t floats = (vector_count - 1) * layout_stride(layout.value_count) + layout.value_count;
    *worker = (struct worker){0};
    assert_int_equal(region_create(floats * sizeof(float), &worker->region), STATUS_OK);
    (void)snprintf(worker->place, sizeof(worker->place), "00000000000000ab tcp://127.0.0.1:1");
    assert_int_equal(
        group_memory_offer(&worker->memory, &members, &layout, &worker->region, worker->place),
        STATUS_OK);
    size_t length = strlen(places);
    (void)snprintf(places + length, PLACES_BYTES - length, "%s\n", worker->place);
}

static void processes_map_a_vector_for_each_rank_that_the_others_carry(void **state)
{
    (void)state;
    static struct worker workers[2];
    char places[PLACES_BYTES] = "";
    struct span span = layout.buckets[1];
    float *first, *vectors[3];
    open_process(&workers[0], 0, 2, places);
    open_process(&workers[1], 1, 1, places);
    first = workers[0].region.bytes;
    vectors[0] = first;
    vectors[1] = first + layout_stride(layout.value_count);
    vectors[2] = workers[1].region.bytes;
    for (uint32_t i = 0; i < 2; i++) {
        struct group_memory *memory = &workers[i].memory;
        assert_int_equal(group_memory_map(memory, places, &workers[i].region), STATUS_OK);
        assert_int_equal(group_memory_begin(memory, &layout, &vectors[(size_t)2 * i]), STATUS_OK);
    }
    for (uint32_t rank = 0; rank < 3; rank++) {
        for (uint64_t k = 0; k < span.count; k++) {
            vectors[rank][span.offset + k] = (float)(3 * (rank + k));
        }
    }
    for (uint32_t i = 0; i < 2; i++) {
        assert_int_equal(group_arrive(workers[i].memory.group, 1), STATUS_OK);
    }
    for (uint32_t i = 0; i < 2; i++) {
        assert_int_equal(group_wait(workers[i].memory.group, 1, never, NULL), STATUS_OK);
        for (uint64_t k = 0; k < span.count; k++) {
            assert_true(vectors[1 + i][span.offset + k] == (float)(3 * (1 + k)));
        }
    }
    for (uint32_t i = 0; i < 2; i++) {
        group_memory_finish(&workers[i].memory);
        region_destroy(&workers[i].region);
    }
}

static void a_process_that_offers_fewer_vectors_than_it_has_ranks_is_refused(void **state)
{
    (void)state;
    static struct worker workers[2];
    char places[PLACES_BYTES] = "";
    open_process(&workers[0], 0, 1, places);
    open_process(&workers[1], 1, 1, places);
    assert_int_equal(group_memory_map(&workers[1].memory, places, &workers[1].region),
                     STATUS_UNREACHABLE);
    for (uint32_t i = 0; i < 2; i++) {
        group_memory_finish(&workers[i].memory);
        region_destroy(&workers[i].region);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(workers_that_have_mapped_each_others_gradients_exchange_them),
        cmocka_unit_test(workers_whose_gradients_lie_elsewhere_exchange_them_by_bounce_buffers),
        cmocka_unit_test(workers_of_which_some_offer_gradients_and_others_do_not_all_refuse),
        cmocka_unit_test(processes_map_a_vector_for_each_rank_that_the_others_carry),
        cmocka_unit_test(a_process_that_offers_fewer_vectors_than_it_has_ranks_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
