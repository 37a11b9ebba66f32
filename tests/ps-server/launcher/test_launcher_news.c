/* Tests of what a launcher tells the coordinator, and of what follows for the job. */
#include "ps-server/coordinator/generation.h"
#include "ps-server/launcher/launcher_news.h"
#include "tests/support/ps-server/coordinator_story.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

struct news_test {
    struct launcher_pipe pipe;
    int to;
    struct story story;
};

static void open_news(struct news_test *test, uint32_t workers)
{
    int ends[2];
    memset(test, 0, sizeof(*test));
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    test->to = ends[1];
    launcher_pipe_init(&test->pipe, ends[0]);
    story_open_training(&test->story, workers);
}

static void close_news(struct news_test *test)
{
    if (test->to >= 0) {
        close(test->to);
    }
    if (test->pipe.fd >= 0) {
        close(test->pipe.fd);
    }
    coordinator_finish(&test->story.coordinator);
}

/* Says it, and does what follows. */
static void tell(struct news_test *test, const char *text)
{
    struct launcher_news news;
    assert_int_equal(write(test->to, text, strlen(text)), strlen(text));
    while (launcher_pipe_next(&test->pipe, &news)) {
        launcher_news_apply(&news, &test->story.coordinator, 100);
    }
}

static void check_verdict(const struct news_test *test, enum status verdict, const char *reason)
{
    const struct coordinator *coordinator = &test->story.coordinator;
    assert_int_equal(coordinator->state, COORDINATOR_CLOSING);
    assert_int_equal(coordinator->verdict, verdict);
    assert_string_equal(coordinator->reason, reason);
}

static void lines_come_whole_and_in_order_and_others_are_passed_over(void **state)
{
    (void)state;
    struct news_test test;
    struct launcher_news news;
    open_news(&test, 2);
    static const char begin[] = "nonsense\nkilled worker x\nended worker 1 worker 1 en";
    static const char rest[] = "ded\nfailed for want of luck\n";
    assert_int_equal(write(test.to, begin, strlen(begin)), strlen(begin));
    assert_false(launcher_pipe_next(&test.pipe, &news));
    assert_int_equal(write(test.to, rest, strlen(rest)), strlen(rest));
    assert_true(launcher_pipe_next(&test.pipe, &news));
    assert_int_equal(news.kind, LAUNCHER_ENDED);
    assert_int_equal(news.role, ROLE_WORKER);
    assert_int_equal(news.index, 1);
    assert_string_equal(news.sentence, "worker 1 ended");
    assert_true(launcher_pipe_next(&test.pipe, &news));
    assert_int_equal(news.kind, LAUNCHER_FAILED);
    assert_string_equal(news.sentence, "for want of luck");
    assert_false(launcher_pipe_next(&test.pipe, &news));
    close_news(&test);
}

static void a_line_without_end_is_passed_over(void **state)
{
    (void)state;
    struct news_test test;
    struct launcher_news news;
    char much[3 * LAUNCHER_LINE_BYTES];
    open_news(&test, 2);
    memset(much, 'x', sizeof(much));
    assert_int_equal(write(test.to, much, sizeof(much)), sizeof(much));
    assert_false(launcher_pipe_next(&test.pipe, &news));
    tell(&test, "\ninterrupted by somebody\n");
    check_verdict(&test, STATUS_INTERRUPTED, "by somebody");
    close_news(&test);
}

static void a_member_that_has_ended_ends_the_job_at_once(void **state)
{
    (void)state;
    struct news_test test;
    open_news(&test, 3);
    tell(&test, "ended worker 2 worker 2 ended with exit code 1\n");
    check_verdict(&test, STATUS_UNREACHABLE, "worker 2 ended with exit code 1");
    assert_int_equal(test.story.coordinator.workers_lost, 1);
    assert_int_equal(test.story.coordinator.membership.workers[2].state, SLOT_GONE);
    close_news(&test);
}

