/* Tests of which engine is taken for a convolution: on the fake runtime, whose streams count time
 * (stream.h), with engines of its own (convolutions.c). */
#include "tests/support/common/temp_folder.h"
#include "tests/worker/device/cuda_fake/libraries.h"
#include "worker/device/cuda/dnn/dnn_choices.h"
#include "worker/device/cuda/host/report.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ENGINES   "FAKE_ENGINES"
#define SAID_SIZE 4096

static const struct dnn_conv conv = {.batch = 2,
                                     .inputs = 3,
                                     .outputs = 4,
                                     .x_rows = 5,
                                     .x_columns = 5,
                                     .y_rows = 5,
                                     .y_columns = 5,
                                     .window = 3,
                                     .stride = 1,
                                     .padding = 1,
                                     .has_bias = true};

static char said[SAID_SIZE]; // lines for the log

static void keep_line(enum log_level level, const char *sentence)
{
    (void)level;
    size_t used = strlen(said);
    snprintf(said + used, sizeof(said) - used, "%s\n", sentence);
}

/* A device, as cuda.c makes one. */
struct bench {
    char *cache; // the folder
    struct cudnnContext library;
    struct dnn_choices choices;
    struct dnn_target target;
};

static int set_up(void **state)
{
    struct bench *bench = calloc(1, sizeof(*bench));
    assert_non_null(bench);
    bench->cache = temp_folder_create();
    assert_int_equal(cudaStreamCreateWithFlags(&bench->library.stream, cudaStreamNonBlocking), 0);
    bench->choices.timing_ms_max = 3600000;
    bench->target = (struct dnn_target){
        .handle = &bench->library,
        .gpu = "a GPU of the fake runtime",
        .stream = bench->library.stream,
        .choices = &bench->choices,
    };
    report_set(keep_line);
    said[0] = '\0';
    *state = bench;
    return setenv("RINGSIDE_CACHE", bench->cache, 1);
}

static int tear_down(void **state)
{
    struct bench *bench = *state;
    dnn_choices_finish(&bench->choices);
    cudaStreamDestroy(bench->library.stream);
    temp_folder_destroy(bench->cache);
    free(bench);
    return unsetenv(ENGINES);
}

/* Forgets what the device has chosen: another job begins. */
static void begin_job(struct bench *bench)
{
    dnn_choices_finish(&bench->choices);
    bench->choices.timing_ms_max = 3600000;
    said[0] = '\0';
}

static void expect_for(struct bench *bench, const struct dnn_conv *of, enum dnn_pass pass,
                       const char *engine)
{
    struct dnn_plan plan;
    char why[DNN_WHY_BYTES] = "";
    enum status status = dnn_plan_conv(&bench->target, of, pass, &plan, why, sizeof(why));
    if (engine == NULL) {
        assert_int_equal(status, STATUS_UNSUPPORTED);
        assert_true(why[0] != '\0');
        return;
    }
    assert_int_equal(status, STATUS_OK);
    assert_string_equal(plan.engine, engine);
    dnn_plan_destroy(&plan);
}

static void expect(struct bench *bench, const char *engine)
{
    expect_for(bench, &conv, DNN_FORWARD, engine);
}

static void the_fastest_of_both_heuristics_is_taken_for_each_pass(void **state)
{
    setenv(ENGINES, "41:3000 7:1500 9:2000 12:1400", 1); // every second one is of the second alone
    for (int pass = DNN_FORWARD; pass <= DNN_WEIGHT_GRADIENT; pass++) {
        expect_for(*state, &conv, (enum dnn_pass)pass, "12");
    }
    assert_non_null(strstr(said, "are timed for each convolution"));
}

static void without_timing_the_first_proposal_is_taken(void **state)
{
    struct bench *bench = *state;
    setenv(ENGINES, "41:3000 7:1000 9:2000", 1);
    bench->choices.timing_ms_max = 0;
    expect(bench, "41");
    bench->target.choices = NULL;
    expect(bench, "41");
}

static void next_to_no_gain_moves_nobody(void **state)
{
    setenv(ENGINES, "41:100000 7:99000 9:98000", 1);
    expect(*state, "41");
}

static void only_the_first_eight_are_tried(void **state)
{
    setenv(ENGINES, "1:9000 2:9000 3:9000 4:9000 5:9000 6:9000 7:9000 8:3000 9:1000", 1);
    expect(*state, "8");
}

static void an_engine_that_does_not_run_is_passed_over_by_name(void **state)
{
    setenv(ENGINES, "41:broken 7:2000 9:broken", 1);
    expect(*state, "7");
    assert_non_null(strstr(said, "engine 41 is passed over"));
    assert_non_null(strstr(said, "engine 9 is passed over"));
    assert_non_null(strstr(said, "cuDNN cannot run a convolution"));
}

static void the_choice_repeats_in_the_next_job_whatever_is_faster_then(void **state)
{
    struct bench *bench = *state;
    setenv(ENGINES, "41:3000 7:1000", 1);
    expect(bench, "7");
    setenv(ENGINES, "41:1000 7:3000", 1);
    expect(bench, "7");
    begin_job(bench);
    expect(bench, "7");
    assert_string_equal(said, "");    // nothing was timed
    bench->choices.timing_ms_max = 0; // not by who did not ask for the fastest
    dnn_choices_finish(&bench->choices);
    expect(bench, "41");
}

