/* Tests of the text for Prometheus: by promtool, and by what the format's page says. */
#include "common/live/live_metrics.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void open_sample(struct live_state *state)
{
    assert_int_equal(live_state_init(state, 2), STATUS_OK);
    snprintf(state->mode, sizeof(state->mode), "ps-ssp:4");
    snprintf(state->dataset, sizeof(state->dataset), "a\"b\\c\nd");
    snprintf(state->outcome, sizeof(state->outcome), "training");
    state->step = 7;
    state->loss = 1.5;
    state->ranks[1].compute_ns = 2500000000;
    state->ranks[1].bytes_sent = UINT64_MAX;
    live_add_staleness(&state->staleness, 0, 3);
    live_add_staleness(&state->staleness, 5, 2);
    live_add_staleness(&state->staleness, 1000, 1);
}

static void expect_line(const char *text, const char *line)
{
    char whole[256];
    snprintf(whole, sizeof(whole), "\n%s\n", line);
    if (strstr(text, whole) == NULL) {
        fail_msg("no line '%s' in\n%s", line, text);
    }
}

static void values_have_their_names_labels_and_units(void **state)
{
    struct live_state sample;
    (void)state;
    open_sample(&sample);
    char *text = live_metrics_text(&sample);
    assert_non_null(text);
    expect_line(text, "# TYPE ringside_step gauge");
    expect_line(text, "ringside_step 7");
    expect_line(text, "ringside_loss 1.5");
    expect_line(text, "ringside_job_state{state=\"training\"} 1");
    expect_line(text, "ringside_job_state{state=\"failed\"} 0");
    expect_line(text, "ringside_rank_compute_seconds_total{rank=\"1\"} 2.5");
    expect_line(text, "ringside_rank_sent_bytes_total{rank=\"1\"} 18446744073709551615");
    assert_non_null(strstr(text, "dataset=\"a\\\"b\\\\c\\nd\""));
    free(text);
    live_state_finish(&sample);
}

static void a_histogram_counts_what_is_below_each_limit(void **state)
{
    struct live_state sample;
    (void)state;
    open_sample(&sample);
    char *text = live_metrics_text(&sample);
    assert_non_null(text);
    expect_line(text, "ringside_staleness_updates_bucket{le=\"0\"} 3");
    expect_line(text, "ringside_staleness_updates_bucket{le=\"4\"} 3");
    expect_line(text, "ringside_staleness_updates_bucket{le=\"6\"} 5");
    expect_line(text, "ringside_staleness_updates_bucket{le=\"64\"} 5");
    expect_line(text, "ringside_staleness_updates_bucket{le=\"+Inf\"} 6");
    expect_line(text, "ringside_staleness_updates_sum 1010");
    expect_line(text, "ringside_staleness_updates_count 6");
    free(text);
    live_state_finish(&sample);
}

static void a_test_accuracy_is_there_once_it_is_known(void **state)
{
    struct live_state sample;
    (void)state;
    open_sample(&sample);
    char *before = live_metrics_text(&sample);
    sample.has_accuracy = true;
    sample.accuracy = 0.75;
    char *after = live_metrics_text(&sample);
    assert_non_null(before);
    assert_non_null(after);
    assert_null(strstr(before, "ringside_test_accuracy_ratio"));
    expect_line(after, "ringside_test_accuracy_ratio 0.75");
    free(before);
    free(after);
    live_state_finish(&sample);
}

static void values_that_are_no_numbers_are_written_as_the_format_has_them(void **state)
{
    struct live_state sample;
    (void)state;
    open_sample(&sample);
    sample.loss = (double)NAN;
    sample.ranks[0].loss = (double)INFINITY;
    sample.ranks[1].loss = -(double)INFINITY;
    char *text = live_metrics_text(&sample);
    assert_non_null(text);
    expect_line(text, "ringside_loss NaN");
    expect_line(text, "ringside_rank_loss{rank=\"0\"} +Inf");
    expect_line(text, "ringside_rank_loss{rank=\"1\"} -Inf");
    free(text);
    live_state_finish(&sample);
}

static void promtool_finds_nothing_to_object_to(void **state)
{
    struct live_state sample;
    (void)state;
    if (access("/usr/bin/promtool", X_OK) != 0) {
        print_message("skipped: no promtool (Debian's prometheus)\n");
        skip();
    }
    open_sample(&sample);
    sample.has_accuracy = true;
    char *text = live_metrics_text(&sample);
    assert_non_null(text);
    FILE *tool = popen("/usr/bin/promtool check metrics", "w");
    assert_non_null(tool);
    assert_int_equal(fwrite(text, 1, strlen(text), tool), strlen(text));
    assert_int_equal(pclose(tool), 0);
    free(text);
    live_state_finish(&sample);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_have_their_names_labels_and_units),
        cmocka_unit_test(a_histogram_counts_what_is_below_each_limit),
        cmocka_unit_test(a_test_accuracy_is_there_once_it_is_known),
        cmocka_unit_test(values_that_are_no_numbers_are_written_as_the_format_has_them),
        cmocka_unit_test(promtool_finds_nothing_to_object_to),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
