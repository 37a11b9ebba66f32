/* Tests of jobs whose program commits what it goes on from: when a commit counts, and who is in the
 * next generation of its processes. */
#include "ps-server/coordinator/deadlines.h"
#include "ps-server/coordinator/generation.h"
#include "tests/support/ps-server/coordinator_story.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <string.h>

#define WORKERS 3 // peers 1 to 3

static void open_training(struct story *story)
{
    story_open_training(story, WORKERS);
    story->job.on_loss = ON_LOSS_COMMIT;
    story->job.min_workers = 1;
    story->job.batch = 4;
    story->job.global_batch = 4 * WORKERS;
    story->job.steps = 1000;
}

static void commit(struct story *story, uint64_t peer, uint64_t step)
{
    story_give(story, peer, (struct message){.kind = MESSAGE_COMMIT, .step = step}, 100);
}

static void commit_all(struct story *story, uint64_t step)
{
    for (uint64_t peer = 1; peer <= WORKERS; peer++) {
        commit(story, peer, step);
    }
}

static uint32_t count_commits(const struct story *story)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < story->coordinator.membership.worker_count; i++) {
        count += story->coordinator.membership.workers[i].has_commit;
    }
    return count;
}

/* A process asks to take part in the job while it is under way. */
static void ask(struct story *story, uint64_t peer)
{
    const struct wire_member member = {.role = ROLE_WORKER, .host = "node"};
    const struct message join = {.kind = MESSAGE_JOIN, .member = &member, .text = RINGSIDE_VERSION};
    story_give(story, peer, join, 100);
    assert_int_equal(story_last_kind(story), MESSAGE_REFUSE);
}

/* The worker with this connection is gone, and the others have heard of it. */
static void lose(struct story *story, uint64_t peer)
{
    deadlines_note_closed(&story->coordinator, peer, 1000);
    coordinator_tick(&story->coordinator, 2000, 0);
}

static void expect_end(struct story *story, enum status verdict, const char *part)
{
    assert_int_equal(story->coordinator.verdict, verdict);
    if (strstr(story->coordinator.reason, part) == NULL) {
        fail_msg("\"%s\" is not in \"%s\"", part, story->coordinator.reason);
    }
    coordinator_finish(&story->coordinator);
}

static void expect_workers(const struct story *story, const uint32_t *numbers, uint32_t count)
{
    struct generation next;
    assert_int_equal(generation_next(&story->coordinator, &next), STATUS_OK);
    assert_int_equal(next.process_count, count);
    for (uint32_t i = 0; i < count; i++) {
        assert_int_equal(next.workers[i].number, numbers[i]);
    }
    generation_finish(&next);
}

static void a_commit_counts_when_all_have_come_to_it(void **state)
{
    (void)state;
    struct story story;
    open_training(&story);
    commit(&story, 1, 5);
    commit(&story, 3, 5);
    assert_int_equal(count_commits(&story), 0);
    commit(&story, 2, 5);
    assert_int_equal(count_commits(&story), WORKERS);
    assert_int_equal(story.coordinator.commit_step, 5);
    commit_all(&story, 5); // once more is fine
    commit_all(&story, 9);
    assert_int_equal(story.coordinator.commit_step, 9);
    assert_int_equal(story.coordinator.state, COORDINATOR_TRAINING);
    coordinator_finish(&story.coordinator);
}

static void commits_after_other_steps_fail_the_job(void **state)
{
    (void)state;
    struct story story;
    open_training(&story);
    commit(&story, 1, 5);
    commit(&story, 2, 6);
    expect_end(&story, STATUS_MISMATCH,
               "worker 1 (host node) commits after 6 steps, and others after 5");
    open_training(&story);
    commit_all(&story, 5);
    commit(&story, 3, 4);
    expect_end(&story, STATUS_MISMATCH, "after 4 steps, and the last commit was after 5");
    open_training(&story);
    commit(&story, 1, 5);
    commit(&story, 1, 5);
    expect_end(&story, STATUS_MISMATCH, "once more");
    open_training(&story);
    commit(&story, 1, 1001);
    expect_end(&story, STATUS_MISMATCH, "commits after 1001 steps");
}

static void a_job_that_ends_with_a_loss_takes_no_commits(void **state)
{
    (void)state;
    struct story story;
    open_training(&story);
    story.job.on_loss = ON_LOSS_FAIL;
    commit_all(&story, 5);
    assert_int_equal(count_commits(&story), 0);
    assert_int_equal(story.coordinator.state, COORDINATOR_TRAINING);
    coordinator_finish(&story.coordinator);
}

