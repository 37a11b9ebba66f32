/* Tests of the job: its defaults, what follows from what, what contradicts, and its way over the
 * wire. */
#include "common/job/job.h"
#include "common/job/job_options.h"
#include "common/job/job_text.h"
#include "common/job/job_values.h"
#include "common/options/names.h"
#include "tests/support/common/sample_job.h"

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

static void refuse_value(const char *name, const char *value, const char *text)
{
    struct job job;
    char error[OPTION_ERROR_BYTES] = "";
    struct option_set set = job_option_set(&job);
    memset(&job, 0, sizeof(job));
    assert_int_equal(options_set_text(&set, 1, name, value, error, sizeof(error)), STATUS_INVALID);
    if (strstr(error, text) == NULL) {
        fail_msg("\"%s\" is not in: %s", text, error);
    }
}

static void check_real(double value, double wanted)
{
    if (!(value >= wanted && value <= wanted)) {
        fail_msg("%.17g, wanted %.17g", value, wanted);
    }
}

static void the_default_job_trains_one_epoch_with_32_images_per_worker(void **state)
{
    (void)state;
    struct job job = sample_job_resolved(SAMPLE_JOB(NULL));
    assert_int_equal(job.mode.kind, MODE_PS_SYNC);
    assert_int_equal(job.workers, 2);
    assert_int_equal(job.servers, 1);
    assert_string_equal(job.model, "cnn");
    assert_string_equal(job.data, "shapes");
    assert_int_equal(job.batch, 32);
    assert_int_equal(job.global_batch, 64);
    assert_int_equal(job.epochs, 1);
    assert_int_equal(job.steps, 0);
    assert_int_equal(job.optimizer, OPTIMIZER_MOMENTUM);
    check_real(job.settings.momentum, 0.9);
    check_real(job.lr, 0.01);
}

static void each_batch_follows_from_the_other(void **state)
{
    (void)state;
    struct job job = sample_job_resolved(SAMPLE_JOB("workers=4", "batch=8"));
    assert_int_equal(job.global_batch, 32);
    job = sample_job_resolved(SAMPLE_JOB("workers=4", "global-batch=32"));
    assert_int_equal(job.batch, 8);
    job = sample_job_resolved(SAMPLE_JOB("workers=4", "global-batch=32", "batch=8"));
    assert_int_equal(job.batch, 8);
}

static void a_batch_that_workers_cannot_share_evenly_is_cut_like_a_span(void **state)
{
    (void)state;
    struct job job = sample_job_resolved(SAMPLE_JOB("workers=3", "global-batch=32"));
    assert_int_equal(job.batch, 11); // the largest share
    assert_int_equal(job_batch_of(&job, 0), 11);
    assert_int_equal(job_batch_of(&job, 1), 11);
    assert_int_equal(job_batch_of(&job, 2), 10);
}

static void shares_of_the_batch_add_up_for_any_number_of_workers(void **state)
{
    (void)state;
    for (uint32_t workers = 1; workers <= 64; workers++) {
        struct job job = SAMPLE_JOB("global-batch=64");
        job.workers = workers;
        job = sample_job_resolved(job);
        uint32_t sum = 0;
        for (uint32_t rank = 0; rank < workers; rank++) {
            uint32_t share = job_batch_of(&job, rank);
            assert_in_range(share, 64 / workers, job.batch);
            sum += share;
        }
        assert_int_equal(sum, 64);
    }
}

static void batches_that_disagree_are_refused(void **state)
{
    (void)state;
    sample_job_refuse(SAMPLE_JOB("workers=4", "batch=8", "global-batch=64"),
                      "contradict each other");
    sample_job_refuse(SAMPLE_JOB("workers=4", "batch=17", "global-batch=64"), "--global-batch 64");
}

static void a_batch_that_leaves_a_worker_without_work_is_refused(void **state)
{
    (void)state;
    sample_job_refuse(SAMPLE_JOB("workers=4", "global-batch=3"),
                      "make it larger, or use fewer --workers");
}

