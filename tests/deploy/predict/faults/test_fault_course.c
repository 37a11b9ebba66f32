/* Tests of what faults cost a whole job, whose steps take known times. */
#include "deploy/predict/faults/fault_course.h"
#include "tests/support/deploy/predictions.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <string.h>

#define STEP_S 0.01 // with all processes; of each that is lost one more

static const struct recovery recovery = {
    .notice_s = 0.5, .go_on_s = 2, .join_s = 3, .copy_every_s = 1};

static enum status step_of(void *context, uint32_t lost_workers, uint32_t lost_servers,
                           double *ret_step_s)
{
    (void)context;
    *ret_step_s = STEP_S * (1 + lost_workers) + 0.1 * STEP_S * lost_servers;
    return STATUS_OK;
}

static struct fault_job job_in(enum mode_kind kind)
{
    return (struct fault_job){
        .mode = {.kind = kind, .slack_steps = 100}, .workers = 4, .servers = 2, .steps = 1000};
}

static struct fault_course course_of(const struct fault_job *job, const char *text)
{
    char why[256];
    struct faults faults;
    struct fault_course course;
    const struct fault_steps steps = {step_of, NULL};
    assert_int_equal(faults_parse(text, &faults, why, sizeof(why)), STATUS_OK);
    assert_int_equal(fault_course_check(job, &faults, why, sizeof(why)), STATUS_OK);
    assert_int_equal(fault_course_make(job, &faults, &recovery, &steps, &course), STATUS_OK);
    return course;
}

/* 100 steps lie between two copies, and half of them are made again, by those that are left. */
static void a_loss_costs_a_generation_and_steps(void **state)
{
    (void)state;
    const struct fault_job job = job_in(MODE_RING);
    const struct fault_course course = course_of(&job, "rank=2,step=401,kill");
    predictions_check("plain", 4, course.plain_s, 10, 1e-9);
    predictions_check("notice", 4, course.notice_s, 0.5, 1e-9);
    predictions_check("go on", 4, course.go_on_s, 2, 1e-9);
    predictions_check("steps again", 4, course.steps_again, 50, 1e-9);
    predictions_check("again", 4, course.again_s, 50 * 2 * STEP_S, 1e-9);
    predictions_check("slower", 4, course.slower_s, 600 * STEP_S, 1e-9);
    predictions_check("all", 4, course.all_s, 10 + 0.5 + 2 + 1 + 6, 1e-9);
    assert_int_equal(course.losses, 1);
}

/* No more steps are made again than there were. */
static void an_early_loss_has_few_steps_to_make_again(void **state)
{
    (void)state;
    const struct fault_job job = job_in(MODE_PS_SYNC);
    predictions_check("steps", 4, course_of(&job, "rank=0,step=11,kill").steps_again, 10, 1e-9);
    assert_true(course_of(&job, "rank=0,step=1,kill").steps_again == 0);
}

/* But where a server is lost, and where errors of compressed gradients lie in a copy. */
static void races_make_nothing_again_for_a_lost_worker(void **state)
{
    (void)state;
    static const enum mode_kind kinds[] = {MODE_PS_SSP, MODE_PS_ASYNC};
    for (int i = 0; i < 2; i++) {
        struct fault_job job = job_in(kinds[i]);
        const struct fault_course course = course_of(&job, "rank=2,step=401,kill");
        assert_true(course.steps_again == 0 && course.again_s == 0);
        predictions_check("all", 4, course.all_s, 10 + 0.5 + 2 + 6, 1e-9);
        predictions_check("server", 4, course_of(&job, "shard=1,step=400,kill").steps_again, 50,
                          1e-9);
        job.compresses = true;
        predictions_check("codes", 4, course_of(&job, "rank=2,step=401,kill").steps_again, 50,
                          1e-9);
    }
}

