/* Tests of how the choices of worker 0 get to the others. In virtual time. */
#include "ps-server/coordinator/choices.h"
#include "tests/support/ps-server/coordinator_story.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <string.h>

#define LINES "a = 1\nb = 2 3=4\n"

static void give_choices(struct story *story, uint64_t peer, const char *text, uint64_t now_ms)
{
    story_give(story, peer, (struct message){.kind = MESSAGE_CHOICES, .text = text}, now_ms);
}

static void ready(struct story *story, uint64_t peer, uint64_t digest)
{
    struct wire_member member = {.role = ROLE_WORKER,
                                 .host = "node",
                                 .endpoints = "place",
                                 .params_digest = "first",
                                 .device = "cuda",
                                 .train_samples = 100,
                                 .test_samples = 10,
                                 .choices_digest = digest};
    story_give(story, peer,
               (struct message){.kind = MESSAGE_READY, .member = &member, .layout = &story_layout},
               20);
}

/* So many workers have joined a ring, at peers 1, 2, ... */
static void open_ring(struct story *story, uint32_t workers)
{
    story_open(story, "ring", workers, 0);
    for (uint32_t i = 0; i < workers; i++) {
        story_join(story, 1 + i, ROLE_WORKER, i);
    }
}

static uint32_t count_sent(const struct story *story, uint64_t peer, enum message_kind kind)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < story->transcript.sent_count; i++) {
        count += story->transcript.sent[i].peer == peer && story->transcript.sent[i].kind == kind;
    }
    return count;
}

static void whoever_asks_gets_the_choices_of_worker_0_once_they_are_known(void **state)
{
    (void)state;
    struct story story;
    open_ring(&story, 4);
    give_choices(&story, 3, "", 12); // asks too early
    assert_int_equal(story_last_kind(&story), MESSAGE_WELCOME);
    give_choices(&story, 1, LINES, 13);
    assert_int_equal(story_last_kind(&story), MESSAGE_CHOICES);
    assert_string_equal(story_last_text(&story), LINES);
    give_choices(&story, 2, "mine = 7\n", 14); // what it says itself is nobody's concern
    assert_int_equal(count_sent(&story, 1, MESSAGE_CHOICES), 0);
    assert_int_equal(count_sent(&story, 2, MESSAGE_CHOICES), 1);
    assert_int_equal(count_sent(&story, 3, MESSAGE_CHOICES), 1);
    assert_int_equal(count_sent(&story, 4, MESSAGE_CHOICES), 0); // has not asked
    assert_string_equal(story_last_text(&story), LINES);
    give_choices(&story, 1, "other = 9\n", 15); // they are made once
    assert_string_equal(story.coordinator.choices.text, LINES);
    coordinator_finish(&story.coordinator);
}

static void a_worker_0_that_is_ready_without_choices_has_none(void **state)
{
    (void)state;
    struct story story;
    open_ring(&story, 3);
    give_choices(&story, 2, "", 12);
    ready(&story, 1, 0);
    assert_int_equal(story_last_kind(&story), MESSAGE_CHOICES);
    assert_string_equal(story_last_text(&story), "");
    give_choices(&story, 3, "", 22);
    assert_int_equal(count_sent(&story, 3, MESSAGE_CHOICES), 1);
    coordinator_finish(&story.coordinator);
}

static void choices_come_from_those_who_prepare_and_nobody_else(void **state)
{
    (void)state;
    struct story story;
    story_open(&story, "ps-sync", 2, 1);
    story_join(&story, 1, ROLE_WORKER, 0);
    story_join(&story, 9, ROLE_SERVER, 0);
    give_choices(&story, 9, LINES, 12);
    give_choices(&story, 77, LINES, 12); // is no member
    assert_false(story.coordinator.choices.are_known);
    ready(&story, 1, 5);
    give_choices(&story, 1, LINES, 21);
    assert_string_equal(story.coordinator.choices.text, "");
    coordinator_finish(&story.coordinator);
}