static void a_batch_that_no_row_takes_is_refused(void **state)
{
    (void)state;
    sample_job_refuse(SAMPLE_JOB("workers=4096", "batch=1000000"),
                      "--batch 1000000 times 4096 workers");
    // The same for the one worker that replaces them: it must pass its own row on the wire.
    sample_job_refuse(SAMPLE_JOB("mode=local", "workers=4096", "batch=1000000"),
                      "times 4096 workers");
}

static void epochs_together_with_steps_are_refused(void **state)
{
    (void)state;
    sample_job_refuse(SAMPLE_JOB("epochs=2", "steps=100"), "--epochs 2 and --steps 100 contradict");
    assert_int_equal(sample_job_resolved(SAMPLE_JOB("steps=100")).epochs, 0);
}

static void a_warning_that_would_come_too_late_is_refused(void **state)
{
    (void)state;
    sample_job_refuse(SAMPLE_JOB("stall-warn=10", "stall-fail=5"), "--stall-warn 10 is longer");
}

static void parameter_servers_need_a_server_and_other_modes_none(void **state)
{
    (void)state;
    sample_job_refuse(SAMPLE_JOB("servers=0"), "needs at least one of --servers");
    assert_int_equal(sample_job_resolved(SAMPLE_JOB("mode=ring", "servers=3")).servers, 0);
    assert_int_equal(sample_job_resolved(SAMPLE_JOB("mode=local", "servers=3")).servers, 0);
    assert_int_equal(sample_job_resolved(SAMPLE_JOB("servers=3")).servers, 3);
}

static void local_is_one_worker_with_the_whole_batch(void **state)
{
    (void)state;
    struct job job = sample_job_resolved(SAMPLE_JOB("mode=local", "workers=4", "global-batch=128"));
    assert_int_equal(job.workers, 1);
    assert_int_equal(job.batch, 128);
    assert_int_equal(job.global_batch, 128);
    job = sample_job_resolved(SAMPLE_JOB("mode=local", "workers=4", "batch=8"));
    assert_int_equal(job.workers, 1);
    assert_int_equal(job.global_batch, 32);
}

static void linear_scaling_is_the_same_in_local_and_in_what_it_is_compared_with(void **state)
{
    (void)state;
    struct job ring =
        sample_job_resolved(SAMPLE_JOB("mode=ring", "workers=4", "lr=0.1", "lr-scale=linear",
                                       "warmup-epochs=2", "global-batch=64"));
    struct job local =
        sample_job_resolved(SAMPLE_JOB("mode=local", "workers=4", "lr=0.1", "lr-scale=linear",
                                       "warmup-epochs=2", "global-batch=64"));
    struct schedule first = job_schedule(&ring, 640);
    struct schedule second = job_schedule(&local, 640);
    check_real(first.base_rate, 0.4);
    check_real(first.start_rate, 0.1);
    assert_int_equal(first.warmup_steps, 20);
    check_real(second.base_rate, first.base_rate);
    check_real(second.start_rate, first.start_rate);
    assert_int_equal(second.warmup_steps, first.warmup_steps);
}

static void resolving_again_changes_nothing(void **state)
{
    (void)state;
    static const char *const modes[] = {"mode=local", "mode=ring", "mode=ps-sync"};
    for (size_t mode = 0; mode < 3; mode++) {
        for (uint32_t workers = 1; workers < 20; workers++) {
            struct job job =
                SAMPLE_JOB(modes[mode], "global-batch=77", "lr-scale=linear", "optimizer=rmsprop");
            job.workers = workers;
            struct job once = sample_job_resolved(job), twice = sample_job_resolved(once);
            assert_memory_equal(&once, &twice, sizeof(once));
        }
    }
}

