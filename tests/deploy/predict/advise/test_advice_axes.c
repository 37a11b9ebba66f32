/* Tests of what advice chooses among. */
#include "deploy/predict/advise/advice_axes.h"
#include "tests/support/deploy/small_study.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on

/* Of a job of so many workers in a mode, on 8 hosts. */
struct axes_test {
    struct small_study *small;
    struct basis *basis;
};

static struct axes_test open_test(const char *mode, const char *workers)
{
    struct axes_test test = {.small = small_study_create(8, mode, "1", workers)};
    assert_non_null(test.small);
    assert_int_equal(
        study_make_basis(&test.small->study, &test.small->study.points[0], &test.basis), STATUS_OK);
    return test;
}

static void close_test(struct axes_test *test)
{
    basis_destroy(test->basis);
    small_study_destroy(test->small);
}

static struct advice_values list(const struct axes_test *test, enum advice_axis_kind axis)
{
    struct advice_values values = {.count = 0};
    advice_axes[axis].list(test->basis, &values);
    return values;
}

static void has_values(const struct advice_values *values, const double *wanted, size_t count)
{
    assert_int_equal(values->count, count);
    for (size_t i = 0; i < count; i++) {
        assert_float_equal(values->list[i], wanted[i], 0);
    }
}

static void test_servers_are_no_more_than_workers(void **state)
{
    (void)state;
    struct axes_test test = open_test("ps-sync", "6");
    struct advice_values values = list(&test, ADVICE_SERVERS);
    has_values(&values, (double[]){1, 2, 4}, 3);
    assert_true(advice_axis_is_of(ADVICE_SERVERS, MODE_PS_SYNC));
    assert_false(advice_axis_is_of(ADVICE_SERVERS, MODE_RING));
    close_test(&test);
}

static void test_buckets_end_where_one_holds_all(void **state)
{
    (void)state;
    struct axes_test test = open_test("ring", "4");
    struct advice_values values = list(&test, ADVICE_BUCKET); // 22.9 MiB
    has_values(&values, (double[]){1, 0.25, 0.5, 2, 4, 8, 16, 32}, 8);
    close_test(&test);
}

static void test_idle_hosts_may_have_servers(void **state)
{
    (void)state;
    struct axes_test test = open_test("ps-sync", "6");
    struct advice_values values = list(&test, ADVICE_PLACEMENT);
    uint32_t hosts[8];
    assert_int_equal(values.count, 2); // as it is, which is beside workers, and alone
    test.basis->job.servers = 2;
    advice_axes[ADVICE_PLACEMENT].apply(values.list[1], test.basis);
    assert_true(advice_has_places(test.basis));
    assert_int_equal(network_place(&test.basis->network, 6, 2, hosts), STATUS_OK);
    assert_int_equal(hosts[6], 6);
    assert_int_equal(hosts[7], 7);
    test.basis->job.servers = 3;
    assert_false(advice_has_places(test.basis));
    close_test(&test);
}

static void test_without_idle_hosts_servers_are_beside_workers(void **state)
{
    (void)state;
    struct axes_test test = open_test("ps-sync", "8");
    struct advice_values values = list(&test, ADVICE_PLACEMENT);
    assert_int_equal(values.count, 1);
    close_test(&test);
}

static void test_places_of_the_file_may_be_left(void **state)
{
    (void)state;
    struct axes_test test = open_test("ps-sync", "6");
    struct network *network = &test.basis->network;
    uint32_t hosts[8];
    char word[ADVICE_WORD_BYTES];
    network->has_server_places = true;
    network->hosts[7].servers = 4;
    struct advice_values values = list(&test, ADVICE_PLACEMENT);
    assert_int_equal(values.count, 2);
    advice_axes[ADVICE_PLACEMENT].describe(values.list[0], word);
    assert_string_equal(word, "servers on hosts of their own");
    advice_axes[ADVICE_PLACEMENT].describe(values.list[1], word);
    assert_string_equal(word, "servers beside workers");
    advice_axes[ADVICE_PLACEMENT].apply(values.list[0], test.basis);
    assert_int_equal(network->hosts[7].servers, 4);
    assert_int_equal(network->hosts[6].servers, 0);
    advice_axes[ADVICE_PLACEMENT].apply(values.list[1], test.basis);
    assert_int_equal(network_place(network, 6, 2, hosts), STATUS_OK);
    assert_int_equal(hosts[6], 0);
    assert_int_equal(hosts[7], 1);
    close_test(&test);
}

static void test_many_workers_do_not_add_up_directly(void **state)
{
    (void)state;
    struct axes_test test = open_test("ring", "4");
    struct advice_values values = list(&test, ADVICE_ALL_REDUCE);
    assert_int_equal(values.count, 4);
    test.basis->job.workers = ALL_REDUCE_DIRECT_MAX + 1;
    values = list(&test, ADVICE_ALL_REDUCE);
    has_values(
        &values,
        (double[]){ALL_REDUCE_CHOICE_AUTO, ALL_REDUCE_CHOICE_RING, ALL_REDUCE_CHOICE_HALVING}, 3);
    close_test(&test);
}

static void test_codes_are_tried_where_it_is_known_what_they_take(void **state)
{
    (void)state;
    struct axes_test test = open_test("ring", "4");
    char word[ADVICE_WORD_BYTES];
    struct advice_values values = list(&test, ADVICE_COMPRESSION);
    has_values(&values, (double[]){CODEC_NONE}, 1);
    test.basis->costs.encode_bandwidth = test.basis->costs.decode_bandwidth = 1e9;
    values = list(&test, ADVICE_COMPRESSION);
    has_values(&values, (double[]){CODEC_NONE, CODEC_FP16, CODEC_INT8}, 3);
    advice_axes[ADVICE_COMPRESSION].apply(values.list[1], test.basis);
    assert_int_equal(test.basis->job.compress.kind, CODEC_FP16);
    advice_axes[ADVICE_COMPRESSION].describe(values.list[1], word);
    assert_string_equal(word, "fp16 gradients");
    test.basis->job.workers = 1;
    values = list(&test, ADVICE_COMPRESSION);
    assert_int_equal(values.count, 1);
    close_test(&test);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_servers_are_no_more_than_workers),
        cmocka_unit_test(test_buckets_end_where_one_holds_all),
        cmocka_unit_test(test_idle_hosts_may_have_servers),
        cmocka_unit_test(test_without_idle_hosts_servers_are_beside_workers),
        cmocka_unit_test(test_places_of_the_file_may_be_left),
        cmocka_unit_test(test_many_workers_do_not_add_up_directly),
        cmocka_unit_test(test_codes_are_tried_where_it_is_known_what_they_take),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
