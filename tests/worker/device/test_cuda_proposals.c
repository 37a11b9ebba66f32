/* Every convolution of every model on GPUs that are only described: what both of cuDNN's heuristics
 * propose can be written down, made of that again, and planned. Needs no GPU, and no driver. */
#include "tests/worker/device/described_gpus.h"
#include "worker/device/cuda/dnn/dnn_engines.h"
#include "worker/device/cuda/dnn/dnn_key.h"
#include "worker/device/cuda/dnn/dnn_timing.h"
#include "worker/model/models.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <stdio.h>
#include <string.h>

#define SEEN_MAX        1024
#define PLAN_TEXT_BYTES (1 << 20)

static const struct {
    const char *model;
    uint32_t channels, size, batch;
} programs[] = {
    {"lenet5", 1, 28, 64},      {"cnn", 3, 32, 128},       {"resnet20", 3, 32, 128},
    {"resnet50v2", 3, 128, 32}, {"resnet152v2", 3, 64, 8}, {"vgg16", 3, 32, 16},
};

/* Questions that were asked already. */
struct seen {
    char questions[SEEN_MAX][DNN_QUESTION_BYTES + 16];
    uint32_t count;
};

static bool is_new(struct seen *seen, const char *question, uint32_t batch)
{
    char text[DNN_QUESTION_BYTES + 16];
    snprintf(text, sizeof(text), "%s, %u", question, batch);
    for (uint32_t i = 0; i < seen->count; i++) {
        if (strcmp(seen->questions[i], text) == 0) {
            return false;
        }
    }
    assert_true(seen->count < SEEN_MAX);
    memcpy(seen->questions[seen->count++], text, sizeof(text));
    return true;
}

/* The library gives the engine of a plan the same number. */
static void expect_plan_of(const struct dnn_plan *plan, const struct dnn_engine *engine)
{
    static char text[PLAN_TEXT_BYTES];
    char number[32], expected[64];
    int64_t size = 0;
    memset(text, 0, sizeof(text));
    assert_int_equal(cudnnBackendGetAttribute(plan->plan,
                                              CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION,
                                              CUDNN_TYPE_CHAR, PLAN_TEXT_BYTES - 1, &size, text),
                     CUDNN_STATUS_SUCCESS);
    snprintf(number, sizeof(number), "%.*s", (int)strcspn(engine->text, " "), engine->text);
    snprintf(expected, sizeof(expected), "\"engineId\":%s,", number);
    if (strstr(text, expected) == NULL) {
        fail_msg("the plan of engine %s is %.300s", engine->text, text);
    }
    assert_string_equal(plan->engine, number);
}

/* Returns how many of the proposals that would be timed can be planned. */
static uint32_t plan_all(const struct dnn_target *target, const struct dnn_conv *conv,
                         enum dnn_pass pass, const struct dnn_proposals *proposals)
{
    uint32_t planned = 0;
    for (uint32_t i = 0; i < proposals->count && planned < DNN_TIMED_MAX; i++) {
        struct dnn_plan plan;
        char failure[DNN_FAILURE_BYTES] = "";
        if (dnn_plan_engine(target, conv, pass, &proposals->list[i], &plan, failure)) {
            expect_plan_of(&plan, &proposals->list[i]);
            dnn_plan_destroy(&plan);
            planned++;
        }
    }
    return planned;
}

/* What was asked, and found. */
struct tally {
    uint32_t questions, alone, proposals, planned; // alone: with one candidate
};

static void ask(const struct dnn_target *target, const struct dnn_conv *conv, enum dnn_pass pass,
                struct tally *tally)
{
    static struct dnn_proposals first, both;
    char question[DNN_QUESTION_BYTES];
    dnn_write_question(target, conv, pass, question);
    first = both = (struct dnn_proposals){0};
    dnn_propose(target, conv, pass, DNN_LIST_BEST, &first);
    dnn_propose(target, conv, pass, DNN_LISTS_BEST, &both);
    if (first.count == 0) { // full float on some shapes: see dnn_choice.c
        dnn_propose(target, conv, pass, DNN_LIST_FALLBACKS, &both);
    } else {
        assert_string_equal(both.list[0].text, first.list[0].text);
    }
    assert_true(both.count >= first.count);
    uint32_t planned = plan_all(target, conv, pass, &both);
    if (planned == 0) {
        fail_msg("%s: none of %u proposals can be planned", question, both.count);
    }
    tally->questions++;
    tally->alone += planned == 1 ? 1 : 0;
    tally->proposals += both.count;
    tally->planned += planned;
}

