/* Tests of what is told of options that a program of one's own makes useless. */
#include "common/job/job.h"
#include "ps-server/record/unmet.h"
#include "tests/support/common/choices.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <stdio.h>
#include <string.h>

struct told {
    char text[1024];
    struct job job;
};

static void add(void *context, const char *sentence)
{
    struct told *told = context;
    size_t used = strlen(told->text);
    snprintf(told->text + used, sizeof(told->text) - used, "%s\n", sentence);
}

static void check_made(struct told *told, uint64_t first, uint64_t second, const char *expected)
{
    struct results_rank ranks[2] = {{.made = first}, {.made = second}};
    const struct coordinator coordinator = {
        .job = &told->job, .results = {.ranks = ranks, .worker_count = 2}, .verdict = STATUS_OK};
    told->text[0] = '\0';
    unmet_tell(&coordinator, add, told);
    assert_string_equal(told->text, expected);
}

/* Of two workers that have made 90 and 120 steps. */
static void check(struct told *told, const char *expected)
{
    check_made(told, 90, 120, expected);
}

static struct told open_job(const char *faults)
{
    struct told told = {.job = {.model = JOB_EXTERNAL_PREFIX "x", .workers = 2}};
    told.job.steps = JOB_STEPS_OPEN;
    snprintf(told.job.faults, sizeof(told.job.faults), "%s", faults);
    return told;
}

static void faults_beyond_the_end_are_told(void **state)
{
    (void)state;
    struct told told =
        open_job("rank=0,step=90,stop=1s;rank=0,step=91,stop=1s;rank=1,step=91,stop=1s;"
                 "shard=0,step=200,kill");
    check(&told, "--fault rank=0,step=91,stop=1s never came: worker 0 made 90 steps\n"
                 "--fault shard=0,step=200,kill never came: the job made 105 steps\n");
    told.job.steps = 200; // is checked before the job begins
    check(&told, "");
    told = open_job("rank=0,step=2,kill");
    check_made(&told, 1, 1, "--fault rank=0,step=2,kill never came: worker 0 made 1 step\n");
}

/* What has struck is off the list. Of stops it is not known. */
static void kills_that_did_not_strike_are_told(void **state)
{
    (void)state;
    struct told told = open_job("rank=0,step=50,stop=1s;rank=1,step=99,kill;shard=0,step=99,kill;"
                                "rank=0,step=120,stop=1s");
    told.job.steps = 200;
    told.job.mode = mode_of("ps-async");
    check(&told,
          "--fault rank=1,step=99,kill did not strike: rank 1 had not come to that step when its "
          "phase or the job ended\n"
          "--fault shard=0,step=99,kill did not strike: a kill that comes before it did not\n"
          "--fault rank=0,step=120,stop=1s did not strike: a kill that comes before it did not\n");
    told.job.mode = mode_of("ring"); // has no servers
    check(&told,
          "--fault rank=1,step=99,kill did not strike: rank 1 had not come to that step when its "
          "phase or the job ended\n"
          "--fault rank=0,step=120,stop=1s did not strike: a kill that comes before it did not\n");
    told.job.mode = mode_of("local");
    check(&told, "");
}

/* One that was taken in is off the list. */
static void workers_that_did_not_come_are_told(void **state)
{
    (void)state;
    struct told told = open_job("after=step:40,join");
    told.job.steps = 200;
    told.job.mode = mode_of("ring");
    check(&told, "--fault after=step:40,join did not strike: no worker had come and been taken in "
                 "when the job ended\n");
    told.job.mode = mode_of("local");
    check(&told, "");
    told = open_job("rank=1,step=99,kill;after=step:110,join"); // waits for the kill
    told.job.steps = 200;
    told.job.mode = mode_of("ring");
    check(&told,
          "--fault rank=1,step=99,kill did not strike: rank 1 had not come to that step when its "
          "phase or the job ended\n"
          "--fault after=step:110,join did not strike: a kill that comes before it did not\n");
}

static void a_timeline_beyond_the_end_is_told(void **state)
{
    (void)state;
    struct told told = open_job("none");
    check(&told, "");
    told.job.timeline = true;
    told.job.timeline_steps = (struct trace_window){0, UINT64_MAX};
    check(&told, "");
    told.job.timeline_steps = (struct trace_window){99, 120};
    check(&told, "");
    told.job.timeline_steps = (struct trace_window){99, 130};
    check(&told,
          "--timeline-steps 100..130 has not recorded all of them: the job made 120 steps\n");
    told.job.timeline_steps = (struct trace_window){120, 130};
    check(&told, "--timeline-steps 121..130 has recorded nothing: the job made 120 steps\n");
}

static void an_optimizer_that_nobody_uses_is_told(void **state)
{
    (void)state;
    struct told told = open_job("none");
    const struct coordinator coordinator = {.job = &told.job};
    struct job asked = told.job;
    asked.lr = 0.5;
    asked.optimizer = told.job.optimizer = OPTIMIZER_SGD; // which makes the updates
    unmet_tell_optimizer(&coordinator, &asked, add, &told);
    assert_string_equal(told.text, "");
    told.job.optimizer = OPTIMIZER_AUTO;
    unmet_tell_optimizer(&coordinator, &asked, add, &told);
    assert_non_null(strstr(told.text, "--optimizer sgd does nothing here: the program makes"));
    told.text[0] = '\0';
    asked.optimizer = OPTIMIZER_AUTO;
    unmet_tell_optimizer(&coordinator, &asked, add, &told);
    assert_non_null(strstr(told.text, "--lr 0.5 does nothing here: the program makes"));
    told.text[0] = '\0';
    asked.lr = 0;
    unmet_tell_optimizer(&coordinator, &asked, add, &told);
    assert_string_equal(told.text, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(faults_beyond_the_end_are_told),
        cmocka_unit_test(kills_that_did_not_strike_are_told),
        cmocka_unit_test(workers_that_did_not_come_are_told),
        cmocka_unit_test(a_timeline_beyond_the_end_is_told),
        cmocka_unit_test(an_optimizer_that_nobody_uses_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
