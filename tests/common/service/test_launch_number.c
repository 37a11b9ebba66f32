/* Tests of the number by which a process knows which of a launcher's starts it is. */
#include "common/service/launch_number.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <stdio.h>

#define ENDPOINT "tcp://10.0.0.7:41397"

static char text[LAUNCH_NUMBER_TEXT_BYTES];

static char *get(const char *name)
{
    assert_string_equal(name, "RINGSIDE_LAUNCH");
    return text;
}

static char *get_nothing(const char *name)
{
    (void)name;
    return NULL;
}

static uint32_t read_text(const char *value)
{
    snprintf(text, sizeof(text), "%s", value);
    return launch_number_read(get, ENDPOINT);
}

static void a_number_of_the_environment_is_read(void **state)
{
    (void)state;
    assert_int_equal(read_text("17@" ENDPOINT), 17);
    launch_number_write(UINT32_MAX, ENDPOINT, text);
    assert_int_equal(launch_number_read(get, ENDPOINT), UINT32_MAX);
}

/* Of the process below which somebody has started this one. */
static void a_number_for_another_job_is_none(void **state)
{
    (void)state;
    static const char *const others[] = {"17@tcp://10.0.0.7:4139",
                                         "17@tcp://10.0.0.7:413970",
                                         "17@tcp://10.0.0.8:41397",
                                         "17@ipc:///proc/4711/fd/13",
                                         "17@",
                                         "17"};
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        assert_int_equal(read_text(others[i]), 0);
    }
}

static void a_server_may_have_several_names(void **state)
{
    (void)state;
    static const struct {
        const char *value, *endpoint;
    } names[] = {{"17@tcp://127.0.0.1:41397", "tcp://localhost:41397"},
                 {"17@tcp://LOCALHOST:41397", "tcp://127.0.0.1:41397"},
                 {"17@tcp://[::1]:41397", "tcp://[0:0:0:0:0:0:0:1]:41397"}};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        snprintf(text, sizeof(text), "%s", names[i].value);
        assert_int_equal(launch_number_read(get, names[i].endpoint), 17);
    }
    snprintf(text, sizeof(text), "17@tcp://127.0.0.1:41397");
    assert_int_equal(launch_number_read(get, "tcp://localhost:41398"), 0);
}

static void without_one_or_with_what_is_none_there_is_no_number(void **state)
{
    (void)state;
    static const char *const wrong[] = {"", "-1", " 3", "3 ", "x", "4294967296", "99999999999999"};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        snprintf(text, sizeof(text), "%s@%s", wrong[i], ENDPOINT);
        assert_int_equal(launch_number_read(get, ENDPOINT), 0);
    }
    assert_int_equal(launch_number_read(get_nothing, ENDPOINT), 0);
}

static void a_later_start_for_the_same_place_follows(void **state)
{
    (void)state;
    uint32_t first = launch_number_make(1, 4), other = launch_number_make(2, 5),
             again = launch_number_make(3, 4);
    assert_true(launch_number_follows(again, first));
    assert_false(launch_number_follows(first, again));
    assert_false(launch_number_follows(other, first));
    assert_false(launch_number_follows(again, other));
    assert_false(launch_number_follows(first, first));
    assert_false(launch_number_follows(first, 0));
    assert_false(launch_number_follows(0, first));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_number_of_the_environment_is_read),
        cmocka_unit_test(a_number_for_another_job_is_none),
        cmocka_unit_test(a_server_may_have_several_names),
        cmocka_unit_test(a_later_start_for_the_same_place_follows),
        cmocka_unit_test(without_one_or_with_what_is_none_there_is_no_number),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