static void the_optimizer_fills_in_what_was_not_given(void **state)
{
    (void)state;
    struct job job = sample_job_resolved(SAMPLE_JOB("optimizer=adadelta"));
    check_real(job.lr, 1);
    check_real(job.settings.epsilon, 1e-6);
    check_real(job.settings.decay, 0.9);
    job = sample_job_resolved(SAMPLE_JOB("optimizer=rmsprop"));
    check_real(job.settings.decay, 0.99);
    check_real(job.settings.epsilon, 1e-8);
    job = sample_job_resolved(SAMPLE_JOB("optimizer=adam", "lr=0.5", "epsilon=1e-4"));
    check_real(job.lr, 0.5);
    check_real(job.settings.epsilon, 1e-4);
}

static void every_optimizer_can_be_made_from_a_resolved_job(void **state)
{
    (void)state;
    static const char *const extremes[] = {"momentum=0.999999", "beta1=0.999999", "beta2=0.9999999",
                                           "decay=0.9999999",   "epsilon=1e-45",  "weight-decay=1"};
    for (size_t i = 0; i < OPTIMIZER_KIND_COUNT; i++) {
        for (size_t extreme = 0; extreme < sizeof(extremes) / sizeof(extremes[0]); extreme++) {
            char setting[64];
            snprintf(setting, sizeof(setting), "optimizer=%s", names_optimizers[i].name);
            struct job job = sample_job_resolved(SAMPLE_JOB(setting, extremes[extreme]));
            struct optimizer *optimizer;
            assert_int_equal(optimizer_create(job.optimizer, &job.settings, 10, &optimizer),
                             STATUS_OK);
            optimizer_destroy(optimizer);
        }
    }
}

static void an_epsilon_that_vanishes_in_single_precision_is_refused(void **state)
{
    (void)state;
    sample_job_refuse(SAMPLE_JOB("optimizer=adam", "epsilon=1e-60"), "make it larger");
}

static void unknown_names_are_refused_with_the_nearest(void **state)
{
    (void)state;
    refuse_value("mode", "rnig", "did you mean ring?");
    refuse_value("mode", "ps-asyn", "(one of local, ring, ps-sync, ps-ssp:S, ps-async)");
    refuse_value("mode", "ps-ssp", "did you mean ps-ssp:S?");
    refuse_value("mode", "ps-ssp:", "the bound of ps-ssp is a whole number");
    refuse_value("mode", "ps-ssp:-1", "the bound of ps-ssp is a whole number");
    refuse_value("mode", "ps-ssp:9999999", "the bound of ps-ssp is a whole number");
    refuse_value("order", "seeded:uniform:4..1", "upside down: uniform:1..4");
    refuse_value("order", "sometimes", "seeded:constant:4");
    refuse_value("model", "lenet", "did you mean lenet5?");
    refuse_value("optimizer", "adma", "did you mean adam?");
    refuse_value("data", "cifar:/data", "there is no dataset 'cifar'; did you mean cifar10?");
    refuse_value("data", "", "there is no dataset ''");
}

