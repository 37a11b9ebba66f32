/* Tests of kept plans by cuDNN itself, on GPUs that are only described: what is read again is the
 * plan that was written, those that the library compiles among them. */
#include "tests/support/common/temp_folder.h"
#include "tests/worker/device/described_gpus.h"
#include "worker/device/cuda/dnn/dnn_choices.h"
#include "worker/device/cuda/host/report.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on

#define PLAN_TEXT_BYTES (1 << 20)

static const struct dnn_conv conv = {.batch = 32,
                                     .inputs = 16,
                                     .outputs = 32,
                                     .x_rows = 32,
                                     .x_columns = 32,
                                     .y_rows = 32,
                                     .y_columns = 32,
                                     .window = 3,
                                     .stride = 1,
                                     .padding = 1};

static uint32_t compilations, warnings; // that were announced; of those, to everybody

static void count_compilations(enum log_level level, const char *sentence)
{
    bool is_one = strstr(sentence, "compiles") != NULL;
    compilations += is_one ? 1 : 0;
    warnings += is_one && level == LOG_WARN ? 1 : 0;
}

static int open_folder(void **state)
{
    *state = temp_folder_create();
    report_set(count_compilations);
    compilations = warnings = 0;
    return setenv("RINGSIDE_CACHE", *state, 1);
}

static int close_folder(void **state)
{
    temp_folder_destroy(*state);
    return unsetenv("RINGSIDE_CACHE");
}

static struct dnn_plan plan(const struct dnn_target *target, const struct dnn_conv *of,
                            enum dnn_pass pass)
{
    struct dnn_plan plan;
    char why[DNN_WHY_BYTES] = "";
    if (dnn_plan_conv(target, of, pass, &plan, why, sizeof(why)) != STATUS_OK) {
        fail_msg("%s", why);
    }
    return plan;
}

/* Valid until the next call but one. */
static const char *text_of(const struct dnn_plan *of)
{
    static char texts[2][PLAN_TEXT_BYTES];
    static uint32_t turn;
    int64_t size = 0;
    char *text = texts[turn++ % 2];
    memset(text, 0, PLAN_TEXT_BYTES);
    assert_int_equal(cudnnBackendGetAttribute(of->plan,
                                              CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION,
                                              CUDNN_TYPE_CHAR, PLAN_TEXT_BYTES - 1, &size, text),
                     CUDNN_STATUS_SUCCESS);
    return text;
}

static void check_again(const struct dnn_target *target, const struct dnn_conv *of,
                        enum dnn_pass pass)
{
    struct dnn_plan made = plan(target, of, pass), kept = plan(target, of, pass);
    assert_false(made.is_kept);
    assert_true(kept.is_kept);
    assert_string_equal(kept.engine, made.engine);
    assert_int_equal(kept.workspace_bytes, made.workspace_bytes);
    assert_string_equal(text_of(&kept), text_of(&made));
    dnn_plan_destroy(&made);
    dnn_plan_destroy(&kept);
}

static void a_plan_that_was_kept_is_the_plan_that_was_made(void **state)
{
    (void)state;
    struct dnn_choices choices = {0};
    for (size_t g = 0; g < DESCRIBED_GPU_COUNT; g++) {
        struct dnn_target target = {.gpu = described_gpus[g].name, .precision = PRECISION_BF16};
        assert_int_equal(described_gpu_create(&described_gpus[g], &target.described), STATUS_OK);
        for (int pass = DNN_FORWARD; pass <= DNN_WEIGHT_GRADIENT; pass++) {
            check_again(&target, &conv, (enum dnn_pass)pass);
        }
        struct dnn_conv with_statistics = conv;
        with_statistics.has_statistics = true;
        target.allows_nondeterministic = true;
        target.choices = &choices;
        check_again(&target, &with_statistics, DNN_FORWARD);
        assert_int_equal(compilations, g + 1); // once each, and announced
        assert_int_equal(warnings, 1);         // the first one, to who waits
        dnn_forget_device(target.described);
    }
    dnn_choices_finish(&choices);
}

/* Each of these is another question. */
static void a_plan_is_kept_for_what_it_was_made_for(void **state)
{
    (void)state;
    struct dnn_target target = {.gpu = "H200", .precision = PRECISION_TF32};
    struct dnn_conv others[8];
    assert_int_equal(described_gpu_create(&described_gpus[2], &target.described), STATUS_OK);
    struct dnn_plan first = plan(&target, &conv, DNN_FORWARD);
    for (size_t i = 0; i < 8; i++) {
        others[i] = conv;
    }
    others[0].batch = 31;
    others[1].inputs = 24;
    others[2].outputs = 40;
    others[3].x_rows = others[3].y_rows = 30;
    others[4].x_columns = others[4].y_columns = 30;
    others[5].has_bias = true;
    others[6].has_bias = others[6].has_relu = true;
    others[7].padding = 0;
    others[7].y_rows = others[7].y_columns = 30;
    for (size_t i = 0; i < 8; i++) {
        struct dnn_plan other = plan(&target, &others[i], DNN_FORWARD);
        assert_false(other.is_kept);
        dnn_plan_destroy(&other);
    }
    struct dnn_target elsewhere = target, rougher = target;
    elsewhere.gpu = "H200 with another driver";
    rougher.precision = PRECISION_BF16;
    struct dnn_plan second = plan(&elsewhere, &conv, DNN_FORWARD);
    struct dnn_plan third = plan(&rougher, &conv, DNN_FORWARD);
    assert_false(second.is_kept || third.is_kept);
    dnn_plan_destroy(&first);
    dnn_plan_destroy(&second);
    dnn_plan_destroy(&third);
    dnn_forget_device(target.described);
}

static void without_a_name_of_the_gpu_nothing_is_kept(void **state)
{
    (void)state;
    struct dnn_target target = {.precision = PRECISION_BF16};
    assert_int_equal(described_gpu_create(&described_gpus[0], &target.described), STATUS_OK);
    for (int i = 0; i < 2; i++) {
        struct dnn_plan made = plan(&target, &conv, DNN_FORWARD);
        assert_false(made.is_kept);
        dnn_plan_destroy(&made);
    }
    dnn_forget_device(target.described);
}

int main(void)
{
    // Found by its name when cuDNN looks for the driver.
    if (dlopen(CUDA_DRIVER, RTLD_NOW) == NULL) {
        print_message("cannot load the driver: %s\n", dlerror());
        return 1;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_plan_that_was_kept_is_the_plan_that_was_made, open_folder,
                                        close_folder),
        cmocka_unit_test_setup_teardown(a_plan_is_kept_for_what_it_was_made_for, open_folder,
                                        close_folder),
        cmocka_unit_test_setup_teardown(without_a_name_of_the_gpu_nothing_is_kept, open_folder,
                                        close_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
