/* Tests of predictions that are made once. */
#include "deploy/predict/advise/memo.h"
#include "deploy/predict/study/parallel.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <stdatomic.h>
#include <stdio.h>

#define KEYS  8
#define CALLS 400

static atomic_uint made[KEYS];

static enum status make(const void *context, struct prediction *ret_made)
{
    const size_t *key = context;
    atomic_fetch_add(&made[*key], 1);
    *ret_made = (struct prediction){.step_s = (double)*key + 1};
    return *key == KEYS - 1 ? STATUS_INVALID : STATUS_OK;
}

static enum status ask(void *context, size_t index)
{
    struct memo *memo = context;
    struct prediction prediction = {.step_s = 0};
    size_t key = index % KEYS;
    char text[MEMO_KEY_BYTES];
    snprintf(text, sizeof(text), "key %zu", key);
    enum status status = memo_predict(memo, text, make, &key, &prediction);
    bool is_right = key == KEYS - 1 ? status == STATUS_INVALID && prediction.step_s == 0
                                    : status == STATUS_OK && prediction.step_s == (double)key + 1;
    return is_right ? STATUS_OK : STATUS_IO;
}

static void test_each_key_is_predicted_once_by_any_number_of_threads(void **state)
{
    (void)state;
    for (uint32_t threads = 1; threads <= 8; threads *= 2) {
        struct memo *memo = memo_create();
        assert_non_null(memo);
        for (size_t i = 0; i < KEYS; i++) {
            atomic_store(&made[i], 0);
        }
        assert_int_equal(parallel_run(CALLS, threads, ask, memo), STATUS_OK);
        for (size_t i = 0; i < KEYS; i++) {
            assert_int_equal(atomic_load(&made[i]), 1);
        }
        memo_destroy(memo);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_key_is_predicted_once_by_any_number_of_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
