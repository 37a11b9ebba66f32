/* Tests of a log whose standard error takes nothing: a pipe that is full. */
#include "common/base/log.h"
#include "common/thread/log_thread.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LINES    400 // more than may wait
#define TEXT_MAX ((size_t)1024 * 1024)

#define BYSTANDERS 3
#define ENDS       10

/* Standard error, in the place of which is a pipe, and what has come out of that. */
struct stopped {
    int original, reader;
    size_t size;
    char text[TEXT_MAX];
};

static void stop(struct stopped *stopped)
{
    static const char fill[4096];
    int ends[2];
    stopped->size = 0;
    stopped->text[0] = '\0';
    stopped->original = dup(STDERR_FILENO);
    assert_true(stopped->original >= 0);
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    stopped->reader = ends[0];
    assert_int_equal(fcntl(ends[1], F_SETFL, O_NONBLOCK), 0);
    while (write(ends[1], fill, sizeof(fill)) > 0) {
    }
    assert_int_equal(fcntl(ends[1], F_SETFL, 0), 0);
    assert_int_equal(dup2(ends[1], STDERR_FILENO), STDERR_FILENO);
    close(ends[1]);
    assert_int_equal(log_thread_begin(), STATUS_OK);
}

/* Takes what is there, and waits for something. */
static void take(struct stopped *stopped)
{
    char piece[4096];
    ssize_t got = read(stopped->reader, piece, sizeof(piece));
    assert_true(got > 0 && stopped->size + (size_t)got < TEXT_MAX);
    for (ssize_t i = 0; i < got; i++) {
        stopped->text[stopped->size] = piece[i];
        stopped->size += piece[i] != '\0';
    }
    stopped->text[stopped->size] = '\0';
}

static void take_until(struct stopped *stopped, const char *words)
{
    while (strstr(stopped->text, words) == NULL) {
        take(stopped);
    }
}

static void go_on(const struct stopped *stopped)
{
    (void)log_thread_end();
    assert_int_equal(dup2(stopped->original, STDERR_FILENO), STDERR_FILENO);
    close(stopped->original);
    close(stopped->reader);
}

static void who_logs_goes_on_and_lines_come_in_their_order(void **state)
{
    (void)state;
    static struct stopped stopped;
    stop(&stopped);
    log_error("the first");
    log_error("the second");
    take_until(&stopped, "the second\n");
    go_on(&stopped);
    const char *first = strstr(stopped.text, "the first\n");
    assert_true(first != NULL && first < strstr(stopped.text, "the second\n"));
}

/* How many lines end with the words, with those that are said to be missing. */
static unsigned long count(const char *text, const char *words)
{
    unsigned long found = 0, missing = 0;
    for (const char *at = text; (at = strstr(at, words)) != NULL; at++) {
        found++;
    }
    for (const char *at = text; (at = strstr(at, " lines of the log")) != NULL; at++) {
        const char *number = at;
        while (number[-1] >= '0' && number[-1] <= '9') {
            number--;
        }
        missing += strtoul(number, NULL, 10);
    }
    return found + missing;
}

static void those_that_do_not_fit_are_counted(void **state)
{
    (void)state;
    static struct stopped stopped;
    unsigned long written = 0;
    stop(&stopped);
    for (; written < LINES; written++) {
        log_error("one of many");
    }
    do { // until there is room
        log_error("one of many");
        written++;
        take(&stopped);
    } while (strstr(stopped.text, "are missing here") == NULL);
    log_error("the end");
    take_until(&stopped, "the end\n");
    go_on(&stopped);
    assert_int_equal(count(stopped.text, "one of many\n"), written);
}

/* A thread that the end of a program does not wait for, such as one with a disk that hangs. */
struct bystander {
    atomic_bool leaves;
    atomic_uint written;
};

static void *log_on(void *data)
{
    struct bystander *bystander = data;
    while (!bystander->leaves) {
        log_error("of a bystander");
        bystander->written++;
    }
    return NULL;
}

/* What is in the file, which the caller frees. */
static char *read_all(int file)
{
    struct stat facts;
    assert_int_equal(fstat(file, &facts), 0);
    size_t size = (size_t)facts.st_size;
    char *text = calloc(1, size + 1);
    assert_non_null(text);
    for (size_t at = 0; at < size;) {
        ssize_t got = pread(file, text + at, size - at, (off_t)at);
        assert_true(got > 0);
        at += (size_t)got;
    }
    return text;
}

static void who_logs_while_it_ends_loses_no_line(void **state)
{
    (void)state;
    struct bystander bystander = {.leaves = false};
    bool is_written = true; // otherwise the machine was too busy
    pthread_t threads[BYSTANDERS];
    FILE *file = tmpfile();
    int original = dup(STDERR_FILENO);
    assert_true(file != NULL && original >= 0);
    assert_int_equal(dup2(fileno(file), STDERR_FILENO), STDERR_FILENO);
    for (unsigned i = 0; i < BYSTANDERS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, log_on, &bystander), 0);
    }
    for (unsigned i = 0, before = 0; i < ENDS; i++, before = bystander.written) {
        assert_int_equal(log_thread_begin(), STATUS_OK);
        while (bystander.written == before) {
            sched_yield();
        }
        is_written = log_thread_end() && is_written;
    }
    bystander.leaves = true;
    for (unsigned i = 0; i < BYSTANDERS; i++) {
        pthread_join(threads[i], NULL);
    }
    assert_int_equal(dup2(original, STDERR_FILENO), STDERR_FILENO);
    close(original);
    if (is_written) {
        char *text = read_all(fileno(file));
        assert_int_equal(count(text, "of a bystander\n"), bystander.written);
        free(text);
    }
    fclose(file);
}

int main(void)
{
    log_init("ps", LOG_WARN);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_logs_goes_on_and_lines_come_in_their_order),
        cmocka_unit_test(those_that_do_not_fit_are_counted),
        cmocka_unit_test(who_logs_while_it_ends_loses_no_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