/* So a developer who exports it for the tests can train, too. */
static void the_variable_of_data_may_be_the_folder_in_which_datasets_lie(void **state)
{
    (void)state;
    static struct job job;
    static char words[][16] = {"test", "--data", "cifar10"};
    char *arguments[] = {words[0], words[1], words[2], NULL};
    const struct {
        const char *variable;
        int count; // of arguments
        const char *expected;
    } cases[] = {
        {"/images", 1, "shapes"},
        {"/images", 3, "cifar10:/images/cifar10"},
        {"./images", 3, "cifar10:./images/cifar10"},
        {"fashion-mnist:/x", 1, "fashion-mnist:/x"},
        {"synthetic", 1, "synthetic"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct option_program program = {
            .name = "test", .sets = {job_option_set(&job)}, .set_count = 1};
        bool is_done;
        assert_int_equal(setenv("RINGSIDE_DATA", cases[i].variable, 1), 0);
        assert_int_equal(options_parse(&program, cases[i].count, arguments, &is_done), STATUS_OK);
        assert_string_equal(job.data, cases[i].expected);
        assert_int_equal(options_was_given(&program, "data"), i != 0);
    }
    char text[OPTION_VALUE_BYTES], folder[OPTION_VALUE_BYTES];
    memset(folder, '/', sizeof(folder) - 1);
    folder[sizeof(folder) - 1] = '\0';
    assert_int_equal(setenv("RINGSIDE_DATA", folder, 1), 0); // there is no room for more
    refuse_value("data", "cifar10", "cifar10 needs the folder of its files");
    assert_int_equal(setenv("RINGSIDE_DATA", "/images", 1), 0);
    job_data_complete("synthetic:cifar10", text);
    assert_string_equal(text, "synthetic:cifar10:/images/cifar10");
    const char *const whole[] = {"shapes", "synthetic", "pack", "cifar10:/x", "/images", ""};
    for (size_t i = 0; i < sizeof(whole) / sizeof(whole[0]); i++) {
        job_data_complete(whole[i], text);
        assert_string_equal(text, whole[i]);
    }
    unsetenv("RINGSIDE_DATA");
    refuse_value("data", "cifar10", "or RINGSIDE_DATA=FOLDER, with FOLDER/cifar10");
}

static void a_path_is_given_where_a_dataset_takes_one(void **state)
{
    (void)state;
    refuse_value("data", "cifar10", "cifar10:DIR");
    refuse_value("data", "cifar10:", "cifar10:DIR");
    refuse_value("data", "pack", "pack needs its file: pack:FILE");
    refuse_value("data", "shapes:/data", "shapes takes no path");
    refuse_value("data", "shapes:", "shapes takes no path");
    refuse_value("data", "synthetic:", "another dataset follows, or nothing does");
    refuse_value("data", "synthetic:synthetic", "another dataset follows, or nothing does");
    refuse_value("data", "synthetic:cifar:/data", "did you mean cifar10?");
    assert_string_equal(SAMPLE_JOB("data=cifar10:/a:b=c").data, "cifar10:/a:b=c");
}

static void devices_have_a_form(void **state)
{
    (void)state;
    static const char *const refused[] = {"",        "gpu",     "cuda:", "cuda:x",
                                          "cuda:1x", "cuda:-1", "cpu:0", "cuda:99999"};
    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
        refuse_value("device", refused[i], "auto, ref, cpu, cuda or cuda:INDEX");
    }
    assert_string_equal(SAMPLE_JOB("device=cuda:3").device, "cuda:3");
}

static void data_is_split_at_its_first_colon(void **state)
{
    (void)state;
    char name[JOB_NAME_BYTES];
    const char *path;
    job_split_data("cifar10:/a:b", name, &path);
    assert_string_equal(name, "cifar10");
    assert_string_equal(path, "/a:b");
    job_split_data("shapes", name, &path);
    assert_string_equal(name, "shapes");
    assert_string_equal(path, "");
    job_split_data("a-name-that-is-longer-than-any-name-there-is:/x", name, &path);
    assert_int_equal(strlen(name), JOB_NAME_BYTES - 1);
    assert_string_equal(path, "/x");
}

static void steps_of_an_epoch_leave_the_last_short_batch_out(void **state)
{
    (void)state;
    struct job job = sample_job_resolved(SAMPLE_JOB("global-batch=64", "epochs=3"));
    assert_int_equal(job_steps_per_epoch(&job, 640), 10);
    assert_int_equal(job_steps_per_epoch(&job, 639), 9);
    assert_int_equal(job_steps_per_epoch(&job, 63), 0);
    assert_int_equal(job_total_steps(&job, 640), 30);
    job = sample_job_resolved(SAMPLE_JOB("global-batch=64", "steps=7"));
    assert_int_equal(job_total_steps(&job, 640), 7);
}

