/* Tests of --fault: what is read, what is refused, and which fault strikes whom when. */
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

static struct faults parse(const char *text)
{
    struct faults faults;
    char why[256] = "";
    if (faults_parse(text, &faults, why, sizeof(why)) != STATUS_OK) {
        fail_msg("%s", why);
    }
    return faults;
}

static void what_is_read_is_written_as_it_was(void **state)
{
    (void)state;
    static const char *const texts[] = {"rank=2,step=100,kill", "rank=0,step=1,stop=5s",
                                        "shard=0,step=50,kill", "rank=2,step=100,partition=3s",
                                        "shard=12,step=1000000000000000,stop=0.25s"};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        const struct faults faults = parse(texts[i]);
        char text[FAULT_TEXT_BYTES];
        assert_int_equal(faults.count, 1);
        fault_format(&faults.list[0], text);
        assert_string_equal(text, texts[i]);
    }
    assert_int_equal(parse("none").count, 0);
    assert_int_equal(parse("rank=1,step=2,kill;rank=1,step=3,kill;shard=1,step=2,stop=1s").count,
                     3);
}

static void what_is_no_fault_is_refused_and_says_why(void **state)
{
    (void)state;
    static const char *const texts[][2] = {
        {"", "must begin with rank=R or shard=K"},
        {"kill", "must begin with rank=R or shard=K"},
        {"worker=1,step=2,kill", "must begin with rank=R or shard=K"},
        {"rank=,step=2,kill", "must begin with rank=R or shard=K"},
        {"rank=-1,step=2,kill", "must begin with rank=R or shard=K"},
        {"rank=1.5,step=2,kill", "must begin with rank=R or shard=K"},
        {"rank=99999999999,step=2,kill", "must begin with rank=R or shard=K"},
        {"step=2,rank=1,kill", "must begin with rank=R or shard=K"},
        {"rank=1", "names no step"},
        {"rank=1,kill", "names no step"},
        {"rank=1,step=0,kill", "steps count from 1"},
        {"rank=1,step=-5,kill", "names no step"},
        {"rank=1,step=1e3,kill", "names no step"},
        {"shard=1,step=99999999999999999999,kill", "names no step"},
        {"rank=1,step=2", "does nothing there"},
        {"rank=1,step=2,", "does nothing there"},
        {"rank=1,step=2,KILL", "does what is not known"},
        {"rank=1,step=2,kill,", "does what is not known"},
        {"rank=1,step=2,kill=9", "does what is not known"},
        {"rank=1,step=2,stop", "does what is not known"},
        {"rank=1,step=2,partition", "does what is not known"},
        {"rank=1,step=2,partition=", "does not say how long"},
        {"rank=1,step=2,partition=0s", "too short or too long"},
        {"rank=1,step=2,stop=", "does not say how long"},
        {"rank=1,step=2,stop=5", "does not say how long"},
        {"rank=1,step=2,stop=5ms", "does not say how long"},
        {"rank=1,step=2,stop=-5s", "does not say how long"},
        {"rank=1,step=2,stop=nans", "does not say how long"},
        {"rank=1,step=2,stop=0s", "too short or too long"},
        {"rank=1,step=2,stop=3601s", "too short or too long"},
        {"rank=1,step=2,stop=0.00000000000000000000000000000001s", "more digits"},
        {"rank=1,step=2,kill;", "must begin with"},
        {"rank=1,step=2,kill;;rank=2,step=2,kill", "must begin with"},
        {"rank=1,step=2,kill; rank=2,step=2,kill", "must begin with"},
        {"rank=1,step=2,kill;rank=1,step=2,stop=1s", "another fault is already"},
        {"none;rank=1,step=2,kill", "must begin with"},
    };
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct faults faults = {.count = 7};
        char why[256] = "";
        if (faults_parse(texts[i][0], &faults, why, sizeof(why)) != STATUS_INVALID ||
            strstr(why, texts[i][1]) == NULL) {
            fail_msg("'%s': %s", texts[i][0], why);
        }
        assert_int_equal(faults.count, 7);
    }
}

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