static void ask_program(const struct dnn_target *target, size_t program, struct seen *seen,
                        struct tally *tally)
{
    static struct network_plan plan;
    uint32_t bad_layer, size = programs[program].size;
    const struct shape input = {programs[program].channels, size, size};
    assert_int_equal(
        network_make_plan(models_find(programs[program].model), input, 10, &plan, &bad_layer),
        STATUS_OK);
    for (uint32_t i = 0; i < plan.op_count; i++) {
        const struct op *op = &plan.ops[i];
        const struct dnn_conv conv = {.batch = programs[program].batch,
                                      .inputs = op->x.channels,
                                      .outputs = op->y.channels,
                                      .x_rows = op->x.rows,
                                      .x_columns = op->x.columns,
                                      .y_rows = op->y.rows,
                                      .y_columns = op->y.columns,
                                      .window = op->window,
                                      .stride = op->stride,
                                      .padding = op->padding,
                                      .has_bias = op->has_bias,
                                      .has_relu = op->has_bias};
        for (int pass = DNN_FORWARD; pass <= DNN_WEIGHT_GRADIENT && op->kind == OP_CONV2D; pass++) {
            char question[DNN_QUESTION_BYTES];
            dnn_write_question(target, &conv, (enum dnn_pass)pass, question);
            bool is_needed = pass != DNN_DATA_GRADIENT || i > 0;
            if (is_needed && is_new(seen, question, conv.batch)) {
                ask(target, &conv, (enum dnn_pass)pass, tally);
            }
        }
    }
}

static void proposals_of_both_heuristics_are_planned_for_every_model(void **state)
{
    (void)state;
    static struct seen seen;
    for (size_t g = 0; g < DESCRIBED_GPU_COUNT; g++) {
        struct dnn_target target = {0};
        assert_int_equal(described_gpu_create(&described_gpus[g], &target.described), STATUS_OK);
        for (uint32_t precision = 0; precision < 3; precision++) {
            struct tally tally = {0};
            target.precision = (enum precision)precision;
            seen.count = 0;
            for (size_t i = 0; i < sizeof(programs) / sizeof(programs[0]); i++) {
                ask_program(&target, i, &seen, &tally);
            }
            print_message("%s, precision %u: %u questions, %u with one candidate; %.1f proposals "
                          "each, %.1f planned of the first\n",
                          described_gpus[g].name, precision, tally.questions, tally.alone,
                          (double)tally.proposals / tally.questions,
                          (double)tally.planned / tally.questions);
            assert_true(tally.planned > tally.questions); // there is something to choose
        }
        dnn_forget_device(target.described);
    }
}

/* What somebody else has written is taken for an engine, or not at all. */
static void a_text_that_is_no_engine_is_refused(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "",        "none", "x 2=1",  "47 2", "47 2=",   "47 =1",   "47 99=1",
        "47  2=1", "-1",   "999999", "47,",  "47 2=1x", "47 -1=1", "47 2=1 2=1 2"};
    const struct dnn_conv conv = {.batch = 32,
                                  .inputs = 16,
                                  .outputs = 32,
                                  .x_rows = 32,
                                  .x_columns = 32,
                                  .y_rows = 32,
                                  .y_columns = 32,
                                  .window = 3,
                                  .stride = 1,
                                  .padding = 1};
    struct dnn_target target = {.precision = PRECISION_BF16};
    assert_int_equal(described_gpu_create(&described_gpus[2], &target.described), STATUS_OK);
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct dnn_engine engine;
        struct dnn_plan plan = {0};
        char failure[DNN_FAILURE_BYTES] = "";
        snprintf(engine.text, sizeof(engine.text), "%s", texts[i]);
        if (dnn_plan_engine(&target, &conv, DNN_FORWARD, &engine, &plan, failure)) {
            fail_msg("'%s' has a plan", texts[i]);
        }
        assert_null(plan.plan);
        assert_true(failure[0] != '\0');
    }
    dnn_forget_device(target.described);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(proposals_of_both_heuristics_are_planned_for_every_model),
        cmocka_unit_test(a_text_that_is_no_engine_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
