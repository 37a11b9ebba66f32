/* Tests of options that would do nothing. */
#include "common/job/job_effects.h"
#include "common/job/job_options.h"
#include "common/job/job_resolve.h"
#include "tests/support/common/sample_job.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <stdlib.h>
#include <string.h>

static void check(const char *name, struct job job, bool acts)
{
    char why[OPTION_ERROR_BYTES] = "";
    job = sample_job_resolved(job);
    const struct job_list jobs = {&job, 1, sizeof(job)};
    enum status status = job_check_effect(name, &jobs, why, sizeof(why));
    if ((status == STATUS_OK) != acts) {
        fail_msg("--%s with %s, %s, %s: %s", name, mode_text(job.mode).text,
                 names_optimizers[job.optimizer].name, remedy_choices[job.remedy].name, why);
    }
    assert_true(acts || strstr(why, name) != NULL);
}

static void an_option_acts_only_beside_what_it_is_for(void **state)
{
    (void)state;
    check("remedy-lambda", SAMPLE_JOB("mode=ps-async"), false);
    check("remedy-lambda", SAMPLE_JOB("mode=ps-async", "remedy=staleness-lr"), false);
    check("remedy-lambda", SAMPLE_JOB("mode=ps-async", "remedy=dc"), true);
    check("momentum", SAMPLE_JOB("optimizer=sgd"), false);
    check("momentum", SAMPLE_JOB("optimizer=nesterov"), true);
    check("beta2", SAMPLE_JOB("optimizer=momentum"), false);
    check("beta2", SAMPLE_JOB("optimizer=adamw"), true);
    check("decay", SAMPLE_JOB("optimizer=adam"), false);
    check("decay", SAMPLE_JOB("optimizer=rmsprop"), true);
    check("epsilon", SAMPLE_JOB("optimizer=sgd"), false);
    check("lr-workers", SAMPLE_JOB("workers=2"), false);
    check("lr-workers", SAMPLE_JOB("lr-scale=linear"), true);
    check("lr-gamma", SAMPLE_JOB("lr-schedule=cosine"), false);
    check("lr-step-epochs", SAMPLE_JOB("lr-schedule=step"), true);
    check("servers", SAMPLE_JOB("mode=ring"), false);
    check("servers", SAMPLE_JOB("mode=ring", "steps=9", "switch=step:3=ps-sync"), true);
    check("all-reduce", SAMPLE_JOB("mode=ps-sync"), false);
    check("all-reduce", SAMPLE_JOB("mode=ring", "workers=1"), false);
    check("all-reduce", SAMPLE_JOB("mode=ring", "workers=2"), true);
    check("transport", SAMPLE_JOB("mode=local"), false);
    check("transport", SAMPLE_JOB("mode=ps-sync", "workers=1"), true);
    check("connections", SAMPLE_JOB("mode=ring", "workers=2", "transport=shm"), false);
    check("sync-every", SAMPLE_JOB("mode=local"), false);
    check("compress", SAMPLE_JOB("mode=local"), false);
    check("bad-images", SAMPLE_JOB("data=shapes"), false);
    check("bad-images", SAMPLE_JOB("data=images:/data"), true);
    check("eval-size", SAMPLE_JOB("model=resnet20"), true);
    check("eval-size", SAMPLE_JOB("model=resnet20", "eval=none"), false);
    check("fault", SAMPLE_JOB("mode=local", "fault=rank=1,step=2,kill"), false);
    check("fault", SAMPLE_JOB("mode=local", "fault=rank=0,step=2,kill"), true);
    check("fault", SAMPLE_JOB("mode=local", "fault=shard=0,step=2,kill"), false);
    check("fault", SAMPLE_JOB("mode=ring", "fault=rank=1,step=2,kill"), true);
    check("fault", SAMPLE_JOB("mode=ring", "fault=rank=1,step=2,kill;shard=0,step=2,kill"), false);
    check("fault", SAMPLE_JOB("mode=ps-sync", "fault=rank=1,step=2,kill;shard=0,step=2,kill"),
          true);
    check("fault", SAMPLE_JOB("mode=ps-sync"), false);
    check("conv", SAMPLE_JOB("device=ref"), false);
    check("cuda-engines", SAMPLE_JOB("device=cpu"), false);
    check("cuda-engines", SAMPLE_JOB("device=auto"), true);
    check("cuda-graphs", SAMPLE_JOB("device=cpu"), false);
    check("cuda-graphs", SAMPLE_JOB("device=auto"), true);
    check("server-device", SAMPLE_JOB("mode=ring"), false);
    check("server-device", SAMPLE_JOB("mode=ps-sync"), true);
    check("cuda-peers", SAMPLE_JOB("device=cpu"), false);
    check("cuda-peers", SAMPLE_JOB("device=cuda"), true);
    check("cuda-sync-check", SAMPLE_JOB("device=cpu"), false);
    check("cuda-sync-check", SAMPLE_JOB("device=cuda"), true);
    check("seed", SAMPLE_JOB("mode=local"), true); // has no rule
}