static void a_worker_that_comes_ends_the_slow_steps(void **state)
{
    (void)state;
    const struct fault_job job = job_in(MODE_RING);
    const struct fault_course course = course_of(&job, "rank=2,step=401,kill;after=step:700,join");
    predictions_check("slower", 4, course.slower_s, 300 * STEP_S, 1e-9);
    predictions_check("go on", 4, course.go_on_s, 2 + 3, 1e-9);
    predictions_check("all", 4, course.all_s, 10 + 0.5 + 5 + 1 + 3, 1e-9);
    assert_int_equal(course.joins, 1);
}

static void a_lost_server_is_missed_likewise(void **state)
{
    (void)state;
    const struct fault_job job = job_in(MODE_PS_SYNC);
    const struct fault_course course = course_of(&job, "shard=1,step=400,kill");
    predictions_check("slower", 4, course.slower_s, 600 * 0.1 * STEP_S, 1e-9);
    predictions_check("again", 4, course.again_s, 50 * 1.1 * STEP_S, 1e-9);
}

/* Who stands still holds up those that wait for it. */
static void a_stop_costs_what_others_cannot_do_meanwhile(void **state)
{
    (void)state;
    static const char stop[] = "rank=1,step=100,stop=5s", shard[] = "shard=1,step=100,stop=5s";
    struct fault_job ring = job_in(MODE_RING), sync = job_in(MODE_PS_SYNC),
                     ssp = job_in(MODE_PS_SSP), async = job_in(MODE_PS_ASYNC);
    predictions_check("ring", 4, course_of(&ring, stop).stopped_s, 5, 1e-9);
    predictions_check("ps-sync", 4, course_of(&sync, stop).stopped_s, 5, 1e-9);
    // The others make 100 steps of 10 ms, and then wait; the one that stood still lost 5 s.
    predictions_check("ps-ssp", 4, course_of(&ssp, stop).stopped_s, (3 * 4.0 + 5) / 4, 1e-9);
    predictions_check("ps-async", 4, course_of(&async, stop).stopped_s, 5.0 / 4, 1e-9);
    predictions_check("a shard", 4, course_of(&async, shard).stopped_s, 5, 1e-9);
    sync.backup = 1;
    assert_true(course_of(&sync, stop).stopped_s == 0);
    predictions_check("partition", 4, course_of(&ring, "rank=1,step=100,partition=3s").all_s, 13,
                      1e-9);
}

static void what_a_job_does_not_have_is_named(void **state)
{
    (void)state;
    static const struct {
        const char *text, *why;
    } cases[] = {
        {"rank=4,step=1,kill", "rank=4,step=1,kill: the job has no such rank"},
        {"rank=1,step=1001,kill", "has not so many steps"},
        {"shard=2,step=1,stop=1s", "no such shard"},
        {"shard=0,step=1,kill", "is the coordinator"},
        {"after=step:1,join", "no worker was killed"},
        {"rank=0,step=1,kill;rank=1,step=1,kill;rank=2,step=1,kill;rank=3,step=1,kill",
         "no worker would be left"},
    };
    const struct fault_job job = job_in(MODE_PS_SYNC);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char why[256];
        struct faults faults;
        assert_int_equal(faults_parse(cases[i].text, &faults, why, sizeof(why)), STATUS_OK);
        assert_int_equal(fault_course_check(&job, &faults, why, sizeof(why)), STATUS_INVALID);
        assert_non_null(strstr(why, cases[i].why));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_loss_costs_a_generation_and_steps),
        cmocka_unit_test(an_early_loss_has_few_steps_to_make_again),
        cmocka_unit_test(races_make_nothing_again_for_a_lost_worker),
        cmocka_unit_test(a_worker_that_comes_ends_the_slow_steps),
        cmocka_unit_test(a_lost_server_is_missed_likewise),
        cmocka_unit_test(a_stop_costs_what_others_cannot_do_meanwhile),
        cmocka_unit_test(what_a_job_does_not_have_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
