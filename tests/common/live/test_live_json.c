/* Tests of live states as JSON, and back. */
#include "common/live/live_json.h"

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

static void open_sample(struct live_state *state)
{
    assert_int_equal(live_state_init(state, 3), STATUS_OK);
    snprintf(state->mode, sizeof(state->mode), "ring");
    snprintf(state->all_reduce, sizeof(state->all_reduce), "a \"quoted\" </script> text");
    snprintf(state->outcome, sizeof(state->outcome), "training");
    state->shape = LIVE_RING;
    state->slowest = 2;
    state->step = 20;
    state->seconds = 2.5;
    state->loss = (double)NAN;
    state->has_accuracy = true;
    state->accuracy = 0.5;
    state->ranks[2].bytes_sent = 12345678901;
    live_add_point(&state->progress,
                   &(struct live_point){.step = 10, .value = {1.5, (double)INFINITY}});
    live_add_point(&state->evaluations, &(struct live_point){.step = 20, .value = {0.5, 2}});
    live_add_event(state, "lost", "worker 1 was killed");
    live_add_staleness(&state->staleness, 2, 7);
}

static void a_state_comes_back(void **state)
{
    static struct live_state sample, back;
    (void)state;
    open_sample(&sample);
    char *text = live_json_text(&sample);
    assert_non_null(text);
    assert_null(strchr(text, '\n')); // an event of the page is a line
    assert_int_equal(live_json_read(text, strlen(text), &back), STATUS_OK);
    assert_string_equal(back.all_reduce, sample.all_reduce);
    assert_int_equal(back.shape, LIVE_RING);
    assert_int_equal(back.workers, 3);
    assert_true(isnan(back.loss));
    assert_float_equal(back.accuracy, 0.5, 1e-9);
    assert_true(back.has_accuracy);
    assert_true(back.ranks[2].bytes_sent == 12345678901);
    assert_int_equal(back.progress.count, 1);
    assert_true(isnan(back.progress.points[0].value[1]));
    assert_int_equal(back.evaluations.points[0].step, 20);
    assert_string_equal(back.events[0].text, "worker 1 was killed");
    assert_int_equal(back.staleness.counts[2], 7);
    free(text);
    live_state_finish(&sample);
    live_state_finish(&back);
}

static void a_short_text_replaces_the_longer_one_of_a_new_state(void **state)
{
    static struct live_state sample, back;
    (void)state;
    assert_int_equal(live_state_init(&sample, 1), STATUS_OK); // "waiting"
    snprintf(sample.outcome, sizeof(sample.outcome), "failed");
    char *text = live_json_text(&sample);
    assert_non_null(text);
    assert_int_equal(live_json_read(text, strlen(text), &back), STATUS_OK);
    assert_string_equal(back.outcome, "failed");
    free(text);
    live_state_finish(&sample);
    live_state_finish(&back);
}

/* Puts another text in the place of one, and expects that the state is refused. */
static void expect_refusal(const char *text, const char *from, const char *to)
{
    static struct live_state back;
    char changed[8192];
    const char *at = strstr(text, from);
    assert_non_null(at);
    int size = snprintf(changed, sizeof(changed), "%.*s%s%s", (int)(at - text), text, to,
                        at + strlen(from));
    assert_true(size > 0 && (size_t)size < sizeof(changed));
    if (live_json_read(changed, (size_t)size, &back) != STATUS_MALFORMED) {
        fail_msg("taken: %s in the place of %s", to, from);
    }
}

static void what_does_not_belong_is_refused(void **state)
{
    static struct live_state sample;
    (void)state;
    open_sample(&sample);
    char *text = live_json_text(&sample);
    assert_non_null(text);
    expect_refusal(text, "\"workers\":3", "\"workers\":2"); // than it has ranks
    expect_refusal(text, "\"workers\":3", "\"workers\":0");
    expect_refusal(text, "\"workers\":3", "\"workers\":4000000000");
    expect_refusal(text, "\"slowest\":2", "\"slowest\":3");
    expect_refusal(text, "\"step\":20", "\"step\":-1");
    expect_refusal(text, "\"step\":20", "\"step\":\"20\"");
    expect_refusal(text, "\"shape\":\"ring\"", "\"shape\":\"cube\"");
    expect_refusal(text, "\"kind\":\"lost\"", "\"kind\":\"longer than a kind is\"");
    expect_refusal(text, "\"seconds\":2.5", "\"second\":2.5");
    expect_refusal(text, "{", "[");
    assert_int_equal(live_json_read(text, strlen(text) - 1, &sample), STATUS_MALFORMED);
    free(text);
    live_state_finish(&sample);
}

static void a_large_job_fits_an_event(void **state)
{
    static struct live_state sample;
    (void)state;
    assert_int_equal(live_state_init(&sample, LIVE_RANKS_MAX), STATUS_OK);
    for (uint32_t i = 0; i < LIVE_RANKS_MAX; i++) {
        struct live_rank *rank = &sample.ranks[i];
        rank->loss = rank->images_per_second = rank->compute_ms = -1.2345678e-123;
        rank->step = rank->steps = rank->images = rank->bytes_sent = UINT64_MAX;
    }
    for (uint64_t i = 1; i <= LIVE_POINTS_MAX; i++) {
        const struct live_point point = {UINT64_MAX, 1e-123, {-1.2345678e-123, 1e99}};
        live_add_point(&sample.progress, &point);
        live_add_point(&sample.evaluations, &point);
    }
    char *text = live_json_text(&sample);
    assert_non_null(text);
    assert_true(strlen(text) < LIVE_JSON_BYTES_MAX);
    free(text);
    live_state_finish(&sample);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_state_comes_back),
        cmocka_unit_test(a_short_text_replaces_the_longer_one_of_a_new_state),
        cmocka_unit_test(what_does_not_belong_is_refused),
        cmocka_unit_test(a_large_job_fits_an_event),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
