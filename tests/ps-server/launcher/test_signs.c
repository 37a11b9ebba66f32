/* Tests of what the coordinator tells the launcher once it listens. */
#include "ps-server/launcher/signs.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

static int ends[2];

static int open_pipe(void **state)
{
    (void)state;
    signal(SIGPIPE, SIG_IGN); // as `ps` does
    return pipe2(ends, O_CLOEXEC);
}

static int close_pipe(void **state)
{
    (void)state;
    return close(ends[0]);
}

/* What was said since. */
static void expect_said(const char *text)
{
    char bytes[200] = "";
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    ssize_t got = read(ends[0], bytes, sizeof(bytes) - 1);
    bytes[got > 0 ? got : 0] = '\0';
    assert_string_equal(bytes, text);
}

static void the_endpoint_comes_first_and_signs_of_life_when_they_are_due(void **state)
{
    struct signs signs;
    (void)state;
    assert_int_equal(signs_begin(&signs, ends[1], "tcp://here:1", true), STATUS_OK);
    expect_said("tcp://here:1\n");
    for (uint64_t now_ms = 1000; now_ms < 2000; now_ms += 50) {
        signs_alive(&signs, now_ms, 20000);
    }
    expect_said("alive 20000\nalive 20000\n");
    signs_end(&signs);
}

static void that_it_is_alive_may_be_said_before(void **state)
{
    struct signs signs = {.fd = -1};
    (void)state;
    for (uint64_t now_ms = 1000; now_ms < 2000; now_ms += 50) {
        signs_preparing(&signs, ends[1], now_ms, 30000);
    }
    assert_int_equal(signs_begin(&signs, ends[1], "e", true), STATUS_OK);
    signs_preparing(&signs, ends[1], 9000, 30000); // it listens
    expect_said("alive 30000\nalive 30000\ne\n");
    signs_end(&signs);
}

static void who_may_be_started_again_is_said_at_once(void **state)
{
    struct signs signs;
    (void)state;
    assert_int_equal(signs_begin(&signs, ends[1], "e", true), STATUS_OK);
    signs_await(&signs, "worker", 2);
    expect_said("e\nawait worker 2\n");
    signs_end(&signs);
    signs_await(&signs, "worker", 2); // nobody listens
}

static void who_is_busy_says_so_once_and_then_that_it_is_alive_again(void **state)
{
    struct signs signs;
    (void)state;
    assert_int_equal(signs_begin(&signs, ends[1], "e", true), STATUS_OK);
    signs_alive(&signs, 1000, 7);
    signs_busy(&signs);
    signs_busy(&signs);
    signs_alive(&signs, 1010, 8);
    expect_said("e\nalive 7\nbusy\nalive 8\n");
    signs_end(&signs);
}

static void that_the_job_trains_and_that_it_ends_is_said_once(void **state)
{
    struct signs signs;
    (void)state;
    assert_int_equal(signs_begin(&signs, ends[1], "e", true), STATUS_OK);
    signs_training(&signs);
    signs_training(&signs);
    signs_ending(&signs);
    signs_ending(&signs);
    signs_recorded(&signs);
    expect_said("e\ntraining\nending\nrecorded\n");
    signs_end(&signs);
    signs_training(&signs); // nobody listens
    signs_ending(&signs);
    signs_recorded(&signs);
}

static void how_much_of_the_launcher_was_heard_is_said_once(void **state)
{
    struct signs signs;
    (void)state;
    assert_int_equal(signs_begin(&signs, ends[1], "e", true), STATUS_OK);
    signs_renewed(&signs, 0); // it has told of nobody
    signs_renewed(&signs, 2);
    signs_renewed(&signs, 2);
    signs_renewed(&signs, 3);
    expect_said("e\nrenewed 2\nrenewed 3\n");
    signs_end(&signs);
}

static void without_a_launcher_the_endpoint_is_all(void **state)
{
    struct signs signs;
    (void)state;
    assert_int_equal(signs_begin(&signs, ends[1], "e", false), STATUS_OK);
    assert_int_equal(signs.fd, -1);
    signs_alive(&signs, 1000, 7);
    signs_busy(&signs);
    expect_said("e\n");
    char byte;
    assert_int_equal(read(ends[0], &byte, 1), 0); // it is closed
    assert_int_equal(signs_begin(&signs, -1, "e", true), STATUS_OK);
    signs_alive(&signs, 1000, 7);
}

static void a_reader_that_is_stopped_or_gone_holds_nobody_up(void **state)
{
    struct signs signs;
    (void)state;
    assert_int_equal(signs_begin(&signs, ends[1], "e", true), STATUS_OK);
    for (uint64_t turn = 0; turn < 100000; turn++) {
        signs_alive(&signs, turn * 1000, 20000); // more than a pipe holds
    }
    assert_int_equal(signs.fd, ends[1]);
    close(ends[0]);
    signs_alive(&signs, UINT64_C(1) << 40, 20000);
    assert_int_equal(signs.fd, -1);
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    close(ends[1]);
}

#define SIGNS_TEST(function) cmocka_unit_test_setup_teardown(function, open_pipe, close_pipe)

int main(void)
{
    const struct CMUnitTest tests[] = {
        SIGNS_TEST(the_endpoint_comes_first_and_signs_of_life_when_they_are_due),
        SIGNS_TEST(that_it_is_alive_may_be_said_before),
        SIGNS_TEST(who_may_be_started_again_is_said_at_once),
        SIGNS_TEST(who_is_busy_says_so_once_and_then_that_it_is_alive_again),
        SIGNS_TEST(that_the_job_trains_and_that_it_ends_is_said_once),
        SIGNS_TEST(how_much_of_the_launcher_was_heard_is_said_once),
        SIGNS_TEST(without_a_launcher_the_endpoint_is_all),
        SIGNS_TEST(a_reader_that_is_stopped_or_gone_holds_nobody_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
