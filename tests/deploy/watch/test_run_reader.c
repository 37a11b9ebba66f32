/* Tests of run folders that are read while they grow. */
#include "common/job/job.h"
#include "deploy/watch/run_reader.h"
#include "tests/support/common/captured_log.h"
#include "tests/support/common/temp_folder.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define JOB                                                                                  \
    "{\"version\": \"0\", \"train_samples\": 100, \"options\": {\"workers\": 2, "            \
    "\"mode\": \"ring\", \"model\": \"cnn\", \"data\": \"cifar10:/secret\", \"epochs\": 2, " \
    "\"steps\": 0, \"global-batch\": 10}, \"members\": []}"

static char *folder; // of the test that runs

static void write_file(const char *name, const char *how, const char *text)
{
    char path[512];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    FILE *file = fopen(path, how);
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static void add_line(uint32_t rank, uint64_t step, double loss, const char *end)
{
    char line[512];
    snprintf(line, sizeof(line),
             "{\"rank\": %u, \"step\": %llu, \"steps\": 2, \"epoch\": 1, \"seconds\": 1.5, "
             "\"lr\": 0.1, \"loss\": %g, \"images_per_second\": 50, \"ms\": {\"compute\": %u}, "
             "\"bytes_sent\": 7, \"staleness\": 0}%s",
             rank, (unsigned long long)step, loss, 10 + rank, end);
    write_file("metrics.jsonl", "a", line);
}

static bool update(struct run_reader *reader)
{
    bool is_new;
    assert_int_equal(run_reader_update(reader, &is_new), STATUS_OK);
    return is_new;
}

static void open_folder(struct run_reader *reader)
{
    char logs[512];
    folder = temp_folder_create();
    snprintf(logs, sizeof(logs), "%s/logs", folder);
    assert_int_equal(mkdir(logs, 0777), 0);
    assert_int_equal(run_reader_open(folder, reader), STATUS_OK);
}

static void close_folder(struct run_reader *reader)
{
    run_reader_close(reader);
    temp_folder_destroy(folder);
}

static void lines_are_taken_once_they_are_whole(void **state)
{
    static struct run_reader reader;
    (void)state;
    open_folder(&reader);
    assert_false(update(&reader)); // it has not begun
    write_file("job.json", "w", JOB);
    assert_true(update(&reader));
    assert_int_equal(reader.state.total_steps, 20);
    assert_string_equal(reader.state.dataset, "cifar10");
    add_line(0, 2, 1.5, "\n");
    add_line(1, 2, 2.5, ""); // is being written
    assert_true(update(&reader));
    assert_int_equal(reader.state.step, 0);
    assert_false(update(&reader));
    write_file("metrics.jsonl", "a", "\n");
    assert_true(update(&reader));
    assert_int_equal(reader.state.step, 2);
    assert_float_equal(reader.state.loss, 2, 1e-9);
    assert_float_equal(reader.state.images_per_second, 100, 1e-9);
    assert_int_equal(reader.state.slowest, 1);
    assert_int_equal(reader.state.progress.count, 1);
    close_folder(&reader);
}

static void an_optimizer_of_a_program_is_called_as_in_its_log(void **state)
{
    static struct run_reader reader;
    (void)state;
    open_folder(&reader);
    write_file("job.json", "w",
               "{\"options\": {\"workers\": 1, \"mode\": \"ring\", \"optimizer\": \"auto\"}}");
    assert_true(update(&reader));
    assert_string_equal(reader.state.optimizer, JOB_OPTIMIZER_OF_PROGRAM);
    close_folder(&reader);
}

static void of_an_open_job_there_is_no_total(void **state)
{
    static struct run_reader reader;
    (void)state;
    open_folder(&reader);
    write_file(
        "job.json", "w",
        "{\"train_samples\": 64000000000000, \"options\": {\"workers\": 2, \"mode\": \"ring\", "
        "\"model\": \"external:a\", \"data\": \"external:a\", \"epochs\": 0, "
        "\"steps\": 1000000000000, \"global-batch\": 64}, \"members\": []}");
    assert_true(update(&reader));
    assert_int_equal(reader.state.total_steps, 0);
    assert_string_equal(reader.state.model, "external:a");
    close_folder(&reader);
}

static void a_job_that_goes_on_earlier_is_read_anew(void **state)
{
    static struct run_reader reader;
    char path[512], draft[512];
    (void)state;
    open_folder(&reader);
    write_file("job.json", "w", JOB);
    for (uint64_t step = 2; step <= 6; step += 2) {
        add_line(0, step, 1, "\n");
        add_line(1, step, 1, "\n");
    }
    assert_true(update(&reader));
    assert_int_equal(reader.state.step, 6);
    snprintf(path, sizeof(path), "%s/metrics.jsonl", folder);
    snprintf(draft, sizeof(draft), "%s/kept", folder);
    assert_int_equal(rename(path, draft), 0);
    add_line(0, 2, 3, "\n");
    add_line(1, 2, 3, "\n");
    assert_true(update(&reader));
    assert_int_equal(reader.state.step, 2);
    assert_int_equal(reader.state.progress.count, 1);
    assert_int_equal(reader.state.ranks[0].bytes_sent, 7);
    close_folder(&reader);
}

/* Whoever looks has room for the ranks of the job that was there first. */
static void a_job_of_another_size_is_not_taken_for_the_same(void **state)
{
    static struct run_reader reader;
    char path[512], draft[512];
    bool is_new;
    (void)state;
    open_folder(&reader);
    write_file("job.json", "w", JOB);
    add_line(0, 2, 1, "\n");
    assert_true(update(&reader));
    snprintf(path, sizeof(path), "%s/metrics.jsonl", folder);
    snprintf(draft, sizeof(draft), "%s/kept", folder);
    assert_int_equal(rename(path, draft), 0);
    write_file("job.json", "w", "{\"options\": {\"workers\": 3}}");
    add_line(0, 2, 1, "\n");
    captured_log_begin();
    enum status status = run_reader_update(&reader, &is_new);
    const char *log = captured_log_end();
    assert_int_equal(status, STATUS_MALFORMED);
    assert_non_null(strstr(log, "another job"));
    close_folder(&reader);
}

static void the_summary_ends_it_with_evaluations_and_a_reason(void **state)
{
    static struct run_reader reader;
    (void)state;
    open_folder(&reader);
    write_file("job.json", "w", JOB);
    add_line(0, 2, 1, "\n");
    write_file("details.json", "w",
               "{\"evaluations\": [{\"step\": 10, \"test_accuracy\": 0.5, \"test_loss\": 1}, "
               "{\"step\": 12, \"test_accuracy\": null}], \"all_reduce\": \"direct\"}");
    write_file("summary.json", "w",
               "{\"outcome\": \"failed\", \"reason\": \"the disk is full\", \"seconds\": 9, "
               "\"steps\": 12, \"images_per_second\": 1234}");
    assert_true(update(&reader));
    assert_string_equal(reader.state.all_reduce, "direct");
    assert_float_equal(reader.state.images_per_second, 1234, 1e-9); // of the whole job
    assert_string_equal(reader.state.outcome, "failed");
    assert_string_equal(reader.state.reason, "the disk is full");
    assert_int_equal(reader.state.step, 12);
    assert_int_equal(reader.state.ranks[0].step, 2);
    assert_int_equal(reader.state.evaluations.count, 1);
    assert_float_equal(reader.state.accuracy, 0.5, 1e-9);
    assert_false(update(&reader));
    close_folder(&reader);
}

static void lines_that_are_none_are_left_out(void **state)
{
    static struct run_reader reader;
    (void)state;
    open_folder(&reader);
    write_file("job.json", "w", JOB);
    write_file("metrics.jsonl", "w",
               "no line\n[]\n{}\n{\"rank\": -1}\n{\"rank\": 2}\n{\"rank\": \"0\"}\n\n");
    add_line(1, 2, 1, "\n");
    assert_true(update(&reader));
    assert_int_equal(reader.state.ranks[1].step, 2);
    assert_int_equal(reader.state.ranks[0].step, 0);
    close_folder(&reader);
}

static void a_job_that_never_trained_says_why(void **state)
{
    static struct run_reader reader;
    bool is_new;
    (void)state;
    open_folder(&reader);
    write_file("summary.json", "w", "{\"outcome\": \"failed\", \"reason\": \"no worker came\"}");
    captured_log_begin();
    enum status status = run_reader_update(&reader, &is_new);
    const char *log = captured_log_end();
    assert_int_equal(status, STATUS_END_OF_DATA);
    assert_non_null(strstr(log, "no worker came"));
    close_folder(&reader);
}

/* A rank that has not reported has no loss, which is not a loss of 0. */
static void the_loss_is_that_of_the_ranks_that_have_one(void **state)
{
    static struct run_reader reader;
    (void)state;
    open_folder(&reader);
    write_file("job.json", "w", JOB);
    add_line(0, 2, 1.5, "\n");
    assert_true(update(&reader));
    assert_float_equal(reader.state.loss, 1.5, 1e-9);
    close_folder(&reader);
}

static void a_rank_that_is_left_out_has_no_part_in_the_loss(void **state)
{
    static struct run_reader reader;
    (void)state;
    open_folder(&reader);
    write_file("job.json", "w", JOB);
    add_line(0, 2, 1.5, "\n");
    write_file("metrics.jsonl", "a",
               "{\"rank\": 1, \"step\": 2, \"steps\": 2, \"epoch\": 1, \"seconds\": 1.5, "
               "\"lr\": 0.1, \"loss\": null, \"images_per_second\": 0.0}\n");
    assert_true(update(&reader));
    assert_int_equal(reader.state.step, 2);
    assert_float_equal(reader.state.loss, 1.5, 1e-9);
    close_folder(&reader);
}

static void a_damaged_description_of_a_job_is_no_failure_of_the_job(void **state)
{
    static struct run_reader reader;
    bool is_new;
    (void)state;
    open_folder(&reader);
    write_file("job.json", "w", "{\"options\": {");
    write_file("summary.json", "w", "{\"outcome\": \"completed\", \"reason\": \"\"}");
    captured_log_begin();
    enum status status = run_reader_update(&reader, &is_new);
    const char *log = captured_log_end();
    assert_int_equal(status, STATUS_MALFORMED);
    assert_non_null(strstr(log, "job.json is damaged"));
    assert_null(strstr(log, "failed"));
    close_folder(&reader);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_are_taken_once_they_are_whole),
        cmocka_unit_test(an_optimizer_of_a_program_is_called_as_in_its_log),
        cmocka_unit_test(of_an_open_job_there_is_no_total),
        cmocka_unit_test(a_job_that_goes_on_earlier_is_read_anew),
        cmocka_unit_test(a_job_of_another_size_is_not_taken_for_the_same),
        cmocka_unit_test(the_summary_ends_it_with_evaluations_and_a_reason),
        cmocka_unit_test(lines_that_are_none_are_left_out),
        cmocka_unit_test(a_job_that_never_trained_says_why),
        cmocka_unit_test(the_loss_is_that_of_the_ranks_that_have_one),
        cmocka_unit_test(a_rank_that_is_left_out_has_no_part_in_the_loss),
        cmocka_unit_test(a_damaged_description_of_a_job_is_no_failure_of_the_job),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
