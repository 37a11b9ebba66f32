/* Tests of the tables of runs. */
#include "deploy/report/table.h"
#include "tests/support/common/captured_log.h"
#include "tests/support/common/temp_folder.h"
#include "tests/support/deploy/sample_runs.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RUNS_MAX 8

#define ONES "1111111111111111111111111111111111111111111111111111111111111111"
#define TWOS "2222222222222222222222222222222222222222222222222222222222222222"

struct table_test {
    char *folder;
    struct run_folder runs[RUNS_MAX];
    size_t count;
};

static int set_up(void **state)
{
    static struct table_test test;
    test = (struct table_test){.folder = temp_folder_create()};
    *state = &test;
    return 0;
}

static int tear_down(void **state)
{
    struct table_test *test = *state;
    for (size_t i = 0; i < test->count; i++) {
        run_folder_close(&test->runs[i]);
    }
    temp_folder_destroy(test->folder);
    return 0;
}

static void add(struct table_test *test, const struct sample_run *sample)
{
    char name[16];
    assert_in_range(test->count, 0, RUNS_MAX - 1);
    snprintf(name, sizeof(name), "run-%zu", test->count);
    sample_runs_open(test->folder, name, sample, &test->runs[test->count++]);
}

static void check_cell(const struct table_test *test, size_t run, const char *heading,
                       const char *expected)
{
    char text[256];
    for (size_t k = 0; table_heading(k) != NULL; k++) {
        if (strcmp(table_heading(k), heading) == 0) {
            table_cell(test->runs, run, k, text, sizeof(text));
            assert_string_equal(text, expected);
            return;
        }
    }
    fail_msg("there is no column '%s'", heading);
}

/* What a function prints of the runs; the caller frees it. */
static char *printed_by(void (*print)(FILE *stream, const struct run_folder *runs, size_t count),
                        const struct table_test *test)
{
    char *text = NULL;
    size_t size = 0;
    FILE *memory = open_memstream(&text, &size);
    assert_non_null(memory);
    print(memory, test->runs, test->count);
    assert_int_equal(fclose(memory), 0);
    return text;
}

static void check_verdicts(const struct table_test *test, const char *expected)
{
    char *text = printed_by(table_print_verdicts, test);
    assert_string_equal(text, expected);
    free(text);
}

/* What table_write_csv_value writes; the caller frees it. */
static char *csv_of(const char *value)
{
    char *text = NULL;
    size_t size = 0;
    FILE *memory = open_memstream(&text, &size);
    assert_non_null(memory);
    table_write_csv_value(memory, value);
    assert_int_equal(fclose(memory), 0);
    return text;
}

static void values_are_quoted_for_csv_where_they_must_be(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"", ""},
        {"ring", "ring"},
        {"two words", "two words"},
        {"it's; fine", "it's; fine"},
        {"a,b", "\"a,b\""},
        {"say \"no\"", "\"say \"\"no\"\"\""},
        {"\"", "\"\"\"\""},
        {"two\nlines", "\"two\nlines\""},
        {"a\rb", "\"a\rb\""},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char *text = csv_of(cases[i][0]);
        assert_string_equal(text, cases[i][1]);
        free(text);
    }
}

static void the_epochs_of_a_long_run_are_whole_in_the_csv(void **state)
{
    struct table_test *test = *state;
    add(test, &(struct sample_run){.mode = "ring"});
    json_t *epochs = json_object_get(test->runs[0].summary, "epochs");
    for (int i = 0; i < 1000; i++) {
        json_array_append_new(epochs,
                              json_pack("{s:i, s:f}", "epoch", i, "train_loss", 0.123456789));
    }
    assert_int_equal(table_write(test->folder, test->runs, test->count), STATUS_OK);
    char *text = sample_runs_read(test->folder, "table.csv");
    assert_true(strlen(text) > 1000 * strlen("epoch,train_loss"));
    assert_non_null(strstr(
        text, "\"\"epoch\"\":999,\"\"train_loss\"\":0.123456789}]\",0.8125,2,0,,\"[1,2]\"\n"));
    free(text);
}