static void the_others_are_the_workers_of_the_next_generation(void **state)
{
    (void)state;
    static const uint32_t left[] = {1, 2};
    struct story story;
    struct generation next;
    open_training(&story);
    commit_all(&story, 5);
    lose(&story, 1);
    assert_int_equal(story.coordinator.verdict, STATUS_AGAIN);
    expect_workers(&story, left, 2);
    assert_int_equal(generation_next(&story.coordinator, &next), STATUS_OK);
    generation_change_job(&story.coordinator, &next, &story.job);
    assert_int_equal(story.job.workers, 2);
    assert_int_equal(story.job.global_batch, 8);
    assert_int_equal(next.places, WORKERS); // one that comes finds one
    generation_finish(&next);
    coordinator_finish(&story.coordinator);
}

static void who_comes_waits_for_a_commit_of_all_and_is_behind_them(void **state)
{
    (void)state;
    static const uint32_t all[] = {0, 2, 1};
    struct story story;
    open_training(&story);
    commit_all(&story, 5);
    lose(&story, 2);
    struct generation next;
    const struct coordinator_port port = story.coordinator.port;
    assert_int_equal(generation_next(&story.coordinator, &next), STATUS_OK);
    generation_change_job(&story.coordinator, &next, &story.job);
    coordinator_finish(&story.coordinator);
    assert_int_equal(coordinator_init(&story.coordinator, &story.job, "the job", &port, 2000),
                     STATUS_OK);
    generation_begin(&next, &story.coordinator);
    for (uint32_t i = 0; i < 2; i++) {
        story_join(&story, 11 + i, ROLE_WORKER, next.workers[i].number);
    }
    for (uint32_t i = 0; i < 2; i++) {
        story_ready(&story, 11 + i, ROLE_WORKER, "first", &story_layout);
    }
    story_connected(&story, 11);
    story_connected(&story, 12);
    assert_int_equal(story.coordinator.state, COORDINATOR_TRAINING);
    ask(&story, 9);
    commit(&story, 11, 8);
    assert_int_equal(story.coordinator.state, COORDINATOR_TRAINING);
    commit(&story, 12, 8);
    story_call_back(&story, 3000);
    assert_int_equal(story_last_kind(&story), MESSAGE_STOP);
    assert_int_equal(story.transcript.sent[story.transcript.sent_count - 1].rank, 1); // newcomer
    expect_workers(&story, all, 3);
    generation_finish(&next);
    expect_end(&story, STATUS_AGAIN, "worker 1 has come");
}

/* What they have was never given to those who came. */
static void without_anybody_who_has_the_commit_the_job_fails(void **state)
{
    (void)state;
    struct story story;
    open_training(&story);
    story.coordinator.membership.workers[1].has_commit = true;
    lose(&story, 2);
    expect_end(&story, STATUS_UNREACHABLE, "nobody is left who has what the program has committed");
}

static void too_few_that_are_left_fail_the_job(void **state)
{
    (void)state;
    struct story story;
    open_training(&story);
    story.job.min_workers = 3;
    lose(&story, 2);
    expect_end(&story, STATUS_UNREACHABLE, "2 worker processes are left, and --min-workers is 3");
}

static void a_program_that_gives_up_is_no_loss(void **state)
{
    (void)state;
    struct story story;
    open_training(&story);
    commit_all(&story, 5);
    const struct message leave = {
        .kind = MESSAGE_LEAVE, .reason = STATUS_UNREACHABLE, .text = "its program failed: why"};
    story_give(&story, 2, leave, 200);
    expect_end(&story, STATUS_UNREACHABLE, "its program failed: why");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_commit_counts_when_all_have_come_to_it),
        cmocka_unit_test(commits_after_other_steps_fail_the_job),
        cmocka_unit_test(a_job_that_ends_with_a_loss_takes_no_commits),
        cmocka_unit_test(the_others_are_the_workers_of_the_next_generation),
        cmocka_unit_test(who_comes_waits_for_a_commit_of_all_and_is_behind_them),
        cmocka_unit_test(without_anybody_who_has_the_commit_the_job_fails),
        cmocka_unit_test(too_few_that_are_left_fail_the_job),
        cmocka_unit_test(a_program_that_gives_up_is_no_loss),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
