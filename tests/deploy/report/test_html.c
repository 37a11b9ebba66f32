/* Tests of report.html. */
#include "deploy/report/html.h"
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
    assert_int_equal(html_write(test->folder, &test->report), STATUS_OK);
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

static void the_page_has_settings_table_verdicts_and_command(void **state)
{
    struct page_test *test = *state;
    snprintf(test->report.command, sizeof(test->report.command), "ringside compare 'a<b'");
    char *page = write_page(test);
    assert_memory_equal(page, "<!DOCTYPE html>", 15);
    check_has(page, "3 runs");
    check_has(page, "model lenet5");
    check_has(page, "global_batch 16");
    check_has(page, "<th>images/s</th>");
    check_has(page, "<td>ps-sync</td>");
    check_has(page, "<td>81.25 %</td>");
    check_has(page, "same bits: 2 runs with N = 2");
    check_has(page, "<pre>ringside compare 'a&lt;b'</pre>");
    check_has(page, "</body></html>");
    free(page);
}

static void what_runs_say_is_escaped(void **state)
{
    char *page = write_page(*state);
    assert_null(strstr(page, "<script"));
    assert_null(strstr(page, "<b>"));
    check_has(page, "<td>&lt;script&gt;</td>");
    check_has(page, "<strong>&lt;script&gt;, N = 2</strong> did not complete: "
                    "&lt;b&gt;worker 1&lt;/b&gt; &amp; &quot;others&quot; left");
    free(page);
}

static void the_page_loads_nothing(void **state)
{
    struct page_test *test = *state;
    static const char svg[] = "<svg xmlns=\"http://www.w3.org/2000/svg\"><g/></svg>\n";
    temp_folder_write(test->folder, "images.svg", svg, strlen(svg));
    static const char *const loading[] = {"<link",  "<script", "<img",  "<iframe", "<object",
                                          "<embed", "src=",    "href=", "url(",    "@import"};
    char *page = write_page(test);
    for (size_t i = 0; i < sizeof(loading) / sizeof(loading[0]); i++) {
        if (strstr(page, loading[i]) != NULL) {
            fail_msg("'%s' is in the page", loading[i]);
        }
    }
    free(page);
}

static void plots_are_in_the_page_without_their_prolog(void **state)
{
    struct page_test *test = *state;
    static const char svg[] = "<?xml version=\"1.0\"?>\n<!DOCTYPE svg>\n"
                              "<svg width=\"8\">\n<path d=\"M0 0\"/>\n</svg>\n";
    temp_folder_write(test->folder, "images.svg", svg, strlen(svg));
    char *page = write_page(test);
    check_has(page, "<figure>\n<svg width=\"8\">\n<path d=\"M0 0\"/>\n</svg>\n<figcaption>Images "
                    "per second");
    assert_null(strstr(page, "<?xml"));
    assert_null(strstr(page + 1, "<!DOCTYPE svg>"));
    free(page);
}

static void without_plots_there_are_no_figures(void **state)
{
    char *page = write_page(*state);
    assert_null(strstr(page, "<figure>"));
    assert_null(strstr(page, "<svg"));
    check_has(page, "</body></html>");
    free(page);
}

static void writing_again_replaces_the_page(void **state)
{
    struct page_test *test = *state;
    free(write_page(test));
    test->report.count = 1;
    char *page = write_page(test);
    check_has(page, "1 run ");
    free(page);
}

static void a_folder_that_is_not_there_is_named(void **state)
{
    struct page_test *test = *state;
    char missing[RUN_FOLDER_PATH_MAX];
    snprintf(missing, sizeof(missing), "%s/missing", test->folder);
    captured_log_begin();
    enum status status = html_write(missing, &test->report);
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

#define PAGE_TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_is_escaped),
        PAGE_TEST(every_shard_of_a_run_has_a_row),
        PAGE_TEST(the_page_has_settings_table_verdicts_and_command),
        PAGE_TEST(what_runs_say_is_escaped),
        PAGE_TEST(the_page_loads_nothing),
        PAGE_TEST(plots_are_in_the_page_without_their_prolog),
        PAGE_TEST(without_plots_there_are_no_figures),
        PAGE_TEST(writing_again_replaces_the_page),
        PAGE_TEST(a_folder_that_is_not_there_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