static void cells_show_what_people_compare(void **state)
{
    struct table_test *test = *state;
    add(test, &(struct sample_run){.mode = "ps-sync", .servers = 3});
    add(test, &(struct sample_run){.images_per_second = 150.4, .outcome = "failed", .best = 0.9});
    check_cell(test, 0, "mode", "ps-sync");
    check_cell(test, 0, "workers", "2");
    check_cell(test, 0, "servers", "3");
    check_cell(test, 0, "transport", "shm");
    check_cell(test, 0, "images/s", "100");
    check_cell(test, 0, "ratio", "1.00");
    check_cell(test, 0, "test accuracy", "81.25 %");
    check_cell(test, 1, "best accuracy", "90.00 %");
    check_cell(test, 0, "compute ms", "6.50");
    check_cell(test, 0, "exchange ms", "0.25");
    check_cell(test, 0, "input wait", "1.8 %"); // 0.125 of 6.875 ms
    check_cell(test, 0, "loader threads", "1 to 2");
    check_cell(test, 0, "wire ms", "1.50");
    check_cell(test, 0, "copy ms", "0.75");
    check_cell(test, 0, "lost", "0");
    check_cell(test, 0, "parameters", "111111111111");
    check_cell(test, 0, "outcome", "completed");
    check_cell(test, 1, "images/s", "150");
    json_object_set_new(test->runs[1].summary, "images_per_second", json_real(4.26));
    check_cell(test, 1, "images/s", "4.3");
    json_object_set_new(test->runs[1].summary, "images_per_second", json_real(150.4));
    check_cell(test, 1, "ratio", "1.50");
    check_cell(test, 1, "outcome", "failed");
    assert_null(table_heading(22));
    assert_null(table_heading(1000));
}

static void data_and_seed_are_shown_where_runs_differ_in_them(void **state)
{
    struct table_test *test = *state;
    add(test, &(struct sample_run){.mode = "ring"});
    add(test, &(struct sample_run){.mode = "ring"});
    char *text = printed_by(table_print, test);
    assert_null(strstr(text, "data"));
    assert_null(strstr(text, "seed"));
    free(text);

    json_object_set_new(test->runs[0].summary, "dataset", json_string("images:/a b"));
    json_object_set_new(test->runs[1].summary, "dataset", json_string("synthetic:images:/a b"));
    text = printed_by(table_print, test);
    assert_non_null(strstr(text, "  data                   "));
    assert_non_null(strstr(text, "  images:/a b            "));
    assert_non_null(strstr(text, "  synthetic:images:/a b  "));
    assert_null(strstr(text, "seed"));
    free(text);

    json_object_set_new(test->runs[1].summary, "seed", json_integer(1234));
    assert_int_equal(table_write(test->folder, test->runs, test->count), STATUS_OK);
    text = sample_runs_read(test->folder, "table.md");
    assert_non_null(strstr(text, "| data | seed |"));
    assert_non_null(strstr(text, "| synthetic:images:/a b | 1234 |"));
    free(text);
}

static void verdicts_say_of_which_data_and_seed_they_are(void **state)
{
    struct table_test *test = *state;
    for (int i = 0; i < 4; i++) {
        add(test, &(struct sample_run){.mode = i % 2 == 0 ? "ring" : "ps-sync", .servers = i % 2});
        json_object_set_new(test->runs[i].summary, "dataset",
                            json_string(i < 2 ? "cifar10:/d" : "synthetic:cifar10:/d"));
    }
    check_verdicts(test,
                   "same bits: 2 runs with N = 2 (data=cifar10:/d) end with the same parameters "
                   "(111111111111)\nsame bits: 2 runs with N = 2 (data=synthetic:cifar10:/d) "
                   "end with the same parameters (111111111111)\n");
}

