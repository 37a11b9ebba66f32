/* Tests of the faults of a job: which are off its list, and which it cannot have. */
#include "common/job/faults.h"
#include "tests/support/common/sample_job.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <stdio.h>
#include <string.h>

/* The process that is lost by a long stop may have its ranks carried by others, which make the step
 * again. */
static void what_has_struck_a_lost_process_does_not_strike_who_carries_its_ranks(void **state)
{
    (void)state;
    struct job job = {.workers = 8};
    snprintf(job.faults, sizeof(job.faults), "%s",
             "rank=2,step=3,stop=9s;rank=3,step=4,partition=1s;rank=2,step=5,stop=1s;"
             "rank=4,step=3,stop=1s;rank=2,step=4,kill");
    faults_forget_ranks(&job, (struct rank_block){2, 2}, 4);
    assert_string_equal(job.faults,
                        "rank=2,step=5,stop=1s;rank=4,step=3,stop=1s;rank=2,step=4,kill");
}

static void a_kill_that_has_struck_is_off_the_list_with_what_came_before_it(void **state)
{
    (void)state;
    struct job job = {.workers = 4};
    snprintf(job.faults, sizeof(job.faults),
             "rank=2,step=100,kill;rank=1,step=50,kill;shard=0,step=50,kill;rank=0,step=45,stop=1s;"
             "rank=0,step=60,stop=1s");
    faults_forget_kill(&job);
    assert_string_equal(job.faults,
                        "rank=2,step=100,kill;shard=0,step=50,kill;rank=0,step=60,stop=1s");
    faults_forget_kill(&job);
    assert_string_equal(job.faults, "rank=2,step=100,kill;rank=0,step=60,stop=1s");
    faults_forget_kill(&job);
    assert_string_equal(job.faults, "none");
    faults_forget_kill(&job);
    assert_string_equal(job.faults, "none");
}

static void joins_outlive_kills_and_are_struck_off_by_their_steps(void **state)
{
    (void)state;
    struct job job = {.workers = 4};
    snprintf(job.faults, sizeof(job.faults),
             "after=step:90,join;after=step:40,join;rank=1,step=50,kill;rank=0,step=90,stop=1s");
    struct faults faults = faults_of(&job);
    assert_int_equal(faults_next_join(&faults)->step, 40);
    assert_int_equal(faults_count_joins(&faults, 39), 0);
    assert_int_equal(faults_count_joins(&faults, 40), 1);
    assert_int_equal(faults_count_joins(&faults, UINT64_MAX), 2);
    faults_forget_kill(&job); // nobody has joined yet
    assert_string_equal(job.faults, "after=step:90,join;after=step:40,join;rank=0,step=90,stop=1s");
    faults_forget_joins(&job, 0);
    faults_forget_joins(&job, 1);
    assert_string_equal(job.faults, "after=step:90,join;rank=0,step=90,stop=1s");
    faults_forget_joins(&job, 1);
    assert_string_equal(job.faults, "rank=0,step=90,stop=1s");
    faults = faults_of(&job);
    assert_null(faults_next_join(&faults));
}

static void a_worker_that_comes_needs_a_place(void **state)
{
    (void)state;
    char why[OPTION_ERROR_BYTES];
    sample_job_refuse(SAMPLE_JOB("mode=ring", "workers=4", "fault=after=step:9,join"),
                      "each join needs the kill of a rank before it");
    sample_job_refuse(
        SAMPLE_JOB("mode=ring", "workers=4", "fault=rank=1,step=10,kill;after=step:9,join"),
        "each join needs the kill of a rank before it");
    sample_job_refuse(SAMPLE_JOB("mode=ring", "workers=4",
                                 "fault=rank=1,step=2,kill;after=step:9,join;after=step:10,join"),
                      "--fault after=step:10,join: there is no place");
    sample_job_refuse(SAMPLE_JOB("mode=ring", "workers=4", "on-loss=fail",
                                 "fault=rank=1,step=2,kill;after=step:9,join"),
                      "--on-loss fail the kill before it ends the job");
    // The place that a generation has, or a job with fewer processes; a launcher has nobody for it.
    struct job job = sample_job_resolved(
        SAMPLE_JOB("mode=ring", "workers=4", "processes=3", "fault=after=step:9,join"));
    assert_int_equal(faults_check_replacements(&job, why, sizeof(why)), STATUS_INVALID);
    assert_non_null(strstr(why, "there is no place for a worker"));
    job = sample_job_resolved(
        SAMPLE_JOB("mode=ring", "workers=4", "fault=rank=1,step=9,kill;after=step:9,join"));
    assert_int_equal(faults_check_replacements(&job, why, sizeof(why)), STATUS_OK);
    // What other modes of a comparison have is no contradiction here.
    sample_job_resolved(SAMPLE_JOB("mode=local", "fault=rank=1,step=2,kill;after=step:9,join"));
}

static void a_resumed_job_has_the_faults_of_its_checkpoint_behind_it(void **state)
{
    (void)state;
    struct job job = {.workers = 4};
    snprintf(job.faults, sizeof(job.faults),
             "rank=0,step=50,kill;rank=1,step=60,kill;shard=0,step=61,stop=1s");
    faults_forget_steps(&job, 49);
    assert_non_null(strstr(job.faults, "step=50"));
    faults_forget_steps(&job, 60);
    assert_string_equal(job.faults, "shard=0,step=61,stop=1s");
}

