/* Tests of report.html. */
#include "deploy/page/html.h"
#include "deploy/page/report.h"
#include "tests/support/common/captured_log.h"
#include "tests/support/common/temp_folder.h"
#include "tests/support/deploy/sample_runs.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RUN_COUNT 3

struct page_test {
    char *folder;
    struct run_folder runs[RUN_COUNT];
    struct report report;
};

static int set_up(void **state)
{
    static struct page_test test;
    const struct sample_run samples[RUN_COUNT] = {
        {.mode = "ps-sync", .servers = 1},
        {.mode = "ring"},
        {.mode = "<script>", .outcome = "failed", .reason = "<b>worker 1</b> & \"others\" left"},
    };
    test = (struct page_test){.folder = temp_folder_create()};
    for (size_t i = 0; i < RUN_COUNT; i++) {
        char name[16];
        snprintf(name, sizeof(name), "run-%zu", i);
        sample_runs_open(test.folder, name, &samples[i], &test.runs[i]);
    }
    test.report.runs = test.runs;
    test.report.count = RUN_COUNT;
    *state = &test;
    return 0;
}

static int tear_down(void **state)
{
    struct page_test *test = *state;
    for (size_t i = 0; i < RUN_COUNT; i++) {
        run_folder_close(&test->runs[i]);
    }
    temp_folder_destroy(test->folder);
    return 0;
}

/* Writes the page and reads it; the caller frees it. */
static char *write_page(const struct page_test *test)
{
    assert_int_equal(report_write_page(&test->report, test->folder), STATUS_OK);
    return sample_runs_read(test->folder, "report.html");
}

static void check_has(const char *page, const char *text)
{
    if (strstr(page, text) == NULL) {
        fail_msg("'%s' is not in the page: %s", text, page);
    }
}

static void text_is_escaped(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"", ""},
        {"plain", "plain"},
        {"a < b > c", "a &lt; b &gt; c"},
        {"&amp;", "&amp;amp;"},
        {"\"x\"", "&quot;x&quot;"},
        {"\xc3\xa4", "\xc3\xa4"},
        {"\xc3", "?"},
        {"a\x01\xff", "a??"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char *text = NULL;
        size_t size = 0;
        FILE *memory = open_memstream(&text, &size);
        assert_non_null(memory);
        html_escape(memory, cases[i][0]);
        assert_int_equal(fclose(memory), 0);
        assert_string_equal(text, cases[i][1]);
        free(text);
    }
}

static void the_page_has_settings_answer_table_and_command(void **state)
{
    struct page_test *test = *state;
    snprintf(test->report.command, sizeof(test->report.command), "ringside compare 'a<b'");
    char *page = write_page(test);
    assert_memory_equal(page, "<!DOCTYPE html>", 15);
    check_has(page, "3 runs");
    check_has(page, "model lenet5");
    check_has(page, "global batch 16");
    check_has(page, "<p>ring and ps-sync end with the same bits.</p>");
    check_has(page, "<th>images/s</th><th>ratio</th>");
    check_has(page,
              "<tr><td>ps-sync</td><td>1 completed</td><td>100</td><td>1.00</td><td>81.25 %</td>");
    assert_null(strstr(page, "<th>mean staleness</th>")); // no run had any
    check_has(page, "<pre>ringside compare 'a&lt;b'</pre>");
    check_has(page, "</body></html>");
    free(page);
}

static void what_runs_say_is_escaped(void **state)
{
    char *page = write_page(*state);
    assert_null(strstr(page, "<script>,"));
    assert_null(strstr(page, "<b>"));
    check_has(page, "<td>&lt;script&gt;</td>");
    check_has(page, "<strong>&lt;script&gt;</strong>, seed 1: failed, because "
                    "&lt;b&gt;worker 1&lt;/b&gt; &amp; &quot;others&quot; left");
    free(page);
}