static void predictions_stand_beside_what_was_measured_where_there_are_some(void **state)
{
    struct table_test *test = *state;
    size_t predicted = 0;
    add(test, &(struct sample_run){.mode = "ring"});
    add(test, &(struct sample_run){.mode = "ps-sync", .servers = 1});
    while (strcmp(table_heading(predicted), "predicted") != 0) {
        predicted++;
    }
    assert_false(table_shows(&test->runs[0], predicted));
    assert_int_equal(table_write(test->folder, test->runs, test->count), STATUS_OK);
    char *text = sample_runs_read(test->folder, "table.csv");
    assert_null(strstr(text, "prediction"));
    free(text);
    test->runs[0].prediction =
        json_pack("{s:f, s:f}", "images_per_second", 96.5, "error_percent", -3.5);
    test->runs[1].prediction = json_pack("{s:s}", "why", "NCCL is not in the model");
    assert_true(table_shows(&test->runs[0], predicted));
    check_cell(test, 0, "predicted", "96.5");
    check_cell(test, 0, "error", "-3.5 %");
    check_cell(test, 1, "predicted", "NCCL is not in the model");
    check_cell(test, 1, "error", "-");
    assert_int_equal(table_write(test->folder, test->runs, test->count), STATUS_OK);
    text = sample_runs_read(test->folder, "table.csv");
    assert_non_null(
        strstr(text, ",prediction.images_per_second,prediction.error_percent,prediction.why\n"));
    assert_non_null(strstr(text, ",96.5,-3.5,\n"));
    assert_non_null(strstr(text, ",,,NCCL is not in the model\n"));
    free(text);
}

static void set_loaders(struct table_test *test, size_t run, json_t *threads, const char *given)
{
    struct run_folder *of = &test->runs[run];
    json_object_set_new(of->details, "loader_threads", threads);
    json_decref(of->job);
    of->job = json_pack("{s:{s:s}}", "options", "loader-threads", given);
}

static void the_number_of_loader_threads_says_whether_it_was_found(void **state)
{
    struct table_test *test = *state;
    for (size_t i = 0; i < 4; i++) {
        add(test, &(struct sample_run){0});
    }
    set_loaders(test, 0, json_pack("[i,i]", 2, 2), "auto");
    set_loaders(test, 1, json_pack("[i,i]", 3, 3), "3");
    set_loaders(test, 2, json_pack("[n,i,i]", 4, 1), "auto");
    set_loaders(test, 3, json_pack("[n,n]"), "auto"); // a program of its own
    check_cell(test, 0, "loader threads", "2 (auto)");
    check_cell(test, 1, "loader threads", "3");
    check_cell(test, 2, "loader threads", "1 to 4 (auto)");
    check_cell(test, 3, "loader threads", "-");
}

static void what_a_run_does_not_have_is_a_dash(void **state)
{
    struct table_test *test = *state;
    static const char summary[] = "{\"outcome\": \"failed\"}";
    char path[RUN_FOLDER_PATH_MAX];
    temp_folder_write(test->folder, "bare/summary.json", summary, strlen(summary));
    snprintf(path, sizeof(path), "%s/bare", test->folder);
    assert_int_equal(run_folder_open(path, &test->runs[test->count++]), STATUS_OK);
    add(test, &(struct sample_run){0});
    check_cell(test, 0, "mode", "-");
    check_cell(test, 0, "images/s", "-");
    check_cell(test, 0, "test accuracy", "-");
    check_cell(test, 0, "parameters", "-");
    check_cell(test, 0, "loader threads", "-");
    check_cell(test, 0, "ratio", "-");
    check_cell(test, 1, "ratio", "-"); // to the first, which has no rate
    check_verdicts(test, "");
}

static void runs_with_equal_parameters_have_the_same_bits(void **state)
{
    struct table_test *test = *state;
    add(test, &(struct sample_run){.mode = "local", .workers = 1, .digest = TWOS});
    add(test, &(struct sample_run){.mode = "ps-sync", .servers = 1});
    add(test, &(struct sample_run){.mode = "ring"});
    check_verdicts(test,
                   "same bits: 2 runs with N = 2 end with the same parameters (111111111111)\n");
}

static void runs_with_other_parameters_have_different_bits(void **state)
{
    struct table_test *test = *state;
    add(test, &(struct sample_run){.mode = "ps-sync", .servers = 1});
    add(test, &(struct sample_run){.mode = "ring", .digest = TWOS});
    check_verdicts(test, "different bits: ps-sync, N = 2, K = 1 ends with 111111111111, "
                         "ring, N = 2 with 222222222222\n");
}