static void shards_that_a_job_has_lost_have_no_faults(void **state)
{
    (void)state;
    struct job job = {.mode = {.kind = MODE_PS_SYNC}, .servers = 2, .server_threads = 2};
    snprintf(job.faults, sizeof(job.faults),
             "shard=3,step=50,kill;shard=4,step=60,kill;rank=5,step=61,kill");
    faults_forget_shards(&job);
    assert_string_equal(job.faults, "shard=3,step=50,kill;rank=5,step=61,kill");
}

static void a_job_without_the_rank_the_shard_or_the_step_is_refused(void **state)
{
    (void)state;
    sample_job_refuse(SAMPLE_JOB("workers=4", "fault=rank=7,step=3,kill"),
                      "--fault rank=7,step=3,kill: the job has 4 ranks, which are 0 to 3");
    sample_job_refuse(SAMPLE_JOB("workers=1", "fault=rank=1,step=3,stop=2s"), "has one rank");
    sample_job_refuse(SAMPLE_JOB("servers=2", "server-threads=2", "fault=shard=4,step=3,kill"),
                      "the job has 4 shards, which are 0 to 3");
    sample_job_refuse(SAMPLE_JOB("steps=20", "fault=rank=1,step=20,kill;shard=0,step=21,kill"),
                      "--fault shard=0,step=21,kill never comes: the job has 20 steps");
    sample_job_refuse(SAMPLE_JOB("mode=local", "steps=20", "fault=rank=0,step=21,kill"),
                      "never comes");
    sample_job_resolved(SAMPLE_JOB("workers=4", "servers=2", "server-threads=2", "steps=20",
                                   "fault=rank=3,step=20,kill;shard=3,step=20,kill"));
    sample_job_resolved(SAMPLE_JOB("workers=4", "processes=2", "fault=rank=3,step=2,kill"));
    // What other modes of a comparison have is no contradiction here.
    sample_job_resolved(SAMPLE_JOB("mode=local", "fault=rank=3,step=2,kill"));
    sample_job_resolved(SAMPLE_JOB("mode=ring", "fault=shard=9,step=2,kill"));
}

/* Of a job on so many samples. */
static enum status check_phases(struct job job, uint64_t samples, char why[OPTION_ERROR_BYTES])
{
    struct phases phases;
    job = sample_job_resolved(job);
    assert_int_equal(phases_of(&job, samples, &phases, why, OPTION_ERROR_BYTES), STATUS_OK);
    const struct faults faults = faults_of(&job);
    return faults_check_phases(&faults, &phases, why, OPTION_ERROR_BYTES);
}

static void with_the_data_a_step_behind_the_end_is_refused(void **state)
{
    (void)state;
    char why[OPTION_ERROR_BYTES];
    const struct job last =
        SAMPLE_JOB("workers=2", "batch=5", "epochs=3", "fault=rank=0,step=30,kill");
    const struct job behind =
        SAMPLE_JOB("workers=2", "batch=5", "epochs=3", "fault=rank=0,step=31,kill");
    assert_int_equal(check_phases(last, 105, why), STATUS_OK);
    assert_int_equal(check_phases(behind, 105, why), STATUS_INVALID);
    assert_string_equal(why, "--fault rank=0,step=31,kill never comes: the job has 30 steps");
}

static void a_shard_is_struck_only_in_phases_in_which_it_has_updates(void **state)
{
    (void)state;
    static const struct {
        const char *fault;
        enum status status;
    } cases[] = {
        {"fault=shard=0,step=1,kill", STATUS_INVALID},
        {"fault=shard=0,step=4,kill", STATUS_INVALID},
        {"fault=shard=0,step=5,kill", STATUS_OK},
        {"fault=shard=0,step=8,kill", STATUS_OK},
        {"fault=shard=0,step=9,kill", STATUS_INVALID},
        {"fault=rank=0,step=9,kill", STATUS_OK},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char why[OPTION_ERROR_BYTES] = "";
        const struct job job = SAMPLE_JOB("mode=ring", "steps=10", "batch=5",
                                          "switch=step:4=ps-sync;step:8=ring", cases[i].fault);
        assert_int_equal(check_phases(job, 1000, why), cases[i].status);
        assert_true(cases[i].status == STATUS_OK || strstr(why, "mode ring") != NULL);
    }
    char why[OPTION_ERROR_BYTES];
    const struct job ring = SAMPLE_JOB("mode=ring", "fault=shard=0,step=2,kill");
    assert_int_equal(check_phases(ring, 1000, why), STATUS_OK); // for others of a comparison
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_has_struck_a_lost_process_does_not_strike_who_carries_its_ranks),
        cmocka_unit_test(a_kill_that_has_struck_is_off_the_list_with_what_came_before_it),
        cmocka_unit_test(joins_outlive_kills_and_are_struck_off_by_their_steps),
        cmocka_unit_test(a_worker_that_comes_needs_a_place),
        cmocka_unit_test(a_resumed_job_has_the_faults_of_its_checkpoint_behind_it),
        cmocka_unit_test(shards_that_a_job_has_lost_have_no_faults),
        cmocka_unit_test(a_job_without_the_rank_the_shard_or_the_step_is_refused),
        cmocka_unit_test(with_the_data_a_step_behind_the_end_is_refused),
        cmocka_unit_test(a_shard_is_struck_only_in_phases_in_which_it_has_updates),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
