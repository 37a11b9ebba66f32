/* Tests of the optimizer that a program of its own tells its job. */
#include "common/job/job_options.h"
#include "common/job/job_text.h"
#include "tests/support/common/sample_job.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <stdio.h>
#include <string.h>

#define OWN "model=external:mine"

static void the_default_optimizer_is_the_programs_where_it_has_one(void **state)
{
    (void)state;
    const struct job ours = sample_job_resolved(SAMPLE_JOB("mode=ring"));
    assert_int_equal(ours.optimizer, OPTIMIZER_MOMENTUM);
    assert_true(ours.lr > 0);
    const struct job own = sample_job_resolved(SAMPLE_JOB(OWN));
    assert_int_equal(own.optimizer, OPTIMIZER_AUTO);
    assert_true(own.lr <= 0);
    assert_string_equal(job_optimizer_text(&own), "the program's");
    const struct job named = sample_job_resolved(SAMPLE_JOB(OWN, "optimizer=adam"));
    assert_string_equal(job_optimizer_text(&named), "adam");
}

/* To the last bit, whatever the numbers are. */
static void a_job_takes_what_another_process_has_written(void **state)
{
    (void)state;
    char text[JOB_OPTIMIZER_TEXT_BYTES], error[OPTION_ERROR_BYTES] = "";
    for (unsigned i = 0; i < OPTIMIZER_KIND_COUNT; i++) {
        struct job job = sample_job_resolved(SAMPLE_JOB(OWN, "mode=ps-sync")), told = job;
        told.optimizer = (enum optimizer_kind)i;
        told.lr = 0.1 / 3;
        told.settings = (struct optimizer_settings){.momentum = 0.7 / 3,
                                                    .beta1 = 0.8 / 7,
                                                    .beta2 = 0.99 / 3,
                                                    .decay = 0.9 / 11,
                                                    .epsilon = 1e-8 / 3,
                                                    .weight_decay = 1e-4 / 7};
        job_encode_optimizer(&told, text);
        assert_int_equal(job_take_optimizer(&job, text, error, sizeof(error)), STATUS_OK);
        assert_memory_equal(&job, &told, sizeof(job));
        assert_string_equal(job_optimizer_text(&job), names_optimizers[i].name);
    }
}

static void updates_of_its_own_make_the_optimizer_the_programs(void **state)
{
    (void)state;
    char error[OPTION_ERROR_BYTES] = "";
    struct job job = sample_job_resolved(SAMPLE_JOB(OWN, "mode=ring", "optimizer=sgd"));
    assert_int_equal(job_take_optimizer(&job, "", error, sizeof(error)), STATUS_OK);
    assert_int_equal(job.optimizer, OPTIMIZER_SGD);
    assert_int_equal(job_take_optimizer(&job, JOB_OPTIMIZER_OWN, error, sizeof(error)), STATUS_OK);
    assert_string_equal(job_optimizer_text(&job), "the program's");
}

static void refuse(struct job job, const char *text, const char *sentence)
{
    char error[OPTION_ERROR_BYTES] = "";
    const struct job before = job;
    assert_int_equal(job_take_optimizer(&job, text, error, sizeof(error)), STATUS_INVALID);
    if (strstr(error, sentence) == NULL) {
        fail_msg("\"%s\" is not in \"%s\"", sentence, error);
    }
    assert_memory_equal(&job, &before, sizeof(job));
}

/* Behind an optimizer, behind updates of the program's own, and alone. */
static void a_program_may_say_how_gradients_are_compressed(void **state)
{
    (void)state;
    static const char *const before[] = {"optimizer=sgd\nlr=0.1\n", JOB_OPTIMIZER_OWN, ""};
    char text[JOB_OPTIMIZER_TEXT_BYTES], error[OPTION_ERROR_BYTES] = "";
    const struct codec codec = {.kind = CODEC_TOPK, .share_millionths = 10000};
    for (size_t i = 0; i < sizeof(before) / sizeof(before[0]); i++) {
        struct job job = sample_job_resolved(
            SAMPLE_JOB(OWN, "mode=ring", i == 2 ? "optimizer=adam" : "optimizer=auto"));
        snprintf(text, sizeof(text), "%s", before[i]);
        assert_string_equal(job_text_codec(text), "");
        job_encode_codec(&codec, text);
        assert_string_equal(job_text_codec(text), "compress=topk:0.01\n");
        assert_int_equal(job_take_optimizer(&job, text, error, sizeof(error)), STATUS_OK);
        assert_int_equal(job.compress.kind, CODEC_TOPK);
        assert_int_equal(job.compress.share_millionths, 10000);
    }
}

