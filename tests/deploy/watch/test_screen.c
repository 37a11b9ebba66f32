/* Tests of what a terminal shows of a job. */
#include "deploy/watch/screen.h"

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

static void open_sample(struct live_state *state, uint32_t workers)
{
    assert_int_equal(live_state_init(state, workers), STATUS_OK);
    snprintf(state->mode, sizeof(state->mode), "ring");
    snprintf(state->outcome, sizeof(state->outcome), "training");
    state->step = 25;
    state->total_steps = 100;
    state->seconds = 30;
    state->loss = 1.25;
    state->slowest = 1;
    for (uint32_t i = 0; i < workers; i++) {
        state->ranks[i] = (struct live_rank){.steps = 1, .compute_ms = i == 1 ? 30 : 10};
        state->ranks[i].exchange_wait_ms = i == 1 ? 0 : 20;
    }
}

/* What the screen or the line is; the caller frees it. */
static char *text_of(const struct live_state *state, uint32_t columns)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    assert_non_null(out);
    if (columns > 0) {
        screen_write(state, columns, out);
    } else {
        screen_write_line(state, out);
    }
    assert_int_equal(fclose(out), 0);
    return text;
}

static void expect(const char *text, const char *part)
{
    if (strstr(text, part) == NULL) {
        fail_msg("no '%s' in\n%s", part, text);
    }
}

static void a_screen_says_where_the_job_is_and_who_is_slowest(void **state)
{
    static struct live_state sample;
    (void)state;
    open_sample(&sample, 2);
    char *text = text_of(&sample, 80);
    expect(text, "step 25 of 100, 30 s, 1 min 30 s to go");
    expect(text, "]  25 %");
    expect(text, "slowest to compute: rank 1 (30 ms)");
    // A third of the bar is computing in rank 0, all of it in rank 1.
    expect(text, " ##################################################\n");
    expect(text, " #################=================================\n");
    free(text);
    live_state_finish(&sample);
}

static void no_line_is_wider_than_the_terminal(void **state)
{
    static struct live_state sample;
    (void)state;
    open_sample(&sample, 300);
    for (uint64_t i = 1; i <= LIVE_POINTS_MAX; i++) {
        live_add_point(
            &sample.progress,
            &(struct live_point){.step = i, .value = {i == 9 ? (double)NAN : (double)i, 1}});
    }
    for (uint32_t columns = SCREEN_COLUMNS_MIN; columns <= SCREEN_COLUMNS_MAX; columns += 20) {
        char *text = text_of(&sample, columns);
        uint32_t width = 0;
        for (const char *at = text; *at != '\0'; at++) {
            bool is_first_byte = ((unsigned char)*at & 0xC0) != 0x80;
            width = *at == '\n' ? 0 : width + is_first_byte;
            assert_true(width <= columns);
        }
        expect(text, "and 284 more");
        free(text);
    }
    live_state_finish(&sample);
}

static void of_an_open_job_there_is_no_total(void **state)
{
    static struct live_state sample;
    (void)state;
    open_sample(&sample, 1);
    sample.total_steps = 0;
    char *screen = text_of(&sample, 80), *line = text_of(&sample, 0);
    expect(screen, "step 25, 30 s\n");
    assert_null(strstr(screen, "%"));
    assert_null(strstr(screen, "to go"));
    expect(line, "step 25, loss 1.25");
    free(screen);
    free(line);
    live_state_finish(&sample);
}

static void text_of_another_host_cannot_steer_the_terminal(void **state)
{
    static struct live_state sample;
    (void)state;
    open_sample(&sample, 1);
    snprintf(sample.model, sizeof(sample.model), "\033[2Jevil");
    live_add_event(&sample, "lost", "a\nb\033c");
    char *text = text_of(&sample, 80);
    assert_null(strchr(text, '\033'));
    expect(text, "?[2Jevil");
    free(text);
    live_state_finish(&sample);
}

static void an_outcome_of_another_host_cannot_steer_the_terminal(void **state)
{
    static struct live_state sample;
    (void)state;
    open_sample(&sample, 1);
    snprintf(sample.outcome, sizeof(sample.outcome), "\033[2Jfailed");
    char *text = text_of(&sample, 0);
    assert_null(strchr(text, '\033'));
    free(text);
    live_state_finish(&sample);
}

/* Parts that cancel out in the sum, or whose sum is no number. */
static void times_that_make_no_sense_do_not_widen_a_bar(void **state)
{
    static const double times_ms[][3] = {{1e300, -1e300, 0}, {1e308, 1e308, 0}, {1e-300, 1, -1}};
    static struct live_state sample;
    (void)state;
    for (size_t i = 0; i < sizeof(times_ms) / sizeof(times_ms[0]); i++) {
        open_sample(&sample, 1);
        sample.ranks[0].compute_ms = times_ms[i][0];
        sample.ranks[0].exchange_wait_ms = times_ms[i][1];
        sample.ranks[0].input_wait_ms = times_ms[i][2];
        char *text = text_of(&sample, 80);
        assert_true(strlen(text) < 2000);
        free(text);
        live_state_finish(&sample);
    }
}

static void a_failed_job_says_why_in_its_line(void **state)
{
    static struct live_state sample;
    (void)state;
    open_sample(&sample, 1);
    snprintf(sample.outcome, sizeof(sample.outcome), "failed");
    snprintf(sample.reason, sizeof(sample.reason), "worker 0 was killed");
    char *text = text_of(&sample, 0);
    assert_string_equal(text,
                        "failed: epoch 0, step 25 of 100, loss 1.25, 0 images/s: worker 0 was "
                        "killed\n");
    free(text);
    live_state_finish(&sample);
}

static void what_was_not_measured_is_not_said_to_be_zero(void **state)
{
    static struct live_state sample;
    (void)state;
    open_sample(&sample, 2);
    sample.ranks[0].steps = sample.ranks[1].steps = 0;
    snprintf(sample.outcome, sizeof(sample.outcome), "completed");
    char *line = text_of(&sample, 0), *screen = text_of(&sample, 80);
    assert_string_equal(line, "completed: step 25 of 100, no measurements\n");
    assert_null(strstr(screen, "loss"));
    assert_null(strstr(screen, "images/s"));
    assert_null(strstr(screen, "slowest"));
    free(line);
    free(screen);
    live_state_finish(&sample);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_screen_says_where_the_job_is_and_who_is_slowest),
        cmocka_unit_test(no_line_is_wider_than_the_terminal),
        cmocka_unit_test(of_an_open_job_there_is_no_total),
        cmocka_unit_test(text_of_another_host_cannot_steer_the_terminal),
        cmocka_unit_test(an_outcome_of_another_host_cannot_steer_the_terminal),
        cmocka_unit_test(times_that_make_no_sense_do_not_widen_a_bar),
        cmocka_unit_test(a_failed_job_says_why_in_its_line),
        cmocka_unit_test(what_was_not_measured_is_not_said_to_be_zero),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
