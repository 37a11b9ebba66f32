/* Tests of the command that runs a job that was advised. */
#include "deploy/predict/advise/advice_axes.h"
#include "deploy/predict/advise/advice_command.h"
#include "tests/support/deploy/small_study.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on

struct command_test {
    struct small_study *small;
    struct basis *basis;
};

static struct command_test open_test(uint32_t hosts, const char *mode, const char *workers)
{
    struct command_test test = {.small = small_study_create(hosts, mode, "2", workers)};
    assert_non_null(test.small);
    assert_int_equal(
        study_make_basis(&test.small->study, &test.small->study.points[0], &test.basis), STATUS_OK);
    return test;
}

static void has_command(struct command_test *test, const char *wanted)
{
    char command[ADVICE_COMMAND_BYTES];
    advice_command_write(test->basis, command);
    assert_string_equal(command, wanted);
    basis_destroy(test->basis);
    small_study_destroy(test->small);
}

static void test_a_ring_has_no_servers(void **state)
{
    (void)state;
    struct command_test test = open_test(2, "ring", "2");
    test.basis->job.all_reduce = ALL_REDUCE_CHOICE_HALVING;
    test.basis->job.bucket_mb = 4;
    has_command(&test, "ringside run --mode ring --workers 2 --batch 32 --bucket-mb 4 --all-reduce "
                       "halving-doubling -H h0:1,h1:1 --model MODEL --data DATA");
}

static void test_servers_of_their_own_begin_at_the_coordinator(void **state)
{
    (void)state;
    struct command_test test = open_test(4, "ps-sync", "2");
    test.basis->network.has_server_places = true;
    test.basis->network.hosts[2].servers = test.basis->network.hosts[3].servers = 1;
    has_command(&test, "ringside run --mode ps-sync --workers 2 --servers 2 --batch 32 -H "
                       "h0:1,h1:1,h2:1,h3:1 --coordinator h2 --model MODEL --data DATA");
}

static void test_servers_beside_workers_need_no_word(void **state)
{
    (void)state;
    struct command_test test = open_test(4, "ps-async", "2");
    test.basis->costs.batch = 64;
    has_command(&test, "ringside run --mode ps-async --workers 2 --servers 2 --batch 64 -H "
                       "h0:1,h1:1 --model MODEL --data DATA");
}

static void test_one_host_needs_no_list(void **state)
{
    (void)state;
    struct command_test test = open_test(1, "ring", "1");
    has_command(&test, "ringside run --mode ring --workers 1 --batch 32 --model MODEL --data DATA");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_ring_has_no_servers),
        cmocka_unit_test(test_servers_of_their_own_begin_at_the_coordinator),
        cmocka_unit_test(test_servers_beside_workers_need_no_word),
        cmocka_unit_test(test_one_host_needs_no_list),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
