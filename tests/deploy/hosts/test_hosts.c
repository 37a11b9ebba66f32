/* Tests of lists of hosts, from the command line and from files. */
#include "deploy/hosts/hosts.h"
#include "tests/support/common/temp_folder.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <stdio.h>
#include <string.h>

static struct hosts hosts;
static char error[OPTION_ERROR_BYTES];

static void a_list_has_hosts_with_their_slots_in_order(void **state)
{
    (void)state;
    hosts.count = 0;
    assert_int_equal(hosts_parse(&hosts, "node1:2,ada@node-2.lan,10.0.0.7:4096", error), STATUS_OK);
    assert_int_equal(hosts.count, 3);
    assert_string_equal(hosts.list[0].name, "node1");
    assert_int_equal(hosts.list[0].slots, 2);
    assert_string_equal(hosts.list[1].name, "ada@node-2.lan");
    assert_int_equal(hosts.list[1].slots, 1);
    assert_int_equal(hosts_slots(&hosts), 2 + 1 + 4096);
    assert_int_equal(hosts_find(&hosts, "10.0.0.7"), 2);
    assert_int_equal(hosts_find(&hosts, "node"), 3);
    assert_int_equal(hosts_add_idle(&hosts, "node1", error), STATUS_OK);
    assert_int_equal(hosts.count, 3);
    assert_int_equal(hosts_add_idle(&hosts, "head", error), STATUS_OK);
    assert_int_equal(hosts.list[3].slots, 0);
}

static void what_is_no_list_is_refused_with_what_is_wrong(void **state)
{
    (void)state;
    static const struct {
        const char *text, *says;
    } wrong[] = {
        {"", "not the name of a host"},
        {"a,", "not the name of a host"},
        {"a:0", "from 1 to"},
        {"a:", "from 1 to"},
        {"a:2:3", "from 1 to"},
        {"a:4097", "from 1 to"},
        {"a b", "'a b' is not the name"},
        {"-oProxyCommand=x", "not the name of a host"}, // ssh would take it for an option
        {"$(x)", "not the name of a host"},
        {"a:2,b,a:1", "the host a is listed twice"},
    };
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        hosts.count = 0;
        assert_int_equal(hosts_parse(&hosts, wrong[i].text, error), STATUS_INVALID);
        if (strstr(error, wrong[i].says) == NULL) {
            fail_msg("'%s': %s", wrong[i].text, error);
        }
    }
}

static void more_hosts_than_there_may_be_are_refused(void **state)
{
    (void)state;
    hosts.count = 0;
    for (unsigned i = 0; i <= HOSTS_MAX; i++) {
        char name[16];
        snprintf(name, sizeof(name), "n%u", i);
        assert_int_equal(hosts_parse(&hosts, name, error),
                         i < HOSTS_MAX ? STATUS_OK : STATUS_INVALID);
    }
}

static enum status read_text(const char *text)
{
    char *folder = temp_folder_create(), path[512];
    temp_folder_write(folder, "hosts", text, strlen(text));
    snprintf(path, sizeof(path), "%s/hosts", folder);
    hosts.count = 0;
    enum status status = hosts_read(&hosts, path, error);
    temp_folder_destroy(folder);
    return status;
}

static void a_file_has_a_host_a_line_in_either_form(void **state)
{
    (void)state;
    assert_int_equal(read_text("# the lab\n\nnode1 slots=2   # the old one\n  node2:4\r\nnode3\n"
                               "node4\tslots=1"),
                     STATUS_OK);
    assert_int_equal(hosts.count, 4);
    assert_int_equal(hosts_slots(&hosts), 8);
    assert_string_equal(hosts.list[3].name, "node4");
}

static void a_wrong_line_of_a_file_is_named_by_its_number(void **state)
{
    (void)state;
    static const char *const wrong[] = {"a\n\nb slots=x\n", "a\n\nb slots=\n",
                                        "a\n#\nb gpus=2\n", "a\n#\nb slots=2 x\n",
                                        "a\n#\na:2\n",      "a\n#\nb:0\n"};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        assert_int_equal(read_text(wrong[i]), STATUS_INVALID);
        assert_non_null(strstr(error, "/hosts:3: "));
    }
    char line[2000];
    memset(line, 'a', sizeof(line) - 1);
    line[sizeof(line) - 1] = '\0';
    assert_int_equal(read_text(line), STATUS_INVALID);
    assert_non_null(strstr(error, "/hosts:1: the line is too long"));
    assert_int_equal(read_text("# nobody\n"), STATUS_INVALID);
    assert_non_null(strstr(error, "has no hosts"));
    assert_int_equal(hosts_read(&hosts, "/nowhere/hosts", error), STATUS_INVALID);
    assert_non_null(strstr(error, "/nowhere/hosts"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_list_has_hosts_with_their_slots_in_order),
        cmocka_unit_test(what_is_no_list_is_refused_with_what_is_wrong),
        cmocka_unit_test(more_hosts_than_there_may_be_are_refused),
        cmocka_unit_test(a_file_has_a_host_a_line_in_either_form),
        cmocka_unit_test(a_wrong_line_of_a_file_is_named_by_its_number),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