static void compression_that_differs_from_the_jobs_is_refused(void **state)
{
    (void)state;
    char error[OPTION_ERROR_BYTES] = "";
    struct job job = sample_job_resolved(SAMPLE_JOB(OWN, "mode=ring", "compress=fp16"));
    refuse(job, JOB_OPTIMIZER_OWN "compress=bf16\n",
           "compresses gradients by bf16, and the job has --compress fp16");
    refuse(job, JOB_OPTIMIZER_OWN "compress=zip\n", "zip");
    refuse(job, JOB_OPTIMIZER_OWN "compress=fp16\nworkers=9\n", "is no line of its own");
    assert_int_equal(
        job_take_optimizer(&job, JOB_OPTIMIZER_OWN "compress=fp16\n", error, sizeof(error)),
        STATUS_OK);
    struct job local = sample_job_resolved(SAMPLE_JOB(OWN, "mode=local"));
    assert_int_equal(
        job_take_optimizer(&local, JOB_OPTIMIZER_OWN "compress=fp16\n", error, sizeof(error)),
        STATUS_OK);
    assert_int_equal(local.compress.kind, CODEC_NONE); // nothing travels
}

static void a_rate_that_differs_by_its_rounding_is_the_jobs(void **state)
{
    (void)state;
    char error[OPTION_ERROR_BYTES] = "";
    struct job job = sample_job_resolved(SAMPLE_JOB(OWN, "mode=ps-sync", "lr=0.3"));
    const double given = job.lr;
    assert_int_equal(
        job_take_optimizer(&job, "optimizer=sgd\nlr=0.30000000000000004\n", error, sizeof(error)),
        STATUS_OK);
    assert_memory_equal(&job.lr, &given, sizeof(given));
}

/* That it takes no optimizer without a momentum is known once there is one. */
static void a_remedy_of_momentum_waits_for_the_programs_optimizer(void **state)
{
    (void)state;
    char error[OPTION_ERROR_BYTES] = "";
    struct job job = sample_job_resolved(SAMPLE_JOB(OWN, "mode=ps-async", "remedy=momentum"));
    refuse(job, "optimizer=sgd\nlr=0.1\n", "use momentum or nesterov");
    assert_int_equal(job_take_optimizer(&job, "optimizer=momentum\nlr=0.1\n", error, sizeof(error)),
                     STATUS_OK);
    assert_int_equal(job.optimizer, OPTIMIZER_MOMENTUM);
    sample_job_refuse(SAMPLE_JOB(OWN, "mode=ps-async", "remedy=momentum", "optimizer=adam"),
                      "use momentum or");
}

static void what_no_option_could_have_is_refused(void **state)
{
    (void)state;
    const struct job own = sample_job_resolved(SAMPLE_JOB(OWN, "mode=ps-sync"));
    refuse(own, "", "neither --optimizer nor its program");
    refuse(own, "optimizer=auto\n", "neither --optimizer nor its program");
    refuse(own, "lr=0.1\n", "neither --optimizer nor its program");
    refuse(own, "optimizer=lion\n", "lion");
    refuse(own, "optimizer\n", "is not name=value");
    refuse(own, "optimizer=sgd\nlr=nan\n", "nan");
    refuse(own, "optimizer=sgd\nweight-decay=2\n", "weight-decay");
    refuse(own, "optimizer=adam\nepsilon=1e-60\n", "make it larger");
    refuse(own, "optimizer=sgd\nworkers=9\n", "is no optimizer");
    refuse(own, "optimizer=sgd\n\x1b[2J=1\n", "is no optimizer");
    refuse(own, "\n", "is no optimizer");
    refuse(own, "optimizer=sgd\nlr=0.1\nlr=0.1\n", "is no optimizer");
    char text[JOB_OPTIMIZER_TEXT_BYTES + 1];
    memset(text, 'x', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    refuse(own, text, "of its optimizer is too long");
    refuse(sample_job_resolved(SAMPLE_JOB(OWN, "optimizer=adam")), "optimizer=sgd\n",
           "the job has --optimizer adam");
    refuse(sample_job_resolved(SAMPLE_JOB(OWN, "lr=0.1")), "optimizer=sgd\nlr=0.2\n",
           "the learning rate 0.2, and the job --lr 0.1");
    refuse(sample_job_resolved(SAMPLE_JOB(OWN, "lr=0.1")), "optimizer=sgd\nlr=0.10001\n",
           "the learning rate 0.10001, and the job --lr 0.1");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_default_optimizer_is_the_programs_where_it_has_one),
        cmocka_unit_test(a_job_takes_what_another_process_has_written),
        cmocka_unit_test(updates_of_its_own_make_the_optimizer_the_programs),
        cmocka_unit_test(a_program_may_say_how_gradients_are_compressed),
        cmocka_unit_test(compression_that_differs_from_the_jobs_is_refused),
        cmocka_unit_test(a_rate_that_differs_by_its_rounding_is_the_jobs),
        cmocka_unit_test(a_remedy_of_momentum_waits_for_the_programs_optimizer),
        cmocka_unit_test(what_no_option_could_have_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