static void who_was_killed_is_the_reason_whatever_others_said_before(void **state)
{
    (void)state;
    struct news_test test;
    open_news(&test, 3);
    tell(&test, "ended worker 0 worker 0 ended with exit code 1\n");
    tell(&test, "killed worker 1 worker 1 was killed by signal 7\n");
    check_verdict(&test, STATUS_UNREACHABLE, "worker 1 was killed by signal 7");
    assert_ptr_equal(test.story.coordinator.culprit.slot,
                     &test.story.coordinator.membership.workers[1]);
    tell(&test, "ended worker 2 worker 2 ended with exit code 1\n");
    check_verdict(&test, STATUS_UNREACHABLE, "worker 1 was killed by signal 7");
    close_news(&test);
}

/* A worker says that it leaves, and then its process ends. */
static void one_loss_that_is_told_twice_is_said_once(void **state)
{
    (void)state;
    struct news_test test;
    open_news(&test, 3);
    struct coordinator *coordinator = &test.story.coordinator;
    test.story.job.on_loss = ON_LOSS_REDEAL;
    test.story.job.min_workers = 1;
    story_give(&test.story, 3,
               (struct message){.kind = MESSAGE_LEAVE, .reason = STATUS_IO, .text = "it is full"},
               50);
    assert_int_equal(coordinator->state, COORDINATOR_RENEWING);
    tell(&test, "ended worker 2 worker 2 ended with exit code 1\n");
    assert_null(strstr(test.story.transcript.last_error, ", too"));
    assert_non_null(strstr(coordinator->reason, "left: it is full"));
    assert_int_equal(coordinator->workers_lost, 1);
    tell(&test, "ended worker 1 worker 1 ended with exit code 1\n");
    assert_string_equal(test.story.transcript.last_error,
                        "the job goes on: worker 1 ended with exit code 1, too");
    assert_int_equal(coordinator->workers_lost, 2);
    tell(&test, "killed worker 1 worker 1 was killed by signal 9\n");
    assert_string_equal(coordinator->reason, "worker 1 was killed by signal 9");
    assert_int_equal(coordinator->workers_lost, 2);
    close_news(&test);
}

/* A training job with workers that the launcher's starts 11, 12, ... are, which may lose some. */
static void open_launched(struct news_test *test, uint32_t workers)
{
    open_news(test, workers);
    test->story.job.on_loss = ON_LOSS_REDEAL;
    test->story.job.min_workers = 1;
    for (uint32_t i = 0; i < workers; i++) {
        test->story.coordinator.membership.workers[i].launch = 11 + i;
    }
}

static void the_late_end_of_an_earlier_process_is_not_that_of_the_one_in_its_place(void **state)
{
    (void)state;
    struct news_test test;
    open_launched(&test, 3);
    const struct coordinator *coordinator = &test.story.coordinator;
    coordinator->membership.workers[2].launch = 17; // it was started again
    tell(&test, "killed worker 2 launch 13 worker 2 was killed by signal 9\n");
    tell(&test, "ended worker 2 launch 13 worker 2 ended with exit code 1\n");
    assert_int_equal(coordinator->state, COORDINATOR_TRAINING);
    assert_int_equal(coordinator->workers_lost, 0);
    tell(&test, "killed worker 2 launch 17 worker 2 was killed by signal 9\n");
    assert_int_equal(coordinator->state, COORDINATOR_RENEWING);
    assert_string_equal(coordinator->reason, "worker 2 was killed by signal 9");
    assert_int_equal(coordinator->membership.workers[2].state, SLOT_GONE);
    close_news(&test);
}

static void one_that_somebody_has_started_by_hand_does_not_end_with_the_launchers(void **state)
{
    (void)state;
    struct news_test test;
    open_launched(&test, 3);
    const struct coordinator *coordinator = &test.story.coordinator;
    coordinator->membership.workers[2].launch = 0;
    tell(&test, "killed worker 2 launch 13 worker 2 was killed by signal 9\n");
    assert_int_equal(coordinator->state, COORDINATOR_TRAINING);
    close_news(&test);
}