static void runs_that_sum_by_nccl_are_compared_with_no_other(void **state)
{
    struct table_test *test = *state;
    static const char said[] =
        "ring, N = 2: the bits are NCCL's, and were compared with no other run's\n";
    add(test, &(struct sample_run){.digest = ONES, .bits_of = "nccl"});
    add(test, &(struct sample_run){.mode = "ps-sync", .servers = 1, .digest = ONES});
    check_verdicts(test, said);
    add(test, &(struct sample_run){.mode = "ps-sync", .servers = 2, .digest = ONES});
    char with_others[512];
    snprintf(with_others, sizeof(with_others),
             "%ssame bits: 2 runs with N = 2 end with the same parameters (111111111111)\n", said);
    check_verdicts(test, with_others);
}

static void asynchronous_runs_have_no_verdict(void **state)
{
    struct table_test *test = *state;
    add(test, &(struct sample_run){.mode = "ps-async", .digest = "22"});
    add(test, &(struct sample_run){.mode = "ring"});
    add(test, &(struct sample_run){.mode = "ps-ssp:2", .digest = "33"});
    char *text = NULL;
    size_t size = 0;
    FILE *memory = open_memstream(&text, &size);
    assert_non_null(memory);
    table_print_verdicts(memory, test->runs, test->count);
    assert_int_equal(fclose(memory), 0);
    assert_string_equal(text, "");
    free(text);
}

static void every_number_of_workers_has_a_verdict(void **state)
{
    struct table_test *test = *state;
    add(test, &(struct sample_run){.mode = "ps-sync", .servers = 1});
    add(test, &(struct sample_run){.mode = "ps-sync", .servers = 1, .workers = 4, .digest = TWOS});
    add(test, &(struct sample_run){.mode = "ring"});
    add(test, &(struct sample_run){.mode = "ring", .workers = 4, .digest = ONES});
    check_verdicts(test,
                   "same bits: 2 runs with N = 2 end with the same parameters (111111111111)\n"
                   "different bits: ps-sync, N = 4, K = 1 ends with 222222222222, "
                   "ring, N = 4 with 111111111111\n");
}

static void runs_that_failed_have_no_verdict(void **state)
{
    struct table_test *test = *state;
    add(test, &(struct sample_run){.mode = "ps-sync", .servers = 1, .outcome = "failed"});
    add(test, &(struct sample_run){.mode = "ring"});
    check_verdicts(test, "");
}

static void the_csv_has_a_row_for_each_run_and_a_column_for_each_key(void **state)
{
    struct table_test *test = *state;
    add(test, &(struct sample_run){.mode = "ps-sync", .servers = 2});
    add(test, &(struct sample_run){.outcome = "failed", .reason = "lost \"worker 1\", sadly"});
    assert_int_equal(table_write(test->folder, test->runs, test->count), STATUS_OK);
    char *text = sample_runs_read(test->folder, "table.csv");
    static const char head[] =
        "version,mode,workers,servers,model,parameters,dataset,device,transport,seed,"
        "batch_per_worker,global_batch,optimizer,lr,lr_effective,steps,seconds,images_per_second,"
        "train_loss,"
        "test_loss,test_accuracy,ms_per_step.compute,ms_per_step.exchange_wait,"
        "ms_per_step.input_wait,ms_per_step.total,bytes_per_step.worker_sent,"
        "bytes_per_step.worker_received,bytes_per_step.server_sent,"
        "bytes_per_step.server_received,staleness.mean,staleness.max,staleness.histogram,"
        "params_digest,bits_of,workers_lost,"
        "restarts,outcome,reason,epochs,best_accuracy,best_epoch,images_dropped,diverged_step,"
        "loader_threads\n";
    assert_memory_equal(text, head, strlen(head));
    static const char values[] =
        "0.1.0,ps-sync,2,2,lenet5,83126,shapes,cpu,shm,1,8,16,momentum,0.5,1,4,1.25,100,0.5,0.75,"
        "0.8125,6.5,0.25,0.125,6.875,1024,2048,0,0,0,1,\"[3,1]\"," ONES
        ",ringside,0,0,completed,,\"[{";
    assert_memory_equal(text + strlen(head), values, strlen(values));
    assert_non_null(strstr(text, ",failed,\"lost \"\"worker 1\"\", sadly\",\"[{"));
    size_t lines = 0;
    for (const char *at = text; *at != '\0'; at++) {
        lines += *at == '\n';
    }
    assert_int_equal(lines, 3);
    free(text);
}

