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
        assert_int_equal(group_memory_offer(&worker->memory, i, WORLD, &layout, region_of(worker),
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
        assert_int_equal(group_memory_map(memory, places, i, WORLD, region_of(&workers[i])),
                         STATUS_OK);
    }
    for (uint32_t i = 0; i < WORLD; i++) {
        struct group_memory *memory = &workers[i].memory;
        assert_int_equal(group_memory_begin(memory, i, WORLD, &layout, grads_of(&workers[i])),
                         STATUS_OK);
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
            assert_int_equal(group_memory_map(memory, places, i, WORLD, region_of(&workers[i])),
                             STATUS_UNREACHABLE);
            assert_int_equal(group_memory_begin(memory, i, WORLD, &layout, grads_of(&workers[i])),
                             STATUS_MALFORMED);
        }
        close_workers(workers);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(workers_that_have_mapped_each_others_gradients_exchange_them),
        cmocka_unit_test(workers_whose_gradients_lie_elsewhere_exchange_them_by_bounce_buffers),
        cmocka_unit_test(workers_of_which_some_offer_gradients_and_others_do_not_all_refuse),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
