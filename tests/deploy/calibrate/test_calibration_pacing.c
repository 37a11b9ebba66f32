/* Tests of which messages are found to be paced, by how links with token buckets carried them. */
#include "deploy/calibrate/calibration_pacing.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h> // needs the four above
// clang-format on
#include <string.h>

#define BANDWIDTH 1e8 // bytes per second
#define BURST     1e5
#define STEP_S    0.1 // links are idle in most of it
#define STEPS     20
#define MEMORY_S  1e-4 // that a burst takes

static struct observed_message messages[4 * STEPS];
static struct calibration_run run;
static struct calibration made;

static int set_up(void **state)
{
    (void)state;
    memset(&run, 0, sizeof(run));
    memset(&made, 0, sizeof(made));
    run.observation.messages = messages;
    return 0;
}

static void add(const struct observed_message *message)
{
    messages[run.observation.message_count++] = *message;
}

/* Of each step: a message that has passed at once as far as it could, or at the bandwidth. */
static void add_steps(enum network_way way, uint32_t from, uint32_t to, double bytes, bool is_paced)
{
    for (uint32_t i = 0; i < STEPS; i++) {
        double begin_s = i * STEP_S, waiting = bytes - (is_paced ? 0 : BURST);
        add(&(struct observed_message){begin_s,
                                       begin_s + MEMORY_S + (waiting > 0 ? waiting / BANDWIDTH : 0),
                                       bytes, from, to, way});
    }
}

static void take(void)
{
    struct calibration_run *const runs[] = {&run};
    calibration_take_pacing(runs, 1, BANDWIDTH, BURST, &made);
    assert_int_equal(made.network_notes.count, 1);
    assert_string_equal(made.network_notes.list[0].name, "paced");
}

static void check(bool ring, bool pushes, bool answers)
{
    assert_int_equal(made.links.pacing.is_paced[NETWORK_WAY_RING], ring);
    assert_int_equal(made.links.pacing.is_paced[NETWORK_WAY_PUSHES], pushes);
    assert_int_equal(made.links.pacing.is_paced[NETWORK_WAY_ANSWERS], answers);
}

static void what_passes_at_once_is_not_paced(void **state)
{
    (void)state;
    add_steps(NETWORK_WAY_RING, 0, 1, BURST, false);
    take();
    check(false, false, false);
    assert_non_null(strstr(made.network_notes.list[0].text, "nothing"));
    assert_non_null(strstr(made.network_notes.list[0].text, "ring 0.9"));
    assert_null(strstr(made.network_notes.list[0].text, "pushes"));
}

/* Also of messages that are larger than the burst. */
static void each_way_is_told_by_itself(void **state)
{
    (void)state;
    add_steps(NETWORK_WAY_RING, 0, 1, 3 * BURST, true);
    add_steps(NETWORK_WAY_PUSHES, 2, 3, 3 * BURST, false);
    add_steps(NETWORK_WAY_ANSWERS, 3, 2, 3 * BURST, true);
    take();
    check(true, false, true);
    assert_non_null(strstr(made.network_notes.list[0].text, "some"));
}

/* Two pushes share the burst of the link to their server: neither passes as if it was alone. */
static void what_meets_at_a_link_is_counted_together(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < STEPS; i++) {
        double begin_s = i * STEP_S, both_s = (4 * BURST - BURST) / BANDWIDTH;
        add(&(struct observed_message){begin_s, begin_s + both_s - 1e-5, 2 * BURST, 0, 2,
                                       NETWORK_WAY_PUSHES});
        add(&(struct observed_message){begin_s + 1e-5, begin_s + both_s, 2 * BURST, 1, 2,
                                       NETWORK_WAY_PUSHES});
    }
    take();
    check(false, false, false);
    assert_non_null(strstr(made.network_notes.list[0].text, "pushes 1.00"));
}

/* Small messages, and those behind others without a pause, show nothing. */
static void what_a_burst_does_not_matter_to_shows_nothing(void **state)
{
    (void)state;
    add_steps(NETWORK_WAY_RING, 0, 1, BURST / 10, true);
    for (uint32_t i = 0; i < STEPS; i++) {
        double begin_s = 10 + i * BURST / BANDWIDTH;
        add(&(struct observed_message){begin_s, begin_s + BURST / BANDWIDTH, BURST, 2, 3,
                                       NETWORK_WAY_PUSHES});
    }
    take();
    check(false, false, false);
    assert_true(made.network_notes.list[0].is_assumed);
}

static void no_messages_show_nothing(void **state)
{
    (void)state;
    take();
    check(false, false, false);
    assert_true(made.network_notes.list[0].is_assumed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(what_passes_at_once_is_not_paced, set_up),
        cmocka_unit_test_setup(each_way_is_told_by_itself, set_up),
        cmocka_unit_test_setup(what_meets_at_a_link_is_counted_together, set_up),
        cmocka_unit_test_setup(what_a_burst_does_not_matter_to_shows_nothing, set_up),
        cmocka_unit_test_setup(no_messages_show_nothing, set_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
