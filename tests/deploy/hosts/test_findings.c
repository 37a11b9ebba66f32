/* Tests of the table of what is wrong. */
#include "deploy/hosts/findings.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <stdlib.h>
#include <string.h>

static struct findings findings;

static struct finding *add(const char *host, const char *problem, const char *advice)
{
    struct finding *finding = findings_add(&findings, host);
    assert_non_null(finding);
    snprintf(finding->problem, sizeof(finding->problem), "%s", problem);
    snprintf(finding->advice, sizeof(finding->advice), "%s", advice);
    return finding;
}

static int set_up(void **state)
{
    (void)state;
    findings = (struct findings){.count = 0};
    return 0;
}

static void check_print(const char *expected)
{
    char *text = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&text, &size);
    assert_non_null(stream);
    findings_print(&findings, stream);
    fclose(stream);
    assert_string_equal(text, expected);
    free(text);
}

static void a_row_has_host_pair_interface_port_problem_and_what_to_do(void **state)
{
    (void)state;
    struct finding *pair = add("node3", "node1 cannot connect to it", "open it");
    snprintf(pair->with, sizeof(pair->with), "node1");
    snprintf(pair->interface, sizeof(pair->interface), "eth0 10.0.0.3");
    snprintf(pair->port, sizeof(pair->port), "40000-40100");
    add("a", "refused", "");
    check_print("HOST   WITH   INTERFACE      PORT         PROBLEM\n"
                "node3  node1  eth0 10.0.0.3  40000-40100  node1 cannot connect to it\n"
                "                                          -> open it\n"
                "a      -      -              -            refused\n");
}

static void what_hosts_say_is_no_command_to_a_terminal(void **state)
{
    (void)state;
    struct finding *row = add("a", "\033[2Jnothing is wrong\r", "\007none\n");
    snprintf(row->interface, sizeof(row->interface), "\033c");
    check_print("HOST  WITH  INTERFACE  PORT  PROBLEM\n"
                "a     -     ?c         -     ?[2Jnothing is wrong?\n"
                "                             -> ?none?\n");
}

static void hosts_with_the_same_problem_share_a_row_and_pairs_do_not(void **state)
{
    (void)state;
    add("a", "too few images", "");
    add("b", "too few images", "");
    add("c", "too few images", "buy some");
    for (unsigned i = 0; i < 2; i++) {
        snprintf(add("d", "unreached", "")->with, 64, "a");
    }
    findings_join(&findings);
    assert_int_equal(findings.count, 4);
    assert_string_equal(findings.list[0].host, "a, b");
    assert_string_equal(findings.list[1].host, "c");
}

static void names_that_do_not_fit_have_rows_of_their_own(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 40; i++) {
        add("node-1234", "the same", "");
    }
    findings_join(&findings);
    assert_in_range(findings.count, 2, 39);
}

static void more_than_there_is_room_for_are_counted(void **state)
{
    (void)state;
    for (unsigned i = 0; i < FINDINGS_MAX; i++) {
        add("a", "x", "");
    }
    assert_null(findings_add(&findings, "b"));
    assert_int_equal(findings.left_out, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_row_has_host_pair_interface_port_problem_and_what_to_do, set_up),
        cmocka_unit_test_setup(what_hosts_say_is_no_command_to_a_terminal, set_up),
        cmocka_unit_test_setup(hosts_with_the_same_problem_share_a_row_and_pairs_do_not, set_up),
        cmocka_unit_test_setup(names_that_do_not_fit_have_rows_of_their_own, set_up),
        cmocka_unit_test_setup(more_than_there_is_room_for_are_counted, set_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
