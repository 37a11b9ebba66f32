/* End to end: `ringside` starts real jobs, and says what is wrong with those it cannot start. */
#include "tests/support/programs/programs.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MEMBERS_MAX 16

// A record of CIFAR-10: a label, and 32 x 32 pixels in three colours.
#define RECORD_BYTES 3073

/* ringside ARGUMENTS --out OUT; `command` comes first. */
static void start(struct command_test *test, const char *command, const char *const *arguments)
{
    const char *args[PROGRAM_ARGS_MAX] = {command};
    size_t count = 1;
    for (size_t i = 0; arguments[i] != NULL; i++) {
        args[count++] = arguments[i];
    }
    args[count++] = "--out";
    args[count++] = test->out;
    args[count] = NULL;
    program_start(&test->run, test->folder, "deploy/ringside", false, args, NULL);
}

static void check_said(const struct command_test *test, const char *text)
{
    if (strstr(program_output(&test->run), text) == NULL) {
        fail_msg("'%s' is not in: %s", text, program_output(&test->run));
    }
}

static void check_exit(struct command_test *test, int expected)
{
    int code = program_wait(&test->run);
    if (code != expected) {
        fail_msg("exit code %d, not %d: %s", code, expected, program_output(&test->run));
    }
}

static void check_is_there(const char *folder, const char *name)
{
    char path[2 * PROGRAM_PATH_BYTES];
    struct stat info;
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    if (stat(path, &info) != 0 || info.st_size == 0) {
        fail_msg("%s is missing or empty", path);
    }
}

static size_t count_entries(const char *folder)
{
    size_t count = 0;
    DIR *stream = opendir(folder);
    assert_non_null(stream);
    for (const struct dirent *entry; (entry = readdir(stream)) != NULL;) {
        count += entry->d_name[0] != '.';
    }
    closedir(stream);
    return count;
}

static void write_file(const char *folder, const char *name, const void *bytes, size_t size)
{
    char path[2 * PROGRAM_PATH_BYTES];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    FILE *file = fopen(path, "we");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

/* Reads FOLDER/NAME. Cut at size. */
static void read_text(const char *folder, const char *name, char *ret_text, size_t size)
{
    char path[2 * PROGRAM_PATH_BYTES];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    FILE *file = fopen(path, "re");
    assert_non_null(file);
    ret_text[fread(ret_text, 1, size - 1, file)] = '\0';
    fclose(file);
}

/* ==========================================================================================
 * Jobs that succeed
 * ========================================================================================== */

static void check_keys(const json_t *tree, const char *const *keys, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (json_object_get(tree, keys[i]) == NULL) {
            fail_msg("there is no key %s", keys[i]);
        }
    }
    assert_int_equal(json_object_size(tree), count);
}

#define CHECK_KEYS(tree, ...)                                   \
    do {                                                        \
        static const char *const keys[] = {__VA_ARGS__};        \
        check_keys(tree, keys, sizeof(keys) / sizeof(keys[0])); \
    } while (0)

/* Every key of the contract with scripts, and no other. */
static void check_contract(const json_t *summary)
{
    CHECK_KEYS(summary, "version", "mode", "workers", "servers", "model", "parameters", "dataset",
               "device", "transport", "seed", "batch_per_worker", "global_batch", "optimizer", "lr",
               "lr_effective", "steps", "seconds", "images_per_second", "epochs", "best_accuracy",
               "best_epoch", "ms_per_step", "bytes_per_step", "staleness", "params_digest",
               "bits_of", "workers_lost", "restarts", "outcome", "reason");
    CHECK_KEYS(json_object_get(summary, "ms_per_step"), "compute", "exchange_wait", "input_wait",
               "total");
    CHECK_KEYS(json_object_get(summary, "bytes_per_step"), "worker_sent", "worker_received",
               "server_sent", "server_received");
    CHECK_KEYS(json_object_get(summary, "staleness"), "mean", "max", "histogram");
    const json_t *epochs = json_object_get(summary, "epochs"), *epoch;
    size_t index;
    assert_true(json_is_array(epochs));
    json_array_foreach(epochs, index, epoch)
    {
        CHECK_KEYS(epoch, "epoch", "train_loss", "test_loss", "test_accuracy", "test_images",
                   "seconds", "images_per_second");
    }
}