static void counts_that_a_peer_made_up_do_not_overflow(void **state)
{
    (void)state;
    struct job job =
        sample_job_resolved(SAMPLE_JOB("global-batch=2", "epochs=1000000", "warmup-epochs=1000000",
                                       "lr-schedule=cosine", "lr-scale=linear"));
    assert_true(job_total_steps(&job, UINT64_MAX) == UINT64_MAX);
    struct schedule schedule = job_schedule(&job, UINT64_MAX);
    assert_true(isfinite(schedule_rate(&schedule, UINT64_MAX)));
}

static void the_schedule_is_in_steps(void **state)
{
    (void)state;
    struct job job =
        sample_job_resolved(SAMPLE_JOB("global-batch=10", "epochs=4", "lr=0.2", "lr-schedule=step",
                                       "lr-step-epochs=0.29", "lr-gamma=0.5"));
    struct schedule schedule = job_schedule(&job, 1000);
    assert_int_equal(schedule.kind, SCHEDULE_STEP);
    assert_int_equal(schedule.period_steps, 29); // 0.29 * 100 is a little less in doubles
    assert_int_equal(schedule.total_steps, 400);
    assert_int_equal(schedule.warmup_steps, 0);
    check_real(schedule_rate(&schedule, 0), 0.2);
    check_real(schedule_rate(&schedule, 29), 0.1);
    job = sample_job_resolved(SAMPLE_JOB("global-batch=10", "lr-schedule=cosine"));
    assert_int_equal(job_schedule(&job, 1000).kind, SCHEDULE_COSINE);
    job = sample_job_resolved(SAMPLE_JOB("global-batch=10"));
    assert_int_equal(job_schedule(&job, 1000).kind, SCHEDULE_CONSTANT);
}

static void a_period_shorter_than_a_step_is_a_step(void **state)
{
    (void)state;
    struct job job = sample_job_resolved(
        SAMPLE_JOB("global-batch=10", "lr-schedule=step", "lr-step-epochs=0.001"));
    assert_int_equal(job_schedule(&job, 100).period_steps, 1);
}

static void warm_up_without_scaling_begins_above_zero_and_is_linear(void **state)
{
    (void)state;
    struct job job =
        sample_job_resolved(SAMPLE_JOB("global-batch=10", "lr=0.5", "warmup-epochs=0.4"));
    struct schedule schedule = job_schedule(&job, 100);
    for (uint64_t step = 0; step <= 4; step++) {
        assert_true(fabs(schedule_rate(&schedule, step) - 0.1 * (double)(step + 1)) < 1e-15);
    }
    check_real(schedule_rate(&schedule, 5), 0.5);
}

static void a_resolved_job_comes_back_from_its_text(void **state)
{
    (void)state;
    struct job job = sample_job_resolved(
        SAMPLE_JOB("mode=ring", "workers=7", "data=mnist:/data/a=b c", "lr=0.1234567890123456789",
                   "seed=9007199254740992", "bucket-mb=0.001", "device=cuda:1"));
    struct job back;
    char text[JOB_TEXT_BYTES], error[OPTION_ERROR_BYTES];
    assert_int_equal(job_encode(&job, text, sizeof(text)), STATUS_OK);
    assert_int_equal(job_decode(text, &back, error, sizeof(error)), STATUS_OK);
    assert_memory_equal(&job, &back, sizeof(job));
    job = sample_job_resolved(SAMPLE_JOB("bucket-mb=auto"));
    assert_int_equal(job_encode(&job, text, sizeof(text)), STATUS_OK);
    assert_non_null(strstr(text, "\nbucket-mb=auto\n"));
    assert_int_equal(job_decode(text, &back, error, sizeof(error)), STATUS_OK);
    assert_memory_equal(&job, &back, sizeof(job));
}

