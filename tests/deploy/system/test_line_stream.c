/* Tests of lines over descriptors that are not waited for. */
#include "deploy/system/line_stream.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#define LINE_MAX_HERE 8

struct pipe_test {
    int ends[2]; // read, write
    struct line_reader reader;
};

static int set_up(void **state)
{
    static struct pipe_test test;
    assert_int_equal(pipe2(test.ends, O_CLOEXEC), 0);
    assert_int_equal(line_reader_init(&test.reader, test.ends[0], LINE_MAX_HERE), STATUS_OK);
    *state = &test;
    return 0;
}

static int tear_down(void **state)
{
    struct pipe_test *test = *state;
    line_reader_finish(&test->reader);
    close(test->ends[0]);
    if (test->ends[1] >= 0) {
        close(test->ends[1]);
    }
    return 0;
}

static void put(const struct pipe_test *test, const char *text)
{
    assert_int_equal(write(test->ends[1], text, strlen(text)), strlen(text));
}

static void expect_line(struct pipe_test *test, const char *expected)
{
    char *line;
    assert_int_equal(line_reader_next(&test->reader, false, &line), STATUS_OK);
    if (expected == NULL) {
        assert_null(line);
    } else {
        assert_non_null(line);
        assert_string_equal(line, expected);
    }
}

static void lines_are_whole_however_they_come(void **state)
{
    struct pipe_test *test = *state;
    put(test, "a\nb");
    assert_int_equal(line_reader_fill(&test->reader), STATUS_OK);
    expect_line(test, "a");
    expect_line(test, NULL);
    put(test, "c\n\nd");
    assert_int_equal(line_reader_fill(&test->reader), STATUS_OK);
    expect_line(test, "bc");
    expect_line(test, "");
    expect_line(test, NULL);
    close(test->ends[1]);
    test->ends[1] = -1;
    assert_int_equal(line_reader_fill(&test->reader), STATUS_END_OF_DATA);
    expect_line(test, "d"); // the last one has no newline
    expect_line(test, NULL);
}

static void a_line_that_is_too_long_is_malformed_or_cut(void **state)
{
    struct pipe_test *test = *state;
    char *line;
    put(test, "123456789\n");
    assert_int_equal(line_reader_fill(&test->reader), STATUS_OK);
    assert_int_equal(line_reader_next(&test->reader, false, &line), STATUS_MALFORMED);
    assert_int_equal(line_reader_next(&test->reader, true, &line), STATUS_OK);
    assert_string_equal(line, "12345678");
    assert_int_equal(line_reader_fill(&test->reader), STATUS_OK);
    expect_line(test, "9");
}

static void what_cannot_be_written_waits(void **state)
{
    struct pipe_test *test = *state;
    struct line_writer writer;
    static char line[1 << 16];
    memset(line, 'x', sizeof(line) - 1);
    line_writer_init(&writer, test->ends[1]);
    for (unsigned i = 0; i < 4; i++) { // more than a pipe takes
        assert_int_equal(line_writer_add(&writer, line), STATUS_OK);
    }
    assert_int_equal(line_writer_flush(&writer), STATUS_OK);
    assert_in_range(line_writer_waiting(&writer), 1, 4 * sizeof(line));
    size_t got = 0;
    char bytes[4096];
    while (line_writer_waiting(&writer) > 0) {
        ssize_t size = read(test->ends[0], bytes, sizeof(bytes));
        got += size > 0 ? (size_t)size : 0;
        assert_int_equal(line_writer_flush(&writer), STATUS_OK);
    }
    for (ssize_t size; (size = read(test->ends[0], bytes, sizeof(bytes))) > 0;) {
        got += (size_t)size;
    }
    assert_int_equal(got, 4 * sizeof(line));
    line_writer_finish(&writer);
}

static void too_much_that_waits_is_refused(void **state)
{
    struct pipe_test *test = *state;
    struct line_writer writer;
    static char line[1 << 20];
    memset(line, 'x', sizeof(line) - 1);
    line_writer_init(&writer, test->ends[1]);
    enum status status = STATUS_OK;
    size_t count = 0;
    while (status == STATUS_OK && count <= LINE_WRITER_BYTES_MAX / sizeof(line)) {
        status = line_writer_add(&writer, line);
        count++;
    }
    assert_int_equal(status, STATUS_NO_MEMORY);
    line_writer_finish(&writer);
}

static void lines_that_have_gone_are_wiped(void **state)
{
    struct pipe_test *test = *state;
    struct line_writer writer;
    static const char zeros[16];
    line_writer_init(&writer, test->ends[1]);
    assert_int_equal(line_writer_add(&writer, "secret"), STATUS_OK);
    assert_int_equal(line_writer_flush(&writer), STATUS_OK);
    assert_true(writer.size >= 7);
    assert_memory_equal(writer.bytes, zeros, 7);
    line_writer_finish(&writer);
    assert_int_equal(line_reader_fill(&test->reader), STATUS_OK);
    expect_line(test, "secret");
    assert_int_equal(line_reader_fill(&test->reader), STATUS_OK);
    assert_memory_equal(test->reader.bytes, zeros, 7);
}

#define PIPE_TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        PIPE_TEST(lines_are_whole_however_they_come),
        PIPE_TEST(a_line_that_is_too_long_is_malformed_or_cut),
        PIPE_TEST(what_cannot_be_written_waits),
        PIPE_TEST(too_much_that_waits_is_refused),
        PIPE_TEST(lines_that_have_gone_are_wiped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