static void a_run_leaves_a_whole_folder(void **state)
{
    struct command_test *test = *state;
    static const char *const arguments[] = {
        "-n",           "4",  "--steps", "1",   "--model", "lenet5",
        "--limit-test", "50", "--eval",  "end", NULL};
    start(test, "run", arguments);
    check_exit(test, 0);
    check_said(test, test->out);
    check_is_there(test->out, "metrics.jsonl");
    json_t *summary = programs_read_json(test->out, "summary.json");
    check_contract(summary);
    check_is_there(test->out, "details.json");
    assert_int_equal(json_array_size(json_object_get(summary, "epochs")), 1);
    assert_string_equal(json_string_value(json_object_get(summary, "outcome")), "completed");
    assert_int_equal(json_integer_value(json_object_get(summary, "steps")), 1);
    assert_int_equal(json_integer_value(json_object_get(summary, "workers")), 4);
    json_decref(summary);
    json_t *job = programs_read_json(test->out, "job.json");
    const json_t *options = json_object_get(job, "options");
    assert_string_equal(json_string_value(json_object_get(options, "model")), "lenet5");
    assert_int_equal(json_array_size(json_object_get(job, "members")), 5);
    json_decref(job);
    char logs[PROGRAM_PATH_BYTES + 32], metrics[4096];
    snprintf(logs, sizeof(logs), "%s/logs", test->out);
    assert_int_equal(count_entries(logs), 5); // ps-0 and four workers
    read_text(test->out, "metrics.jsonl", metrics, sizeof(metrics));
    json_t *line = json_loads(metrics, JSON_DISABLE_EOF_CHECK, NULL);
    CHECK_KEYS(line, "rank", "step", "steps", "epoch", "seconds", "lr", "loss", "images_per_second",
               "images_dropped", "ms", "bytes_sent", "bytes_received", "staleness");
    CHECK_KEYS(json_object_get(line, "ms"), "compute", "exchange_wait", "input_wait", "total",
               "copy", "wire");
    json_decref(line);
}

static void a_run_into_an_empty_folder_is_fine(void **state)
{
    struct command_test *test = *state;
    static const char *const arguments[] = {
        "-n", "1", "--steps", "1", "--model", "lenet5", "--limit-test", "50", NULL};
    assert_int_equal(mkdir(test->out, 0700), 0);
    start(test, "run", arguments);
    check_exit(test, 0);
    check_said(test, "completed: 1 step, ");
    check_is_there(test->out, "summary.json");
}

/* The page draws its figures, or has the plots that were drawn, and loads nothing. */
static void check_page(const char *folder)
{
    static char page[1 << 20];
    char path[2 * PROGRAM_PATH_BYTES];
    read_text(folder, "report.html", page, sizeof(page));
    assert_non_null(strstr(page, "</html>"));
    snprintf(path, sizeof(path), "%s/images.svg", folder);
    bool has_charts = strstr(page, "id=\"figures\"") != NULL;
    bool has_image = strstr(page, "src=\"data:image/svg+xml") != NULL;
    assert_true(has_charts || has_image == (access(path, F_OK) == 0)); // gnuplot may lack
    assert_non_null(strstr(page, "default-src 'none'"));
    assert_non_null(strstr(page, "ring and ps-sync end with the same bits"));
    assert_null(strstr(page, "<link"));
}