/* Changes a byte in every file that is kept. */
static void spoil_cache(const struct bench *bench)
{
    char folder[512], path[1024];
    snprintf(folder, sizeof(folder), "%s/plans", bench->cache);
    DIR *entries = opendir(folder);
    assert_non_null(entries);
    for (const struct dirent *entry; (entry = readdir(entries)) != NULL;) {
        snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
        FILE *file = entry->d_name[0] != '.' ? fopen(path, "r+b") : NULL;
        if (file != NULL) {
            assert_int_equal(fseek(file, -1, SEEK_END), 0);
            assert_true(fputc('5', file) != EOF);
            assert_int_equal(fclose(file), 0);
        }
    }
    closedir(entries);
}

static void a_choice_that_was_kept_and_is_broken_is_made_anew_and_said(void **state)
{
    struct bench *bench = *state;
    setenv(ENGINES, "41:3000 7:1000", 1);
    expect(bench, "7");
    begin_job(bench);
    spoil_cache(bench);
    setenv(ENGINES, "41:1000 7:3000", 1);
    expect(bench, "41");
    assert_non_null(strstr(said, "is broken, and is made anew"));
    begin_job(bench);
    expect(bench, "41");
    assert_null(strstr(said, "broken"));
}

static void where_nothing_can_be_kept_nothing_is_timed(void **state)
{
    setenv("RINGSIDE_CACHE", "", 1);
    setenv(ENGINES, "41:3000 7:1000", 1);
    expect(*state, "41");
    assert_non_null(strstr(said, "engines are not timed"));
}

static void once_the_time_is_up_proposals_are_taken_and_kept(void **state)
{
    struct bench *bench = *state;
    struct dnn_conv other = conv;
    other.inputs++;
    setenv(ENGINES, "41:3000 7:1000", 1);
    expect(bench, "7");
    bench->choices.spent_ms = bench->choices.timing_ms_max;
    expect_for(bench, &other, DNN_FORWARD, "41");
    begin_job(bench);
    expect_for(bench, &other, DNN_FORWARD, "41");
}

static void what_was_given_is_taken_and_handed_on(void **state)
{
    struct bench *bench = *state;
    struct dnn_conv smaller = conv;
    smaller.batch--;
    setenv(ENGINES, "41:3000 7:1000", 1);
    assert_int_equal(
        dnn_choices_give(&bench->choices,
                         "forward of 3x3, stride 1, padding 1, 3x5x5 to 4x5x5, bias, fp32 = 41\n"
                         "data of 3x3, stride 1, padding 1, 3x5x5 to 4x5x5, bias, fp32 = none\n"),
        STATUS_OK);
    expect(bench, "41");
    expect_for(bench, &smaller, DNN_FORWARD, "41"); // for any number of samples
    expect_for(bench, &conv, DNN_DATA_GRADIENT, NULL);
    assert_string_equal(dnn_choices_text(&bench->choices), bench->choices.given);
    assert_string_equal(said, "");
    expect_for(bench, &conv, DNN_WEIGHT_GRADIENT, "7");
    assert_non_null(strstr(said, "'weights of 3x3, stride 1, padding 1, 3x5x5 to 4x5x5, bias, "
                                 "fp32', because the job's engine for it is not known"));
}

static void what_was_given_and_is_not_there_is_named(void **state)
{
    struct bench *bench = *state;
    setenv(ENGINES, "41:3000 7:1000", 1);
    assert_int_equal(dnn_choices_give(&bench->choices,
                                      "forward of 3x3, stride 1, padding 1, 3x5x5 to 4x5x5, "
                                      "bias, fp32 = 5 2=1"),
                     STATUS_OK);
    expect(bench, "7");
    assert_non_null(strstr(said, "because the job's engine for it cannot be taken here: 5 2=1, "
                                 "there is no such engine"));
    assert_non_null(strstr(dnn_choices_text(&bench->choices), "fp32 = 7\n"));
}

static void more_choices_than_a_message_holds_are_not_handed_on(void **state)
{
    struct bench *bench = *state;
    struct dnn_conv many = conv;
    bench->choices.timing_ms_max = 0;
    for (uint32_t i = 1; i < 2000 && strstr(said, "too many") == NULL; i++) {
        assert_int_equal(many.inputs, 2 + i);
        expect_for(bench, &many, DNN_FORWARD, "loops");
        many.inputs++;
    }
    assert_non_null(strstr(said, "too many"));
    assert_string_equal(dnn_choices_text(&bench->choices), "");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(the_fastest_of_both_heuristics_is_taken_for_each_pass),
        TEST(without_timing_the_first_proposal_is_taken),
        TEST(next_to_no_gain_moves_nobody),
        TEST(only_the_first_eight_are_tried),
        TEST(an_engine_that_does_not_run_is_passed_over_by_name),
        TEST(the_choice_repeats_in_the_next_job_whatever_is_faster_then),
        TEST(a_choice_that_was_kept_and_is_broken_is_made_anew_and_said),
        TEST(where_nothing_can_be_kept_nothing_is_timed),
        TEST(once_the_time_is_up_proposals_are_taken_and_kept),
        TEST(what_was_given_is_taken_and_handed_on),
        TEST(what_was_given_and_is_not_there_is_named),
        TEST(more_choices_than_a_message_holds_are_not_handed_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