static void who_computes_otherwise_is_named(void **state)
{
    (void)state;
    char ranks[64] = "";
    struct story story;
    open_ring(&story, 5);
    for (uint32_t i = 0; i < 5; i++) {
        ready(&story, 1 + i, i == 1 || i == 4 ? 66 : 55);
    }
    assert_int_equal(story.coordinator.state, COORDINATOR_CONNECTING);
    assert_true(choices_differ(&story.coordinator, ranks, sizeof(ranks)));
    assert_string_equal(ranks, "1 and 4");
    assert_non_null(strstr(story.transcript.last_fact, "others have rank 1 and 4"));
    coordinator_finish(&story.coordinator);
}

static void who_computes_alike_is_not(void **state)
{
    (void)state;
    char ranks[64] = "";
    static const uint64_t digests[] = {0, 55};
    for (size_t k = 0; k < 2; k++) {
        struct story story;
        open_ring(&story, 2);
        ready(&story, 1, digests[k]);
        ready(&story, 2, digests[k]);
        assert_false(choices_differ(&story.coordinator, ranks, sizeof(ranks)));
        assert_null(strstr(story.transcript.last_fact, "algorithms"));
        coordinator_finish(&story.coordinator);
    }
}

/* Timing has time of its own once all have joined, and others begin when worker 0 is through. */
static void timing_is_waited_for(void **state)
{
    (void)state;
    static const struct {
        enum job_engines engines;
        uint64_t told_s, failed_s; // when worker 0 tells; 0: never
    } cases[] = {
        {JOB_ENGINES_HEURISTIC, 0, 30},
        {JOB_ENGINES_TIMED, 0, 150},
        {JOB_ENGINES_HEURISTIC, 20, 50},
    };
    for (size_t k = 0; k < sizeof(cases) / sizeof(cases[0]); k++) {
        struct story story;
        story_open(&story, "ring", 2, 0);
        story.job.start_timeout = 30;
        story.job.cuda_engines = cases[k].engines;
        story_join(&story, 1, ROLE_WORKER, 0);
        story_join(&story, 2, ROLE_WORKER, 1); // at 10 ms
        uint64_t at_s = 0;
        while (story.coordinator.state == COORDINATOR_GATHERING && at_s < 1000) {
            at_s++;
            if (at_s == cases[k].told_s) {
                give_choices(&story, 1, LINES, 1000 * at_s);
            }
            for (uint64_t peer = 1; peer <= 2; peer++) {
                story_give(&story, peer, (struct message){.kind = MESSAGE_HEARTBEAT}, 1000 * at_s);
            }
            coordinator_tick(&story.coordinator, 1000 * at_s, 0);
        }
        assert_in_range(at_s, cases[k].failed_s, cases[k].failed_s + 1);
        assert_int_equal(story.coordinator.verdict, STATUS_TIMED_OUT);
        coordinator_finish(&story.coordinator);
    }
}

/* As long as somebody is missing, he is waited for as ever. */
static void timing_excuses_nobody_who_is_missing(void **state)
{
    (void)state;
    struct story story;
    story_open(&story, "ring", 2, 0);
    story.job.start_timeout = 30;
    story.job.cuda_engines = JOB_ENGINES_TIMED;
    story_join(&story, 1, ROLE_WORKER, 0);
    story_give(&story, 1, (struct message){.kind = MESSAGE_HEARTBEAT}, 31000);
    coordinator_tick(&story.coordinator, 31000, 0);
    assert_int_equal(story.coordinator.verdict, STATUS_TIMED_OUT);
    assert_non_null(strstr(story.coordinator.reason, "only 1 of 2 workers have joined"));
    coordinator_finish(&story.coordinator);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whoever_asks_gets_the_choices_of_worker_0_once_they_are_known),
        cmocka_unit_test(a_worker_0_that_is_ready_without_choices_has_none),
        cmocka_unit_test(choices_come_from_those_who_prepare_and_nobody_else),
        cmocka_unit_test(who_computes_otherwise_is_named),
        cmocka_unit_test(who_computes_alike_is_not),
        cmocka_unit_test(timing_is_waited_for),
        cmocka_unit_test(timing_excuses_nobody_who_is_missing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