static void a_comparison_writes_tables_and_a_page(void **state)
{
    struct command_test *test = *state;
    static const char *const arguments[] = {
        "--modes", "local,ps-sync,ring", "-n", "2",         "--model", "lenet5", "--steps",
        "4",       "--global-batch",     "16", "--threads", "1",       "--eval", "none",
        NULL};
    start(test, "compare", arguments);
    check_exit(test, 0);
    check_said(test, "same bits: 2 runs with N = 2");
    static const char *const files[] = {"table.csv",
                                        "table.md",
                                        "report.html",
                                        "01-local-n1/summary.json",
                                        "02-ps-sync-n2-s1/summary.json",
                                        "03-ring-n2/summary.json"};
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        check_is_there(test->out, files[i]);
    }
    check_page(test->out);
    char text[16384];
    read_text(test->out, "table.md", text, sizeof(text));
    assert_non_null(strstr(text, "same bits: 2 runs with N = 2"));
    assert_null(strstr(text, "different bits"));
    read_text(test->out, "table.csv", text, sizeof(text));
    assert_non_null(strstr(text, "\n0.1.0,local,1,0,lenet5,"));
    assert_non_null(strstr(text, "\n0.1.0,ps-sync,2,1,lenet5,"));
    assert_non_null(strstr(text, "\n0.1.0,ring,2,0,lenet5,"));
}

/* ==========================================================================================
 * Jobs that are refused
 * ========================================================================================== */

/* A run on data that are no good: it must name `text` and write nothing. */
static void check_bad_data(struct command_test *test, const char *data, const char *text)
{
    const char *const arguments[] = {"-n",     "1",      "--steps", "1", "--model",
                                     "lenet5", "--data", data,      NULL};
    start(test, "run", arguments);
    check_exit(test, 1);
    check_said(test, text);
    assert_int_not_equal(access(test->out, F_OK), 0);
    start(test, "compare", arguments);
    check_exit(test, 1);
    check_said(test, text);
    assert_int_not_equal(access(test->out, F_OK), 0);
}

/* A folder with all files of CIFAR-10, one record each; `bad` gets other bytes. */
static void write_cifar10(const char *folder, const char *bad, const void *bytes, size_t size)
{
    static const char *const names[] = {"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin",
                                        "data_batch_4.bin", "data_batch_5.bin", "test_batch.bin"};
    static const unsigned char record[RECORD_BYTES];
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        bool is_bad = strcmp(names[i], bad) == 0;
        write_file(folder, names[i], is_bad ? bytes : record, is_bad ? size : sizeof(record));
    }
}

static void a_missing_folder_of_data_is_named(void **state)
{
    struct command_test *test = *state;
    char data[PROGRAM_PATH_BYTES + 32];
    snprintf(data, sizeof(data), "cifar10:%s/missing", test->folder);
    check_bad_data(test, data, "/missing/data_batch_1.bin");
}

static void a_truncated_file_of_cifar10_is_named(void **state)
{
    struct command_test *test = *state;
    static const unsigned char records[2 * RECORD_BYTES];
    char data[PROGRAM_PATH_BYTES + 32];
    snprintf(data, sizeof(data), "cifar10:%s", test->folder);
    write_cifar10(test->folder, "data_batch_3.bin", records, sizeof(records) - 1);
    check_bad_data(test, data, "/data_batch_3.bin is not a CIFAR-10 file");
    write_cifar10(test->folder, "test_batch.bin", records, 0);
    check_bad_data(test, data, "/test_batch.bin is not a CIFAR-10 file");
}

static void a_label_out_of_range_is_named_with_its_file(void **state)
{
    struct command_test *test = *state;
    static unsigned char records[2 * RECORD_BYTES];
    char data[PROGRAM_PATH_BYTES + 32];
    records[RECORD_BYTES] = 10;
    snprintf(data, sizeof(data), "cifar10:%s", test->folder);
    write_cifar10(test->folder, "data_batch_5.bin", records, sizeof(records));
    check_bad_data(test, data, "/data_batch_5.bin is not a CIFAR-10 file");
    check_said(test, "10");
}