static void data_cannot_end_their_element(void **state)
{
    (void)state;
    char *text = NULL;
    size_t size = 0;
    json_t *figures = json_pack("[{s:s}]", "name", "</script><!-- & \"quoted\"");
    FILE *memory = open_memstream(&text, &size);
    assert_non_null(memory);
    html_end(memory, figures);
    assert_int_equal(fclose(memory), 0);
    if (html_has_charts()) {
        check_has(text, "[{\"name\":\"\\u003c/script>\\u003c!-- & \\\"quoted\\\"\"}]</script>");
    }
    assert_null(strstr(text, "<!--"));
    json_decref(figures);
    free(text);
}

/* The library of charts names addresses, but the policy lets nothing load. */
static void the_page_loads_nothing(void **state)
{
    static const char *const loading[] = {"<link", "<iframe", "<object", "<embed",
                                          "src=",  "href=",   "url(",    "@import"};
    char *page = write_page(*state);
    check_has(page, "default-src 'none'; img-src data:; style-src 'sha256-");
    assert_null(strstr(page, "unsafe"));
    char *library = strstr(page, "id=\"figures\"");
    if (library != NULL) {
        *library = '\0';
    }
    for (size_t i = 0; i < sizeof(loading) / sizeof(loading[0]); i++) {
        if (strstr(page, loading[i]) != NULL) {
            fail_msg("'%s' is in the page", loading[i]);
        }
    }
    free(page);
}

static void without_charts_an_image_is_a_part_of_the_page(void **state)
{
    struct page_test *test = *state;
    char *text = NULL;
    size_t size = 0;
    temp_folder_write(test->folder, "images.svg", "<svg/>", 6);
    FILE *memory = open_memstream(&text, &size);
    assert_non_null(memory);
    html_image(memory, test->folder, "images", "a < b");
    html_image(memory, test->folder, "missing", "");
    assert_int_equal(fclose(memory), 0);
    assert_string_equal(text, "<figure><img alt=\"a &lt; b\" "
                              "src=\"data:image/svg+xml;base64,PHN2Zy8+\">\n"
                              "<figcaption>a &lt; b</figcaption></figure>\n");
    free(text);
}

static void writing_again_replaces_the_page(void **state)
{
    struct page_test *test = *state;
    free(write_page(test));
    test->report.count = 1;
    char *page = write_page(test);
    check_has(page, "1 run · mode ps-sync");
    free(page);
}

static void a_folder_that_is_not_there_is_named(void **state)
{
    struct page_test *test = *state;
    char missing[RUN_FOLDER_PATH_MAX];
    snprintf(missing, sizeof(missing), "%s/missing", test->folder);
    captured_log_begin();
    enum status status = report_write_page(&test->report, missing);
    const char *log = captured_log_end();
    assert_int_equal(status, STATUS_IO);
    check_has(log, "/missing/report.html");
}

static void every_shard_of_a_run_has_a_row(void **state)
{
    char *page = write_page(*state);
    check_has(page, "Load of the shards");
    check_has(page, "</td><td>0</td><td>2.0</td><td>3.0</td><td>25.0 %</td><td>7</td></tr>");
    free(page);
}

/* They have no losses, but each has two epochs, of which one was evaluated. */
static void what_was_measured_once_is_a_sentence(void **state)
{
    char *page = write_page(*state);
    check_has(page, "<p>Test accuracy was measured once in each run, so there is no curve: ring "
                    "81.25 %; ps-sync 81.25 %");
    assert_null(strstr(page, "id=\"accuracy-steps\""));
    assert_null(strstr(page, "id=\"loss-steps\""));
    free(page);
}

#define PAGE_TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_is_escaped),
        PAGE_TEST(every_shard_of_a_run_has_a_row),
        PAGE_TEST(the_page_has_settings_answer_table_and_command),
        PAGE_TEST(what_was_measured_once_is_a_sentence),
        cmocka_unit_test(data_cannot_end_their_element),
        PAGE_TEST(what_runs_say_is_escaped),
        PAGE_TEST(the_page_loads_nothing),
        PAGE_TEST(without_charts_an_image_is_a_part_of_the_page),
        PAGE_TEST(writing_again_replaces_the_page),
        PAGE_TEST(a_folder_that_is_not_there_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