/* Two others commit what they go on from. */
static void open_committing(struct news_test *test)
{
    open_launched(test, 2);
    test->story.job.on_loss = ON_LOSS_COMMIT;
    test->story.job.workers = 3;
}

static void a_newcomer_that_fails_before_it_takes_part_is_given_up_alone(void **state)
{
    (void)state;
    struct news_test test;
    open_committing(&test);
    const struct coordinator *coordinator = &test.story.coordinator;
    tell(&test, "newcomer worker 1 launch 17 worker 1 ended with exit code 7\n"); // it never asked
    assert_int_equal(coordinator->state, COORDINATOR_TRAINING);
    assert_string_equal(test.story.transcript.last_error,
                        "worker 1 ended with exit code 7; it had no part in the job, which goes on "
                        "without it");
    const struct wire_member member = {.role = ROLE_WORKER, .host = "node", .launch = 18};
    story_give(&test.story, 9,
               (struct message){.kind = MESSAGE_JOIN, .member = &member, .text = RINGSIDE_VERSION},
               100);
    assert_int_equal(coordinator->newcomers.count, 1);
    tell(&test, "newcomer worker 1 launch 18 worker 1 ended with exit code 7\n");
    assert_int_equal(coordinator->newcomers.count, 0);
    assert_int_equal(coordinator->state, COORDINATOR_TRAINING);
    assert_int_equal(coordinator->workers_lost, 0);

    // It was admitted, and has not been ready.
    coordinator->membership.workers[1].is_new = true;
    tell(&test, "newcomer worker 1 launch 12 worker 1 ended with exit code 7\n");
    assert_int_equal(coordinator->state, COORDINATOR_RENEWING);
    assert_int_equal(coordinator->verdict, STATUS_AGAIN);
    close_news(&test);
}

static void one_that_takes_part_and_fails_ends_the_job_though_it_was_a_newcomer(void **state)
{
    (void)state;
    struct news_test test;
    open_committing(&test);
    tell(&test, "newcomer worker 1 launch 12 worker 1 ended with exit code 7\n");
    check_verdict(&test, STATUS_UNREACHABLE, "worker 1 ended with exit code 7");
    close_news(&test);
}

/* It had to take another number, because somebody had its own. */
static void a_process_is_found_whatever_its_number_is_in_the_job(void **state)
{
    (void)state;
    struct news_test test;
    open_launched(&test, 3);
    const struct coordinator *coordinator = &test.story.coordinator;
    coordinator->membership.workers[1].launch = 0;
    coordinator->membership.workers[2].launch = 17;
    tell(&test, "killed worker 1 launch 17 worker 1 was killed by signal 9\n");
    assert_int_equal(coordinator->membership.workers[1].state, SLOT_CONNECTED);
    assert_int_equal(coordinator->membership.workers[2].state, SLOT_GONE);
    close_news(&test);
}

/* The verdict waits for the answer of the one that is there. */
static void a_late_end_does_not_stand_for_an_answer_to_the_verdict(void **state)
{
    (void)state;
    struct news_test test;
    open_launched(&test, 2);
    const struct slot *slot = &test.story.coordinator.membership.workers[1];
    story_done(&test.story, 1, "same", 10);
    story_done(&test.story, 2, "same", 10);
    tell(&test, "ended worker 1 launch 5 worker 1 ended with exit code 1\n");
    assert_false(slot->is_over);
    tell(&test, "ended worker 1 launch 12 worker 1 ended with exit code 1\n");
    assert_true(slot->is_over);
    close_news(&test);
}