static void a_corrupt_gzip_file_is_named(void **state)
{
    struct command_test *test = *state;
    static const unsigned char packed[] = {0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 0xde, 0xad, 0xbe};
    static const char *const names[] = {"train-images-idx3-ubyte.gz", "train-labels-idx1-ubyte.gz",
                                        "t10k-images-idx3-ubyte.gz", "t10k-labels-idx1-ubyte.gz"};
    char data[PROGRAM_PATH_BYTES + 32];
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        write_file(test->folder, names[i], packed, sizeof(packed));
    }
    snprintf(data, sizeof(data), "mnist:%s", test->folder);
    check_bad_data(test, data, "ubyte.gz");
}

static void unknown_names_are_refused_with_the_nearest(void **state)
{
    struct command_test *test = *state;
    static const char *const cases[][4] = {
        {"run", "--model", "lenet", "did you mean lenet5?"},
        {"run", "--mode", "rnig", "did you mean ring?"},
        {"run", "--data", "shpaes", "did you mean shapes?"},
        {"run", "--wrokers", "2", "did you mean --workers?"},
        {"compare", "--modes", "local,rnig", "did you mean ring?"},
        {"compare", "--model", "lenet", "did you mean lenet5?"},
        {"compare", "--mode", "ring", "compare takes its modes from --modes: --modes ring"},
        {"rnu", "-n", "2", "did you mean run?"},
        {"comapre", "-n", "2", "did you mean compare?"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const char *const arguments[] = {cases[i][1], cases[i][2], NULL};
        start(test, cases[i][0], arguments);
        check_exit(test, 2);
        check_said(test, cases[i][3]);
        assert_int_not_equal(access(test->out, F_OK), 0);
    }
}

static void a_check_refuses_what_a_run_would(void **state)
{
    struct command_test *test = *state;
    const char *const contradiction[] = {"check", "--mode", "ring", "--servers", "2", NULL};
    const char *const no_device[] = {"check", "--device", "cuda:999", NULL};
    program_start(&test->run, test->folder, "deploy/ringside", false, contradiction, NULL);
    check_exit(test, 2);
    check_said(test, "--servers would do nothing here");
    program_start(&test->run, test->folder, "deploy/ringside", false, no_device, NULL);
    check_exit(test, 1);
    check_said(test, "something that is needed is missing");
}

static void a_folder_with_something_in_it_is_refused_and_untouched(void **state)
{
    struct command_test *test = *state;
    static const char *const commands[] = {"run", "compare"};
    static const char *const arguments[] = {"-n", "1", "--steps", "1", "--model", "lenet5", NULL};
    assert_int_equal(mkdir(test->out, 0700), 0);
    write_file(test->out, "mine", "precious", 8);
    for (size_t i = 0; i < 2; i++) {
        char text[16];
        start(test, commands[i], arguments);
        check_exit(test, 1);
        check_said(test, test->out);
        check_said(test, "--out");
        assert_int_equal(count_entries(test->out), 1);
        read_text(test->out, "mine", text, sizeof(text));
        assert_string_equal(text, "precious");
    }
}

/* ==========================================================================================
 * Jobs that end early
 * ========================================================================================== */

/* Starts a job that would take hours, and waits until it trains. ret_pids: of the members. */
static size_t start_long_job(struct command_test *test, const char *mode, pid_t *ret_pids,
                             pid_t *ret_second_worker)
{
    const char *const arguments[] = {"--mode",
                                     mode,
                                     "-n",
                                     "2",
                                     "--steps",
                                     "1000000",
                                     "--model",
                                     "lenet5",
                                     "--global-batch",
                                     "8",
                                     "--threads",
                                     "1",
                                     "--report-every",
                                     "1",
                                     "--limit-test",
                                     "50",
                                     "--on-loss",
                                     "fail",
                                     NULL};
    assert_int_equal(mkdir(test->out, 0700), 0); // to watch it
    start(test, "run", arguments);
    // The first line of metrics says that training is under way.
    programs_wait_for_file(test->out, "metrics.jsonl");
    programs_wait_for_file(test->out, "job.json");
    json_t *job = programs_read_json(test->out, "job.json");
    const json_t *members = json_object_get(job, "members"), *member;
    size_t index, count = json_array_size(members);
    assert_in_range(count, 2, MEMBERS_MAX);
    json_array_foreach(members, index, member)
    {
        ret_pids[index] = (pid_t)json_integer_value(json_object_get(member, "pid"));
        assert_true(ret_pids[index] > 1);
        assert_int_equal(kill(ret_pids[index], 0), 0);
        if (strcmp(json_string_value(json_object_get(member, "role")), "worker") == 0 &&
            json_integer_value(json_object_get(member, "index")) == 1) {
            *ret_second_worker = ret_pids[index];
        }
    }
    json_decref(job);
    return count;
}

static void check_are_gone(const pid_t *pids, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(kill(pids[i], 0), -1);
        assert_int_equal(errno, ESRCH);
    }
}

