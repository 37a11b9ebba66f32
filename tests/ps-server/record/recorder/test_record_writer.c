/* Tests of a run folder that cannot be written to for a time, or is moved. */
#include "ps-server/record/recorder/record_writer.h"
#include "tests/support/common/captured_log.h"
#include "tests/support/common/file_limit.h"
#include "tests/support/common/temp_folder.h"
#include "tests/support/ps-server/coordinator_story.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <jansson.h>

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PAD_BYTES 16384

static bool is_short;     // of memory
static bool closes_badly; // what is closed reports an error, as on a server of files

// NOLINTBEGIN(readability-identifier-naming): the linker's names.
void *__real_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size);
int __real_close(int fd);
int __wrap_close(int fd);
// NOLINTEND(readability-identifier-naming)

void *__wrap_calloc(size_t count, size_t size)
{
    if (is_short) {
        errno = ENOMEM;
        return NULL;
    }
    return __real_calloc(count, size);
}

int __wrap_close(int fd)
{
    int result = __real_close(fd);
    if (closes_badly) {
        errno = EIO;
        result = -1;
    }
    return result;
}

/* A ring of two that trains, and its run folder. */
struct record {
    char *top, folder[512], aside[512];
    struct story story;
    struct record_writer *writer;
};

static void open_record(struct record *record)
{
    record->top = temp_folder_create();
    snprintf(record->folder, sizeof(record->folder), "%.400s/run", record->top);
    snprintf(record->aside, sizeof(record->aside), "%.400s/aside", record->top);
    story_open_training(&record->story, 2);
    record->story.job.report_every = 1;
    const struct recorder_options options = {.folder = record->folder, .job = &record->story.job};
    assert_int_equal(record_writer_create(&options, &record->writer), STATUS_OK);
    const struct record_job begun = {.workers = 2, .report_every = 1, .total_steps = 1000};
    assert_int_equal(record_writer_write_job(record->writer, &begun), STATUS_OK);
}

static void close_record(struct record *record)
{
    record_writer_destroy(record->writer);
    coordinator_finish(&record->story.coordinator);
    temp_folder_destroy(record->top);
}

static enum status report(struct record *record, uint64_t step)
{
    const struct record_report told = {
        .step = step, .report = {.steps = 1, .images = 8, .loss_sum = 8}, .seconds = 0.1};
    return record_writer_add_metrics(record->writer, &told);
}

static enum status write_details(struct record *record)
{
    json_t *details = json_object();
    enum status status = record_writer_write_details(record->writer, details);
    json_decref(details);
    return status;
}

static unsigned count(const char *text, const char *words)
{
    unsigned found = 0;
    for (; (text = strstr(text, words)) != NULL; text++) {
        found++;
    }
    return found;
}

/* The steps that lines of a folder have together; *ret_lines: how many lines there are. */
static json_int_t steps_in(const char *folder, unsigned *ret_lines)
{
    static char line[PAD_BYTES + 4096];
    char path[600];
    json_int_t steps = 0;
    snprintf(path, sizeof(path), "%s/metrics.jsonl", folder);
    FILE *file = fopen(path, "re");
    assert_non_null(file);
    *ret_lines = 0;
    while (fgets(line, sizeof(line), file) != NULL) {
        json_t *tree = json_loads(line, 0, NULL);
        assert_non_null(tree);
        steps += json_integer_value(json_object_get(tree, "steps"));
        json_decref(tree);
        ++*ret_lines;
    }
    fclose(file);
    return steps;
}

/* Makes metrics.jsonl longer than the log of a test will be. */
static void pad(const char *folder)
{
    char path[600];
    snprintf(path, sizeof(path), "%s/metrics.jsonl", folder);
    FILE *file = fopen(path, "ae");
    assert_non_null(file);
    fprintf(file, "{\"pad\": \"%0*d\"}\n", PAD_BYTES, 0);
    assert_int_equal(fclose(file), 0);
}

static void lines_that_a_full_disk_does_not_take_wait_for_room(void **state)
{
    (void)state;
    struct record record;
    unsigned lines;
    open_record(&record);
    assert_int_equal(report(&record, 1), STATUS_OK);
    pad(record.folder);
    captured_log_begin();
    file_limit_begin(PAD_BYTES / 2); // a full disk, for that file
    enum status first = report(&record, 2), second = report(&record, 3);
    file_limit_end();
    unsigned said = count(captured_log_end(), "training goes on");
    assert_int_equal(first, STATUS_OK);
    assert_int_equal(second, STATUS_OK);
    assert_int_equal(said, 1);
    assert_int_equal(steps_in(record.folder, &lines), 1);
    assert_int_equal(report(&record, 4), STATUS_OK);
    assert_int_equal(steps_in(record.folder, &lines), 4);
    assert_int_equal(lines, 3);
    assert_int_equal(record_writer_close_metrics(record.writer), STATUS_OK);
    assert_string_equal(record_writer_error(record.writer), "");
    close_record(&record);
}