static void what_is_ours_does_nothing_for_a_program_of_its_own(void **state)
{
    (void)state;
    static const char *const ours[] = {"data", "augment",      "normalize",
                                       "eval", "limit-train",  "device",
                                       "conv", "cuda-engines", "precision"};
    static const char *const all[] = {"lr", "seed", "bucket-mb", "threads", "batch", "transport"};
    for (size_t i = 0; i < sizeof(ours) / sizeof(ours[0]); i++) {
        check(ours[i], SAMPLE_JOB("model=external:mine", "mode=ring"), false);
    }
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        check(all[i], SAMPLE_JOB("model=external:mine", "mode=ring"), true);
    }
    check("data", SAMPLE_JOB("mode=ring"), true);
    check("momentum", SAMPLE_JOB("model=external:mine", "optimizer=sgd"), false);
    static const char *const of_optimizers[] = {"momentum", "beta1",        "decay",
                                                "epsilon",  "weight-decay", "lr-scale"};
    for (size_t i = 0; i < sizeof(of_optimizers) / sizeof(of_optimizers[0]); i++) {
        check(of_optimizers[i], SAMPLE_JOB("model=external:mine"), false);
    }
    check("weight-decay", SAMPLE_JOB("model=external:mine", "optimizer=sgd"), true);
    check("weight-decay", SAMPLE_JOB("mode=ring"), true);
}

static void of_several_jobs_one_is_enough(void **state)
{
    (void)state;
    struct job list[] = {sample_job_resolved(SAMPLE_JOB("mode=local")),
                         sample_job_resolved(SAMPLE_JOB("mode=ring"))};
    struct job_list jobs = {list, 2, sizeof(list[0])};
    char why[OPTION_ERROR_BYTES];
    assert_int_equal(job_check_effect("all-reduce", &jobs, why, sizeof(why)), STATUS_OK);
    jobs.count = 1;
    assert_int_equal(job_check_effect("all-reduce", &jobs, why, sizeof(why)), STATUS_INVALID);
}

static void only_what_was_given_has_to_act(void **state)
{
    (void)state;
    static struct job job;
    char why[OPTION_ERROR_BYTES] = "";
    bool is_done;
    struct option_program program = {
        .name = "test", .sets = {job_option_set(&job)}, .set_count = 1};
    static char words[][16] = {"test",       "--mode", "local",      "--optimizer", "sgd",
                               "--compress", "none",   "--momentum", "0.9"};
    char *arguments[10] = {0};
    for (size_t i = 0; i < 9; i++) {
        arguments[i] = words[i];
    }
    assert_int_equal(options_parse(&program, 9, arguments, &is_done), STATUS_OK);
    struct job asked = job;
    const struct job_list jobs = {&job, 1, sizeof(job)};
    assert_int_equal(job_resolve(&job, why, sizeof(why)), STATUS_OK);
    assert_int_equal(job_check_effects(&program, &asked, &jobs, why, sizeof(why)), STATUS_INVALID);
    assert_non_null(strstr(why, "--momentum")); // its default, too, if it was asked for
    assert_non_null(strstr(why, "--optimizer momentum or nesterov"));
    asked.settings.momentum = 0; // asks for nothing
    assert_int_equal(job_check_effects(&program, &asked, &jobs, why, sizeof(why)), STATUS_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_option_acts_only_beside_what_it_is_for),
        cmocka_unit_test(what_is_ours_does_nothing_for_a_program_of_its_own),
        cmocka_unit_test(of_several_jobs_one_is_enough),
        cmocka_unit_test(only_what_was_given_has_to_act),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
