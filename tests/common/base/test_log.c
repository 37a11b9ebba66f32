/* Tests of log lines: what is in one, and that one stays one. */
#include "common/base/log.h"
#include "tests/support/common/captured_log.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define THREADS          4
#define LINES_PER_THREAD 50

static int begin(void **state)
{
    (void)state;
    log_init("worker", LOG_INFO);
    log_set_rank(LOG_RANK_NONE);
    captured_log_begin();
    return 0;
}

/* "2026-11-20T21:04:11.123Z", with 0 for every digit. */
static void check_time(const char *line)
{
    char shape[25] = "";
    for (size_t i = 0; i < 24 && line[i] != '\0'; i++) {
        shape[i] = line[i];
        if (line[i] >= '0' && line[i] <= '9') {
            shape[i] = '0';
        }
    }
    assert_string_equal(shape, "0000-00-00T00:00:00.000Z");
}

static void a_line_has_time_level_role_and_host(void **state)
{
    (void)state;
    char host[256] = "", wanted[512];
    gethostname(host, sizeof(host) - 1);
    log_error("cannot read %s: code=%d", "this", 7);
    const char *log = captured_log_end();
    check_time(log);
    snprintf(wanted, sizeof(wanted), " error worker host=%.64s: cannot read this: code=7\n", host);
    assert_string_equal(log + 24, wanted);
}

static void the_rank_is_in_the_line_once_it_is_known(void **state)
{
    (void)state;
    log_set_rank(3);
    log_warn("slow");
    assert_non_null(strstr(captured_log_end(), " warn worker rank=3 host="));
}

static void lines_below_the_level_are_left_out(void **state)
{
    (void)state;
    log_debug("not this one");
    log_info("but this one");
    log_init("worker", LOG_ERROR);
    log_warn("nor this one");
    const char *log = captured_log_end();
    assert_null(strstr(log, "not this one"));
    assert_null(strstr(log, "nor this one"));
    assert_non_null(strstr(log, "but this one"));
}

static char heard[64];

static void hear(enum log_level level, const char *sentence)
{
    snprintf(heard, sizeof(heard), "%d %s", (int)level, sentence);
}

static void a_library_hears_sentences_and_can_leave_out_the_lines(void **state)
{
    (void)state;
    log_init("worker", LOG_SILENT);
    log_divert(hear);
    log_error("cannot read %s", "this");
    assert_string_equal(heard, "0 cannot read this");
    log_info("nor this");
    assert_string_equal(heard, "0 cannot read this");
    log_divert(NULL);
    log_error("nobody hears");
    assert_string_equal(heard, "0 cannot read this");
    assert_string_equal(captured_log_end(), "");
}

static void what_a_peer_sends_cannot_begin_a_line_of_its_own(void **state)
{
    (void)state;
    log_error("refused: %s", "x\n2026-01-01T00:00:00.000Z error ps: forged\r\t\x1b[31m\x7f");
    const char *log = captured_log_end();
    assert_ptr_equal(strchr(log, '\n'), log + strlen(log) - 1);
    assert_non_null(strstr(log, "refused: x?2026-01-01T00:00:00.000Z error ps: forged???[31m?\n"));
}

static void a_long_line_is_cut_and_says_so(void **state)
{
    (void)state;
    static char text[32 * 1024];
    memset(text, 'x', sizeof(text) - 1);
    log_error("%s", text);
    const char *log = captured_log_end();
    size_t size = strlen(log);
    assert_in_range(size, 1024, 16 * 1024);
    assert_string_equal(log + size - 5, "x...\n");
}

static void percent_m_is_the_error_of_whoever_logs(void **state)
{
    (void)state;
    errno = ENOSPC;
    log_error("cannot write: %m");
    assert_int_equal(errno, ENOSPC);
    assert_non_null(strstr(captured_log_end(), "cannot write: No space left on device\n"));
}

static void *log_many_lines(void *data)
{
    const char *name = data;
    for (int i = 0; i < LINES_PER_THREAD; i++) {
        log_info("%s%s%s%s%s%s%s%s end", name, name, name, name, name, name, name, name);
    }
    return NULL;
}

static void lines_of_threads_do_not_mix(void **state)
{
    (void)state;
    char names[THREADS][8] = {"aaaaaaa", "bbbbbbb", "ccccccc", "ddddddd"};
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, log_many_lines, names[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    const char *line = captured_log_end();
    int count = 0;
    for (; *line != '\0'; line = strchr(line, '\n') + 1, count++) {
        check_time(line);
        const char *text = strstr(line, ": ") + 2;
        text += strspn(text, (char[]){text[0], '\0'});
        assert_int_equal(strncmp(text, " end\n", 5), 0);
    }
    assert_int_equal(count, THREADS * LINES_PER_THREAD);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        // First: the first line of a process is the one that reads /etc/localtime.
        cmocka_unit_test_setup(percent_m_is_the_error_of_whoever_logs, begin),
        cmocka_unit_test_setup(a_line_has_time_level_role_and_host, begin),
        cmocka_unit_test_setup(the_rank_is_in_the_line_once_it_is_known, begin),
        cmocka_unit_test_setup(lines_below_the_level_are_left_out, begin),
        cmocka_unit_test_setup(a_library_hears_sentences_and_can_leave_out_the_lines, begin),
        cmocka_unit_test_setup(what_a_peer_sends_cannot_begin_a_line_of_its_own, begin),
        cmocka_unit_test_setup(a_long_line_is_cut_and_says_so, begin),
        cmocka_unit_test_setup(lines_of_threads_do_not_mix, begin),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