static void lines_that_are_missing_at_the_end_fail_the_job(void **state)
{
    (void)state;
    struct record record;
    open_record(&record);
    captured_log_begin();
    file_limit_begin(1);
    enum status told = report(&record, 1);
    enum status closed = record_writer_close_metrics(record.writer);
    file_limit_end();
    captured_log_end();
    assert_int_equal(told, STATUS_OK);
    assert_int_equal(closed, STATUS_IO);
    assert_non_null(strstr(record_writer_error(record.writer), "metrics.jsonl: File too large"));
    close_record(&record);
}

static void a_folder_that_is_moved_is_said_once_and_fails_the_job_at_its_end(void **state)
{
    (void)state;
    struct record record;
    unsigned lines;
    open_record(&record);
    assert_int_equal(report(&record, 1), STATUS_OK);
    assert_int_equal(rename(record.folder, record.aside), 0);
    captured_log_begin();
    enum status first = report(&record, 2), second = report(&record, 3);
    const char *log = captured_log_end();
    assert_int_equal(first, STATUS_OK);
    assert_int_equal(second, STATUS_OK);
    assert_int_equal(count(log, "somebody has moved or removed the run folder"), 1);
    assert_int_equal(steps_in(record.aside, &lines), 3); // where it is now
    // A loss ends the job as little.
    assert_int_equal(record_writer_go_on(record.writer, record.folder, 2), STATUS_OK);
    captured_log_begin();
    enum status details = write_details(&record);
    captured_log_end();
    assert_int_equal(details, STATUS_IO);
    assert_non_null(strstr(record_writer_error(record.writer), "moved or removed the run folder"));
    close_record(&record);
}

static void one_that_is_back_is_well_again(void **state)
{
    (void)state;
    struct record record;
    unsigned lines;
    open_record(&record);
    assert_int_equal(rename(record.folder, record.aside), 0);
    captured_log_begin();
    enum status told = report(&record, 1);
    captured_log_end();
    assert_int_equal(told, STATUS_OK);
    assert_int_equal(rename(record.aside, record.folder), 0);
    assert_int_equal(report(&record, 2), STATUS_OK);
    assert_int_equal(steps_in(record.folder, &lines), 2);
    assert_int_equal(record_writer_close_metrics(record.writer), STATUS_OK);
    assert_int_equal(write_details(&record), STATUS_OK);
    close_record(&record);
}