static void the_markdown_table_ends_with_the_verdicts(void **state)
{
    struct table_test *test = *state;
    add(test, &(struct sample_run){.mode = "ps-sync", .servers = 1});
    add(test, &(struct sample_run){.mode = "ring"});
    assert_int_equal(table_write(test->folder, test->runs, test->count), STATUS_OK);
    char *text = sample_runs_read(test->folder, "table.md");
    assert_string_equal(
        text, "| mode | workers | servers | transport | images/s | ratio | test accuracy | best "
              "accuracy | compute ms | exchange ms | input ms | input wait | loader threads | wire "
              "ms | copy ms | "
              "lost | parameters | "
              "outcome |\n"
              "|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|\n"
              "| ps-sync | 2 | 1 | shm | 100 | 1.00 | 81.25 % | 81.25 % | 6.50 | 0.25 | 0.12 | "
              "1.8 % | 1 to 2 | 1.50 | 0.75 | 0 | 111111111111 | completed |\n"
              "| ring | 2 | 0 | shm | 100 | 1.00 | 81.25 % | 81.25 % | 6.50 | 0.25 | 0.12 | "
              "1.8 % | 1 to 2 | 1.50 | 0.75 | 0 | 111111111111 | completed |\n\n"
              "same bits: 2 runs with N = 2 end with the same parameters (111111111111)\n");
    free(text);
}

static void the_printed_table_is_aligned(void **state)
{
    struct table_test *test = *state;
    add(test, &(struct sample_run){.mode = "ps-sync", .servers = 1});
    add(test, &(struct sample_run){.mode = "ring", .images_per_second = 123456});
    char *text = printed_by(table_print, test);
    size_t width = strcspn(text, "\n");
    for (const char *line = text; *line != '\0'; line += width + 1) {
        assert_int_equal(strcspn(line, "\n"), width);
    }
    free(text);
}

static void a_folder_that_is_not_there_is_named(void **state)
{
    struct table_test *test = *state;
    char missing[RUN_FOLDER_PATH_MAX];
    add(test, &(struct sample_run){0});
    snprintf(missing, sizeof(missing), "%s/missing", test->folder);
    captured_log_begin();
    enum status status = table_write(missing, test->runs, test->count);
    const char *log = captured_log_end();
    assert_int_equal(status, STATUS_IO);
    assert_non_null(strstr(log, "/missing/table.csv"));
}

#define TABLE_TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_are_quoted_for_csv_where_they_must_be),
        TABLE_TEST(cells_show_what_people_compare),
        TABLE_TEST(data_and_seed_are_shown_where_runs_differ_in_them),
        TABLE_TEST(verdicts_say_of_which_data_and_seed_they_are),
        TABLE_TEST(predictions_stand_beside_what_was_measured_where_there_are_some),
        TABLE_TEST(the_number_of_loader_threads_says_whether_it_was_found),
        TABLE_TEST(what_a_run_does_not_have_is_a_dash),
        TABLE_TEST(runs_with_equal_parameters_have_the_same_bits),
        TABLE_TEST(runs_with_other_parameters_have_different_bits),
        TABLE_TEST(runs_that_sum_by_nccl_are_compared_with_no_other),
        TABLE_TEST(asynchronous_runs_have_no_verdict),
        TABLE_TEST(every_number_of_workers_has_a_verdict),
        TABLE_TEST(runs_that_failed_have_no_verdict),
        TABLE_TEST(the_csv_has_a_row_for_each_run_and_a_column_for_each_key),
        TABLE_TEST(the_epochs_of_a_long_run_are_whole_in_the_csv),
        TABLE_TEST(the_markdown_table_ends_with_the_verdicts),
        TABLE_TEST(the_printed_table_is_aligned),
        TABLE_TEST(a_folder_that_is_not_there_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