/* Also of those that have not joined it yet. */
static void the_next_generation_knows_which_starts_of_the_launcher_its_workers_are(void **state)
{
    (void)state;
    struct news_test test;
    struct generation next;
    open_launched(&test, 3);
    struct coordinator *coordinator = &test.story.coordinator;
    tell(&test, "killed worker 1 launch 12 worker 1 was killed by signal 9\n");
    assert_int_equal(generation_next(coordinator, &next), STATUS_OK);
    coordinator_finish(coordinator);
    test.story.job.processes = 2;
    assert_int_equal(coordinator_init(coordinator, &test.story.job, "the job",
                                      &(struct coordinator_port){.context = &test.story}, 100),
                     STATUS_OK);
    generation_begin(&next, coordinator);
    assert_int_equal(coordinator->membership.workers[1].launch, 13);
    tell(&test, "killed worker 2 launch 3 an earlier one was killed\n");
    assert_int_equal(coordinator->state, COORDINATOR_GATHERING);
    assert_int_not_equal(coordinator->membership.workers[1].state, SLOT_GONE);
    generation_finish(&next);
    close_news(&test);
}

static void an_interrupt_stays_the_reason_whoever_is_killed_then(void **state)
{
    (void)state;
    struct news_test test;
    open_news(&test, 2);
    tell(&test, "interrupted by SIGINT\nkilled worker 1 worker 1 was killed by signal 9\n");
    check_verdict(&test, STATUS_INTERRUPTED, "by SIGINT");
    assert_null(test.story.coordinator.culprit.slot);
    close_news(&test);
}

static void a_completed_job_stays_completed_whoever_is_killed_then(void **state)
{
    (void)state;
    struct news_test test;
    open_news(&test, 2);
    story_done(&test.story, 1, "same", 10);
    story_done(&test.story, 2, "same", 10);
    tell(&test, "killed worker 1 worker 1 was killed by signal 9\n");
    check_verdict(&test, STATUS_OK, "");
    close_news(&test);
}

static void a_launcher_that_has_gone_ends_the_job(void **state)
{
    (void)state;
    struct news_test test;
    struct launcher_news news;
    open_news(&test, 2);
    close(test.to);
    test.to = -1;
    assert_true(launcher_pipe_next(&test.pipe, &news));
    launcher_news_apply(&news, &test.story.coordinator, 100);
    check_verdict(&test, STATUS_UNREACHABLE, "the launcher is gone: was it killed?");
    assert_false(launcher_pipe_next(&test.pipe, &news));
    close_news(&test);
}

static void without_a_launcher_there_is_no_news(void **state)
{
    (void)state;
    struct launcher_pipe pipe;
    struct launcher_news news;
    launcher_pipe_init(&pipe, -1);
    assert_false(launcher_pipe_next(&pipe, &news));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_come_whole_and_in_order_and_others_are_passed_over),
        cmocka_unit_test(a_line_without_end_is_passed_over),
        cmocka_unit_test(a_member_that_has_ended_ends_the_job_at_once),
        cmocka_unit_test(who_was_killed_is_the_reason_whatever_others_said_before),
        cmocka_unit_test(one_loss_that_is_told_twice_is_said_once),
        cmocka_unit_test(the_late_end_of_an_earlier_process_is_not_that_of_the_one_in_its_place),
        cmocka_unit_test(one_that_somebody_has_started_by_hand_does_not_end_with_the_launchers),
        cmocka_unit_test(a_newcomer_that_fails_before_it_takes_part_is_given_up_alone),
        cmocka_unit_test(one_that_takes_part_and_fails_ends_the_job_though_it_was_a_newcomer),
        cmocka_unit_test(a_process_is_found_whatever_its_number_is_in_the_job),
        cmocka_unit_test(a_late_end_does_not_stand_for_an_answer_to_the_verdict),
        cmocka_unit_test(the_next_generation_knows_which_starts_of_the_launcher_its_workers_are),
        cmocka_unit_test(an_interrupt_stays_the_reason_whoever_is_killed_then),
        cmocka_unit_test(a_completed_job_stays_completed_whoever_is_killed_then),
        cmocka_unit_test(a_launcher_that_has_gone_ends_the_job),
        cmocka_unit_test(without_a_launcher_there_is_no_news),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