/* summary.json says that the job failed, with `text` in the reason. */
static void check_failed_summary(const struct command_test *test, const char *text)
{
    json_t *summary = programs_read_json(test->out, "summary.json");
    const char *reason = json_string_value(json_object_get(summary, "reason"));
    assert_string_equal(json_string_value(json_object_get(summary, "outcome")), "failed");
    assert_true(json_is_null(json_object_get(summary, "params_digest")));
    if (reason == NULL || strstr(reason, text) == NULL) {
        fail_msg("'%s' is not in the reason '%s'", text, reason != NULL ? reason : "");
    }
    json_decref(summary);
}

static void an_interrupt_ends_the_job_with_a_summary_and_leaves_nobody(void **state)
{
    struct command_test *test = *state;
    static const int signals[] = {SIGINT, SIGTERM};
    static const char *const modes[] = {"ring", "ps-sync"};
    for (size_t i = 0; i < 2; i++) {
        pid_t pids[MEMBERS_MAX], second = 0;
        snprintf(test->out, sizeof(test->out), "%s/out-%zu", test->folder, i);
        size_t count = start_long_job(test, modes[i], pids, &second);
        program_kill(&test->run, signals[i]);
        check_exit(test, 130);
        check_are_gone(pids, count);
        check_failed_summary(test, "interrupted");
    }
}

static void a_worker_that_is_killed_fails_the_job_by_name(void **state)
{
    struct command_test *test = *state;
    static const char *const modes[] = {"ring", "ps-sync"};
    for (size_t i = 0; i < 2; i++) {
        pid_t pids[MEMBERS_MAX], second = 0;
        snprintf(test->out, sizeof(test->out), "%s/out-%zu", test->folder, i);
        size_t count = start_long_job(test, modes[i], pids, &second);
        assert_true(second > 1);
        assert_int_equal(kill(second, SIGKILL), 0);
        check_exit(test, 1);
        check_said(test, "worker 1");
        check_are_gone(pids, count);
        check_failed_summary(test, "worker 1");
        json_t *summary = programs_read_json(test->out, "summary.json");
        check_contract(summary);
        assert_int_equal(json_integer_value(json_object_get(summary, "workers_lost")), 1);
        json_decref(summary);
    }
}

#define COMMAND_TEST(function) \
    cmocka_unit_test_setup_teardown(function, command_test_set_up, command_test_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        COMMAND_TEST(a_run_leaves_a_whole_folder),
        COMMAND_TEST(a_run_into_an_empty_folder_is_fine),
        COMMAND_TEST(a_comparison_writes_tables_and_a_page),
        COMMAND_TEST(a_missing_folder_of_data_is_named),
        COMMAND_TEST(a_truncated_file_of_cifar10_is_named),
        COMMAND_TEST(a_label_out_of_range_is_named_with_its_file),
        COMMAND_TEST(a_corrupt_gzip_file_is_named),
        COMMAND_TEST(unknown_names_are_refused_with_the_nearest),
        COMMAND_TEST(a_check_refuses_what_a_run_would),
        COMMAND_TEST(a_folder_with_something_in_it_is_refused_and_untouched),
        COMMAND_TEST(an_interrupt_ends_the_job_with_a_summary_and_leaves_nobody),
        COMMAND_TEST(a_worker_that_is_killed_fails_the_job_by_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
