/* Tests of where buffers lie: none that live at the same time overlap, and memory is shared
 * otherwise. */
#include "common/base/random.h"
#include "worker/device/memory_plan.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <stdbool.h>

#define COUNT_MAX 60

static bool overlap(const struct plan_buffer *a, const struct plan_buffer *b)
{
    bool in_time = a->first <= b->last && b->first <= a->last;
    bool in_place = a->offset < b->offset + b->bytes && b->offset < a->offset + a->bytes;
    return in_time && in_place;
}

static void buffers_that_live_together_never_overlap(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 500; seed++) {
        struct random_sequence random = {.state = seed};
        struct plan_buffer buffers[COUNT_MAX];
        uint32_t count = 1 + (uint32_t)random_below(&random, COUNT_MAX);
        size_t sum = 0;
        for (uint32_t i = 0; i < count; i++) {
            buffers[i] = (struct plan_buffer){.bytes = random_below(&random, 5000),
                                              .first = (uint32_t)random_below(&random, 40)};
            buffers[i].last = buffers[i].first + (uint32_t)random_below(&random, 20);
            sum += buffers[i].bytes + 256;
        }
        const size_t alignment = seed % 2 == 0 ? 64 : 256;
        size_t bytes = memory_plan(buffers, count, alignment);
        assert_in_range(bytes, 0, sum);
        for (uint32_t i = 0; i < count; i++) {
            assert_int_equal(buffers[i].offset % alignment, 0);
            assert_in_range(buffers[i].offset + buffers[i].bytes, 0, bytes);
            for (uint32_t k = 0; k < i; k++) {
                if (overlap(&buffers[i], &buffers[k])) {
                    fail_msg("seed %llu: buffers %u and %u", (unsigned long long)seed, i, k);
                }
            }
        }
    }
}

static void buffers_that_follow_each_other_share_their_place(void **state)
{
    (void)state;
    struct plan_buffer buffers[4];
    for (uint32_t i = 0; i < 4; i++) {
        buffers[i] = (struct plan_buffer){.bytes = 640, .first = 2 * i, .last = 2 * i + 1};
    }
    assert_int_equal(memory_plan(buffers, 4, 64), 640);
}

static void large_buffers_do_not_lie_at_the_same_place_in_their_pages(void **state)
{
    (void)state;
    struct plan_buffer buffers[4];
    for (uint32_t i = 0; i < 4; i++) {
        buffers[i] = (struct plan_buffer){.bytes = 1 << 20, .last = 1};
    }
    memory_plan(buffers, 4, 64);
    for (uint32_t i = 0; i < 4; i++) {
        for (uint32_t k = 0; k < i; k++) {
            assert_int_not_equal(buffers[i].offset % 4096, buffers[k].offset % 4096);
        }
    }
}

static void no_buffers_need_no_memory(void **state)
{
    (void)state;
    assert_int_equal(memory_plan(NULL, 0, 64), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(buffers_that_live_together_never_overlap),
        cmocka_unit_test(buffers_that_follow_each_other_share_their_place),
        cmocka_unit_test(large_buffers_do_not_lie_at_the_same_place_in_their_pages),
        cmocka_unit_test(no_buffers_need_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
