/* Tests of who is told when that a push was taken. */
#include "common/base/random.h"
#include "ps-server/shard/credits.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on

#define WORKERS 3
#define BUCKETS 5

static bool push(struct credits *credits, uint32_t rank, uint32_t bucket, uint64_t bytes)
{
    const struct credit credit = {.step = 9, .bytes = bytes, .rank = rank, .bucket = bucket};
    credits_add(credits, &credit);
    struct credit taken;
    return credits_take(credits, &taken);
}

static void who_has_pushed_least_is_told_at_once_and_others_when_it_has_caught_up(void **state)
{
    (void)state;
    struct credits credits = {0};
    assert_int_equal(credits_begin(&credits, WORKERS, BUCKETS, true), STATUS_OK);
    assert_false(push(&credits, 0, 4, 100));
    assert_false(push(&credits, 0, 3, 100));
    assert_false(push(&credits, 2, 1, 100));
    const struct credit last = {.step = 9, .bytes = 100, .rank = 1, .bucket = 0};
    credits_add(&credits, &last);
    // One of each, of what came first; whatever their buckets are.
    const uint32_t expected[WORKERS] = {4, 0, 1};
    struct credit taken;
    for (uint32_t i = 0; i < WORKERS; i++) {
        assert_true(credits_take(&credits, &taken));
        assert_int_equal(taken.step, 9);
        assert_int_equal(taken.bucket, expected[taken.rank]);
    }
    assert_false(credits_take(&credits, &taken));
    credits_finish(&credits);
}

static void where_workers_are_free_everybody_is_told_at_once(void **state)
{
    (void)state;
    struct credits credits = {0};
    assert_int_equal(credits_begin(&credits, WORKERS, BUCKETS, false), STATUS_OK);
    for (uint32_t i = 0; i < 3 * BUCKETS; i++) {
        assert_true(push(&credits, 1, i % BUCKETS, 100));
    }
    credits_finish(&credits);
}

/* Workers push all buckets of each step, each in an order of its own and with two on their way at
 * most; a step begins when all have pushed everything. */
static void random_orders_never_end_in_a_wait_of_all(void **state)
{
    (void)state;
    struct random_sequence random = {.state = 5};
    struct credits credits = {0};
    uint64_t bytes[BUCKETS];
    for (uint32_t trial = 0; trial < 2000; trial++) {
        assert_int_equal(credits_begin(&credits, WORKERS, BUCKETS, true), STATUS_OK);
        for (uint32_t i = 0; i < BUCKETS; i++) {
            bytes[i] = 1 + random_next(&random) % 1000;
        }
        for (uint64_t step = 0; step < 3; step++) {
            bool is_pushed[WORKERS][BUCKETS] = {{false}};
            uint32_t travelling[WORKERS] = {0}, left = WORKERS * BUCKETS;
            for (uint32_t idle = 0; left > 0; idle++) {
                assert_true(idle < 100000); // somebody can always go on
                uint32_t rank = (uint32_t)(random_next(&random) % WORKERS);
                uint32_t bucket = (uint32_t)(random_next(&random) % BUCKETS);
                if (travelling[rank] == 2 || is_pushed[rank][bucket]) {
                    continue;
                }
                struct credit credit = {
                    .step = step, .bytes = bytes[bucket], .rank = rank, .bucket = bucket};
                is_pushed[rank][bucket] = true;
                travelling[rank]++;
                left--;
                credits_add(&credits, &credit);
                while (credits_take(&credits, &credit)) {
                    assert_true(is_pushed[credit.rank][credit.bucket]);
                    travelling[credit.rank]--;
                }
            }
            for (uint32_t rank = 0; rank < WORKERS; rank++) {
                assert_int_equal(travelling[rank], 0); // all were told of all
            }
        }
    }
    credits_finish(&credits);
}

/* A worker that pushes more than a step has gains nothing by it, and breaks nothing. */
static void more_pushes_than_buckets_are_survived(void **state)
{
    (void)state;
    struct credits credits = {0};
    assert_int_equal(credits_begin(&credits, WORKERS, BUCKETS, true), STATUS_OK);
    for (uint32_t i = 0; i < 10 * BUCKETS; i++) {
        assert_false(push(&credits, 0, 0, UINT64_C(1) << 40));
    }
    assert_false(push(&credits, 1, 0, 1));
    assert_true(push(&credits, 2, 0, 1));
    credits_finish(&credits);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_has_pushed_least_is_told_at_once_and_others_when_it_has_caught_up),
        cmocka_unit_test(where_workers_are_free_everybody_is_told_at_once),
        cmocka_unit_test(random_orders_never_end_in_a_wait_of_all),
        cmocka_unit_test(more_pushes_than_buckets_are_survived),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