static void sixteen_faults_are_taken_and_one_more_is_not(void **state)
{
    (void)state;
    char text[1024] = "", why[256] = "";
    struct faults faults;
    for (unsigned i = 0; i <= FAULTS_MAX; i++) {
        if (i > 0) {
            assert_int_equal(faults_parse(text, &faults, why, sizeof(why)), STATUS_OK);
        }
        size_t used = strlen(text);
        snprintf(text + used, sizeof(text) - used, "%srank=%u,step=2,kill", i > 0 ? ";" : "", i);
    }
    assert_int_equal(faults_parse(text, &faults, why, sizeof(why)), STATUS_INVALID);
    assert_non_null(strstr(why, "at most 16"));
}

/* The step of the fault that strikes behind one; 0: none does. */
static uint64_t next(const struct faults *faults, enum fault_place place, uint32_t number,
                     uint64_t step)
{
    const struct fault_seat seat = {place, number};
    const struct fault *fault = faults_next(faults, &seat, step);
    return fault != NULL ? fault->step : 0;
}

static void a_fault_strikes_its_own_rank_or_shard_and_steps_that_are_still_to_come(void **state)
{
    (void)state;
    const struct faults faults =
        parse("rank=1,step=9,stop=1s;rank=1,step=4,stop=1s;shard=1,step=5,stop=1s");
    assert_int_equal(next(&faults, FAULT_AT_RANK, 1, 0), 4);
    assert_int_equal(next(&faults, FAULT_AT_RANK, 1, 3), 4);
    assert_int_equal(next(&faults, FAULT_AT_RANK, 1, 4), 9);
    assert_int_equal(next(&faults, FAULT_AT_RANK, 1, 9), 0);
    assert_int_equal(next(&faults, FAULT_AT_RANK, 0, 0), 0);
    assert_int_equal(next(&faults, FAULT_AT_SHARD, 1, 0), 5);
    assert_int_equal(next(&faults, FAULT_AT_SHARD, 0, 0), 0);
}

static void nothing_strikes_behind_a_kill_that_is_yet_to_come(void **state)
{
    (void)state;
    const struct faults faults = parse("rank=2,step=100,kill;rank=1,step=50,kill;"
                                       "shard=0,step=50,kill;rank=0,step=45,stop=1s");
    assert_ptr_equal(faults_next_kill(&faults), &faults.list[1]);
    assert_int_equal(next(&faults, FAULT_AT_RANK, 0, 40), 45);
    assert_int_equal(next(&faults, FAULT_AT_RANK, 1, 40), 50);
    assert_int_equal(next(&faults, FAULT_AT_SHARD, 0, 40), 0);
    assert_int_equal(next(&faults, FAULT_AT_RANK, 2, 40), 0);
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
        cmocka_unit_test(what_is_read_is_written_as_it_was),
        cmocka_unit_test(what_is_no_fault_is_refused_and_says_why),
        cmocka_unit_test(what_has_struck_a_lost_process_does_not_strike_who_carries_its_ranks),
        cmocka_unit_test(sixteen_faults_are_taken_and_one_more_is_not),
        cmocka_unit_test(a_fault_strikes_its_own_rank_or_shard_and_steps_that_are_still_to_come),
        cmocka_unit_test(nothing_strikes_behind_a_kill_that_is_yet_to_come),
        cmocka_unit_test(a_kill_that_has_struck_is_off_the_list_with_what_came_before_it),
        cmocka_unit_test(a_resumed_job_has_the_faults_of_its_checkpoint_behind_it),
        cmocka_unit_test(shards_that_a_job_has_lost_have_no_faults),
        cmocka_unit_test(a_job_without_the_rank_the_shard_or_the_step_is_refused),
        cmocka_unit_test(with_the_data_a_step_behind_the_end_is_refused),
        cmocka_unit_test(a_shard_is_struck_only_in_phases_in_which_it_has_updates),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