static void write_file(const char *folder, const char *name, const char *text)
{
    char path[600];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    FILE *file = fopen(path, "we");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static void assert_file(const char *folder, const char *name, const char *expected)
{
    char path[600], text[256] = "";
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    FILE *file = fopen(path, "re");
    assert_non_null(file);
    text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
    fclose(file);
    assert_string_equal(text, expected);
}

#define THEIRS "theirs\n"

static void a_folder_that_has_taken_its_place_stays_as_it_is(void **state)
{
    (void)state;
    struct record record;
    open_record(&record);
    assert_int_equal(rename(record.folder, record.aside), 0);
    assert_int_equal(mkdir(record.folder, 0700), 0);
    write_file(record.folder, "metrics.jsonl", THEIRS);
    write_file(record.folder, "details.json", THEIRS);
    write_file(record.folder, "restarts.jsonl", THEIRS);
    const struct history_entry entry = {.begin_step = 1, .restarts = 1};
    captured_log_begin();
    enum status told = report(&record, 1), details = write_details(&record);
    record_writer_note_restart(record.writer, &entry);
    captured_log_end();
    assert_int_equal(told, STATUS_OK);
    assert_int_equal(details, STATUS_IO);
    assert_file(record.folder, "metrics.jsonl", THEIRS);
    assert_file(record.folder, "details.json", THEIRS);
    assert_file(record.folder, "restarts.jsonl", THEIRS);
    close_record(&record);
}

static void lines_that_somebody_removes_begin_anew_and_it_is_said_once(void **state)
{
    (void)state;
    struct record record;
    unsigned lines;
    char path[600];
    open_record(&record);
    snprintf(path, sizeof(path), "%s/metrics.jsonl", record.folder);
    assert_int_equal(report(&record, 1), STATUS_OK);
    assert_int_equal(unlink(path), 0);
    captured_log_begin();
    enum status first = report(&record, 2), second = report(&record, 3);
    unsigned said = count(captured_log_end(), "somebody has moved or removed");
    assert_true(first == STATUS_OK && second == STATUS_OK);
    assert_int_equal(said, 1);
    assert_int_equal(steps_in(record.folder, &lines), 2);
    assert_int_equal(unlink(path), 0);
    write_file(record.folder, "metrics.jsonl", THEIRS);
    captured_log_begin();
    first = report(&record, 4);
    enum status closed = record_writer_close_metrics(record.writer);
    captured_log_end();
    assert_int_equal(first, STATUS_OK);
    assert_int_equal(closed, STATUS_IO);
    assert_file(record.folder, "metrics.jsonl", THEIRS);
    close_record(&record);
}

static enum status create_again(const struct record *record, const char *job, bool goes_on)
{
    struct record_writer *writer = NULL;
    const struct recorder_options options = {
        .folder = record->folder, .job = &record->story.job, .goes_on = goes_on};
    write_file(record->folder, "job.json", job);
    captured_log_begin();
    enum status status = record_writer_create(&options, &writer);
    captured_log_end();
    record_writer_destroy(writer);
    return status;
}

static void the_run_of_another_job_is_refused(void **state)
{
    (void)state;
    struct record record;
    char own[256];
    open_record(&record);
    write_file(record.folder, "metrics.jsonl", THEIRS);
    snprintf(own, sizeof(own), "{\"options\": {\"seed\": %llu, \"keep\": 77}}",
             (unsigned long long)record.story.job.seed);
    assert_int_equal(create_again(&record, own, true), STATUS_OK);
    assert_int_equal(create_again(&record, own, false), STATUS_INVALID); // as any other run
    snprintf(own, sizeof(own), "{\"options\": {\"seed\": %llu}}",
             (unsigned long long)record.story.job.seed + 1);
    assert_int_equal(create_again(&record, own, true), STATUS_INVALID);
    assert_file(record.folder, "metrics.jsonl", THEIRS);
    assert_file(record.folder, "job.json", own);
    close_record(&record);
}

static void what_there_is_no_memory_for_is_named(void **state)
{
    (void)state;
    for (int goes_on = 0; goes_on < 2; goes_on++) {
        const struct record_job begun = {.workers = 2, .report_every = 1, .total_steps = 1000};
        struct record record;
        open_record(&record);
        if (goes_on == 0) { // as if it had not begun
            record_writer_destroy(record.writer);
            const struct recorder_options options = {
                .folder = record.folder, .job = &record.story.job, .goes_on = true};
            assert_int_equal(record_writer_create(&options, &record.writer), STATUS_OK);
        }
        captured_log_begin();
        is_short = true;
        enum status status = goes_on == 1 ? record_writer_go_on(record.writer, record.folder, 1)
                                          : record_writer_write_job(record.writer, &begun);
        is_short = false;
        (void)captured_log_end();
        assert_int_not_equal(status, STATUS_OK);
        assert_non_null(strstr(record_writer_error(record.writer), "metrics.jsonl"));
        assert_non_null(strstr(record_writer_error(record.writer), "Cannot allocate memory"));
        close_record(&record);
    }
}

/* Also where something else is the matter, too: that might be well again by the time of the line.
 */
static void no_memory_is_not_taken_for_another_trouble(void **state)
{
    (void)state;
    struct record record;
    open_record(&record);
    assert_int_equal(report(&record, 1), STATUS_OK); // which opens the file
    captured_log_begin();
    is_short = closes_badly = true;
    enum status status = record_writer_go_on(record.writer, record.folder, 1);
    is_short = closes_badly = false;
    (void)captured_log_end();
    assert_int_not_equal(status, STATUS_OK);
    assert_non_null(strstr(record_writer_error(record.writer), "Cannot allocate memory"));
    close_record(&record);

    const struct record_job begun = {.workers = 2, .report_every = 1, .total_steps = 1000};
    open_record(&record);
    record_writer_destroy(record.writer); // as if it had not begun
    const struct recorder_options options = {
        .folder = record.folder, .job = &record.story.job, .goes_on = true};
    assert_int_equal(record_writer_create(&options, &record.writer), STATUS_OK);
    assert_int_equal(rename(record.folder, record.aside), 0);
    captured_log_begin();
    is_short = true;
    status = record_writer_write_job(record.writer, &begun);
    is_short = false;
    (void)captured_log_end();
    assert_int_not_equal(status, STATUS_OK);
    assert_non_null(strstr(record_writer_error(record.writer), "Cannot allocate memory"));
    close_record(&record);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_that_a_full_disk_does_not_take_wait_for_room),
        cmocka_unit_test(lines_that_are_missing_at_the_end_fail_the_job),
        cmocka_unit_test(a_folder_that_is_moved_is_said_once_and_fails_the_job_at_its_end),
        cmocka_unit_test(one_that_is_back_is_well_again),
        cmocka_unit_test(a_folder_that_has_taken_its_place_stays_as_it_is),
        cmocka_unit_test(lines_that_somebody_removes_begin_anew_and_it_is_said_once),
        cmocka_unit_test(the_run_of_another_job_is_refused),
        cmocka_unit_test(what_there_is_no_memory_for_is_named),
        cmocka_unit_test(no_memory_is_not_taken_for_another_trouble),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