static void a_job_that_does_not_fit_is_not_encoded(void **state)
{
    (void)state;
    struct job job = sample_job_resolved(SAMPLE_JOB(NULL));
    char text[JOB_TEXT_BYTES];
    assert_int_equal(job_encode(&job, text, sizeof(text)), STATUS_OK);
    assert_int_equal(job_encode(&job, text, strlen(text)), STATUS_INVALID);
}

static void text_that_is_no_job_is_refused(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"workers=2\nnonsense\n", "the line 'nonsense' is not name=value"},
        {"wrokers=2\n", "did you mean workers?"},
        {"workers=0\n", "from 1 to 4096"},
        {"=\n", "unknown option ''"},
        {"\n", "is not name=value"},
        {"batch=8\nglobal-batch=999\n", "contradict each other"},
        {"data=cifar10\n", "cifar10:DIR"},
        {"bucket-mb=0\n", "must be auto, or a number from 0.001 to 65536"},
        {"bucket-mb=automatic\n", "must be auto, or a number from 0.001 to 65536"},
        {"loader-threads=0\n",
         "loader-threads is '0', but must be auto, or a whole number from 1 to 256"},
        {"loader-threads=-1\n", "must be auto, or a whole number from 1 to 256"},
        {"loader-threads=many\n",
         "loader-threads is 'many', but must be auto, or a whole number from 1 to 256"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct job job;
        char error[OPTION_ERROR_BYTES] = "";
        assert_int_equal(job_decode(cases[i][0], &job, error, sizeof(error)), STATUS_INVALID);
        if (strstr(error, cases[i][1]) == NULL) {
            fail_msg("\"%s\" is not in: %s", cases[i][1], error);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_default_job_trains_one_epoch_with_32_images_per_worker),
        cmocka_unit_test(each_batch_follows_from_the_other),
        cmocka_unit_test(a_batch_that_workers_cannot_share_evenly_is_cut_like_a_span),
        cmocka_unit_test(shares_of_the_batch_add_up_for_any_number_of_workers),
        cmocka_unit_test(batches_that_disagree_are_refused),
        cmocka_unit_test(a_batch_that_leaves_a_worker_without_work_is_refused),
        cmocka_unit_test(a_batch_that_no_row_takes_is_refused),
        cmocka_unit_test(epochs_together_with_steps_are_refused),
        cmocka_unit_test(a_warning_that_would_come_too_late_is_refused),
        cmocka_unit_test(parameter_servers_need_a_server_and_other_modes_none),
        cmocka_unit_test(local_is_one_worker_with_the_whole_batch),
        cmocka_unit_test(linear_scaling_is_the_same_in_local_and_in_what_it_is_compared_with),
        cmocka_unit_test(resolving_again_changes_nothing),
        cmocka_unit_test(the_optimizer_fills_in_what_was_not_given),
        cmocka_unit_test(every_optimizer_can_be_made_from_a_resolved_job),
        cmocka_unit_test(an_epsilon_that_vanishes_in_single_precision_is_refused),
        cmocka_unit_test(unknown_names_are_refused_with_the_nearest),
        cmocka_unit_test(the_variable_of_data_may_be_the_folder_in_which_datasets_lie),
        cmocka_unit_test(a_path_is_given_where_a_dataset_takes_one),
        cmocka_unit_test(devices_have_a_form),
        cmocka_unit_test(data_is_split_at_its_first_colon),
        cmocka_unit_test(steps_of_an_epoch_leave_the_last_short_batch_out),
        cmocka_unit_test(counts_that_a_peer_made_up_do_not_overflow),
        cmocka_unit_test(the_schedule_is_in_steps),
        cmocka_unit_test(a_period_shorter_than_a_step_is_a_step),
        cmocka_unit_test(warm_up_without_scaling_begins_above_zero_and_is_linear),
        cmocka_unit_test(a_resolved_job_comes_back_from_its_text),
        cmocka_unit_test(a_job_that_does_not_fit_is_not_encoded),
        cmocka_unit_test(text_that_is_no_job_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
