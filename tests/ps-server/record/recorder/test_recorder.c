/* Tests of a run folder whose disk hangs: the thread that writes to it is held. */
#include "common/thread/task_thread.h"
#include "ps-server/record/recorder/recorder.h"
#include "tests/support/common/captured_log.h"
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
#include <glob.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PATIENCE_MS 600000 // that no test needs
#define WARN_MS     UINT64_C(10000)
#define TURN_MS     100  // between two looks
#define MANY        5000 // reports or evaluations, more than the queue takes
#define LOSSES      1200 // that a job has gone on from, more than there are places at first

static atomic_bool is_short;      // of memory
static atomic_bool has_no_thread; // left

// NOLINTBEGIN(readability-identifier-naming): the linker's names.
void *__real_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size);
int __real_pthread_create(pthread_t *ret_thread, const pthread_attr_t *attributes,
                          void *(*run)(void *data), void *data);
int __wrap_pthread_create(pthread_t *ret_thread, const pthread_attr_t *attributes,
                          void *(*run)(void *data), void *data);
uint32_t __real_task_thread_room(struct task_thread *thread);
uint32_t __wrap_task_thread_room(struct task_thread *thread);
// NOLINTEND(readability-identifier-naming)

void *__wrap_calloc(size_t count, size_t size)
{
    if (is_short) {
        errno = ENOMEM;
        return NULL;
    }
    return __real_calloc(count, size);
}

int __wrap_pthread_create(pthread_t *ret_thread, const pthread_attr_t *attributes,
                          void *(*run)(void *data), void *data)
{
    return has_no_thread ? EAGAIN : __real_pthread_create(ret_thread, attributes, run, data);
}

static sem_t *back; // of a disk that is back just now: what has waited is written meanwhile

uint32_t __wrap_task_thread_room(struct task_thread *thread)
{
    if (back != NULL) {
        sem_post(back);
        back = NULL;
        assert_true(task_thread_await_queued(thread, PATIENCE_MS));
    }
    return __real_task_thread_room(thread);
}

/* A ring of two that trains, and its run folder. */
struct record {
    char *top, folder[512];
    struct story story;
    struct recorder *recorder;
    sem_t begun, go; // of a disk that hangs
};

static void hang(void *data)
{
    struct record *record = data;
    sem_post(&record->begun);
    sem_wait(&record->go);
}

static void open_record(struct record *record, bool has_tensorboard)
{
    record->top = temp_folder_create();
    snprintf(record->folder, sizeof(record->folder), "%.400s/run", record->top);
    sem_init(&record->begun, 0, 0);
    sem_init(&record->go, 0, 0);
    story_open_training(&record->story, 2);
    record->story.job.report_every = 1;
    const struct recorder_options options = {.folder = record->folder,
                                             .job = &record->story.job,
                                             .has_tensorboard = has_tensorboard,
                                             .wait = {.warn_s = 60, .fail_s = 60}};
    assert_int_equal(recorder_create(&options, &record->recorder), STATUS_OK);
    assert_int_equal(recorder_write_job(record->recorder, &record->story.coordinator), STATUS_OK);
    assert_true(recorder_do(record->recorder, hang, record));
    sem_wait(&record->begun);
}

static void close_record(struct record *record)
{
    assert_true(recorder_destroy(record->recorder, PATIENCE_MS));
    coordinator_finish(&record->story.coordinator);
    temp_folder_destroy(record->top);
}

static void report(struct record *record, uint32_t rank, uint64_t step)
{
    const struct wire_report told = {.steps = 1, .images = 8, .loss_sum = 8};
    const struct message message = {.kind = MESSAGE_REPORT, .step = step, .report = &told};
    assert_int_equal(
        recorder_add_metrics(record->recorder, &record->story.coordinator, rank, &message, 100),
        STATUS_OK);
}

/* The disk is back: writes what has waited. */
static void settle(struct record *record)
{
    sem_post(&record->go);
    assert_int_equal(recorder_settle(record->recorder, PATIENCE_MS), STATUS_OK);
    assert_int_equal(recorder_close_metrics(record->recorder), STATUS_OK);
    assert_int_equal(recorder_settle(record->recorder, PATIENCE_MS), STATUS_OK);
    assert_string_equal(recorder_error(record->recorder), "");
}

/* Lines of the folder; each rank's are in order, and have each of its steps once. */
static unsigned read_lines(const struct record *record, const json_int_t steps[2])
{
    char path[600], line[4096];
    unsigned lines = 0;
    json_int_t seen[2] = {0, 0};
    snprintf(path, sizeof(path), "%s/metrics.jsonl", record->folder);
    FILE *file = fopen(path, "re");
    assert_non_null(file);
    while (fgets(line, sizeof(line), file) != NULL) {
        json_t *tree = json_loads(line, 0, NULL);
        json_int_t *of = &seen[json_integer_value(json_object_get(tree, "rank"))];
        *of += json_integer_value(json_object_get(tree, "steps"));
        assert_int_equal(json_integer_value(json_object_get(tree, "step")), *of);
        json_decref(tree);
        lines++;
    }
    fclose(file);
    assert_int_equal(seen[0], steps[0]);
    assert_int_equal(seen[1], steps[1]);
    return lines;
}

static void what_is_reported_meanwhile_is_written_once_it_is_back(void **state)
{
    (void)state;
    struct record record;
    open_record(&record, false);
    for (uint64_t step = 1; step <= 3; step++) {
        report(&record, 0, step);
        report(&record, 1, step);
    }
    settle(&record);
    assert_int_equal(read_lines(&record, (json_int_t[]){3, 3}), 6);
    close_record(&record);
}

/* As with --backup, where what has become of a gradient is known behind its step. */
static void what_is_told_without_a_step_is_in_the_lines_too(void **state)
{
    (void)state;
    static const struct wire_report told[] = {{.steps = 1, .images = 8, .loss_sum = 8},
                                              {.images_dropped = 4},
                                              {.images_dropped = 4},
                                              {.steps = 1, .images = 8, .loss_sum = 8}};
    static const uint64_t steps[] = {1, 1, 1, 2};
    for (int waits = 0; waits < 2; waits++) {
        struct record record;
        char path[600], line[4096];
        double dropped = 0;
        open_record(&record, false);
        for (uint64_t step = 1; waits == 1 && step <= MANY; step++) {
            report(&record, 1, step); // the queue has no place for what follows
        }
        for (size_t i = 0; i < 4; i++) {
            const struct message message = {
                .kind = MESSAGE_REPORT, .step = steps[i], .report = &told[i]};
            assert_int_equal(
                recorder_add_metrics(record.recorder, &record.story.coordinator, 0, &message, 100),
                STATUS_OK);
        }
        settle(&record);
        snprintf(path, sizeof(path), "%s/metrics.jsonl", record.folder);
        FILE *file = fopen(path, "re");
        assert_non_null(file);
        while (fgets(line, sizeof(line), file) != NULL) {
            json_t *tree = json_loads(line, 0, NULL);
            dropped += json_number_value(json_object_get(tree, "images_dropped"));
            json_decref(tree);
        }
        fclose(file);
        assert_true(dropped == 8);
        close_record(&record);
    }
}

static void more_than_may_wait_comes_in_longer_lines(void **state)
{
    (void)state;
    struct record record;
    open_record(&record, false);
    for (uint64_t step = 1; step <= MANY; step++) {
        report(&record, 0, step);
    }
    report(&record, 1, 1);
    settle(&record);
    assert_in_range(read_lines(&record, (json_int_t[]){MANY, 1}), 2, MANY - 1);
    close_record(&record);
}

/* Of the mean of all ranks, and of evaluations. */
static size_t size_of_events(const struct record *record)
{
    char pattern[600];
    size_t size = 0;
    glob_t found;
    snprintf(pattern, sizeof(pattern), "%s/tensorboard/mean/*", record->folder);
    assert_int_equal(glob(pattern, 0, NULL, &found), 0);
    for (size_t i = 0; i < found.gl_pathc; i++) {
        struct stat facts;
        assert_int_equal(stat(found.gl_pathv[i], &facts), 0);
        size += (size_t)facts.st_size;
    }
    globfree(&found);
    return size;
}

/* How large the events become by so many evaluations, which come while the disk hangs. */
static size_t size_with_evaluations(unsigned count, bool has_tensorboard)
{
    struct record record;
    open_record(&record, has_tensorboard);
    struct coordinator *coordinator = &record.story.coordinator;
    const struct wire_report told = {
        .steps = 1, .images = 8, .test_images = 8, .closes_period = true};
    const struct message message = {.kind = MESSAGE_REPORT, .step = 1, .report = &told};
    assert_int_equal(results_add(&coordinator->results, 0, &message), STATUS_OK);
    for (unsigned i = 0; i < count; i++) {
        assert_int_equal(recorder_add_period(record.recorder, coordinator, 0), STATUS_OK);
    }
    settle(&record);
    size_t size = has_tensorboard ? size_of_events(&record) : 0;
    close_record(&record);
    return size;
}

static void evaluations_that_nobody_asks_for_do_not_wait(void **state)
{
    (void)state;
    (void)size_with_evaluations(MANY, false);
}

static void any_number_of_evaluations_may_wait(void **state)
{
    (void)state;
    size_t one = size_with_evaluations(1, true);
    size_t next = size_with_evaluations(2, true) - one;
    assert_true(next > 0);
    assert_int_equal(size_with_evaluations(MANY, true), one + (MANY - 1) * next);
}

static void look(struct record *record, uint64_t from_ms, uint64_t until_ms)
{
    for (uint64_t now_ms = from_ms; now_ms <= until_ms; now_ms += TURN_MS) {
        assert_int_equal(recorder_look(record->recorder, now_ms, WARN_MS), STATUS_OK);
    }
}

/* As after SIGSTOP: the thread stood still, too, and nobody knows what the disk would have done. */
static void a_coordinator_that_stood_still_says_nothing_of_the_disk(void **state)
{
    (void)state;
    struct record record;
    open_record(&record, false);
    captured_log_begin();
    look(&record, 1, WARN_MS / 2);
    look(&record, 60 * WARN_MS, 60 * WARN_MS + WARN_MS / 4);
    const char *log = captured_log_end();
    assert_null(strstr(log, "the disk"));
    settle(&record);
    close_record(&record);
}

static void a_disk_that_hangs_is_named_once_and_that_it_is_back(void **state)
{
    (void)state;
    struct record record;
    open_record(&record, false);
    report(&record, 0, 1);
    captured_log_begin();
    look(&record, 1, 3 * WARN_MS);
    const char *log = captured_log_end();
    const char *said = strstr(log, "the disk has taken nothing of");
    assert_non_null(said);
    assert_non_null(strstr(log, record.folder));
    assert_null(strstr(said + 1, "the disk has taken nothing of"));
    settle(&record);
    captured_log_begin();
    assert_int_equal(recorder_look(record.recorder, 4 * WARN_MS, WARN_MS), STATUS_OK);
    assert_int_equal(recorder_look(record.recorder, 9 * WARN_MS, WARN_MS), STATUS_OK);
    log = captured_log_end();
    assert_true(strstr(log, "again") != NULL && strstr(log, "nothing") == NULL);
    close_record(&record);
}

/* Each is a promise: details.json tells of them, and a coordinator that takes over goes by them. */
static void any_number_of_losses_may_be_noted_meanwhile(void **state)
{
    (void)state;
    struct record record;
    open_record(&record, false);
    for (uint32_t i = 1; i <= LOSSES; i++) {
        const struct history_entry entry = {.is_whole = true, .reason = "why", .restarts = i};
        recorder_note_restart(record.recorder, &entry);
    }
    assert_int_equal(recorder_look(record.recorder, 1, WARN_MS), STATUS_OK);
    report(&record, 0, 1);
    settle(&record);
    json_t *noted = history_json(record.folder);
    assert_int_equal(json_array_size(noted), LOSSES);
    json_decref(noted);
    assert_int_equal(read_lines(&record, (json_int_t[]){1, 0}), 1);
    close_record(&record);
}

static void do_nothing(void *data)
{
    (void)data;
}

static unsigned fill(struct record *record, unsigned most)
{
    unsigned count = 0;
    for (; count < most && recorder_do(record->recorder, do_nothing, NULL); count++) {
    }
    return count;
}

static void what_is_too_much_to_wait_is_named(void **state)
{
    (void)state;
    struct record record;
    open_record(&record, false);
    (void)fill(&record, UINT32_MAX);
    assert_int_equal(recorder_look(record.recorder, 1, WARN_MS), STATUS_IO);
    assert_non_null(strstr(recorder_error(record.recorder), "too much waits for it"));
    sem_post(&record.go);
    assert_int_equal(recorder_settle(record.recorder, PATIENCE_MS), STATUS_IO);
    close_record(&record);
}

static void a_disk_that_is_back_just_then_is_no_lack_of_memory(void **state)
{
    (void)state;
    struct record record;
    open_record(&record, false);
    unsigned most = fill(&record, UINT32_MAX);
    sem_post(&record.go);
    assert_int_equal(recorder_settle(record.recorder, PATIENCE_MS), STATUS_IO);
    close_record(&record);
    open_record(&record, false);
    assert_int_equal(fill(&record, most), most);
    back = &record.go;
    (void)recorder_do(record.recorder, do_nothing, NULL);
    assert_null(strstr(recorder_error(record.recorder), "memory"));
    close_record(&record);
}

static void what_there_is_no_memory_for_is_named(void **state)
{
    (void)state;
    struct record record;
    open_record(&record, false);
    is_short = true;
    enum status restored = recorder_restore(record.recorder, &record.story.coordinator, 1, WARN_MS);
    is_short = false;
    assert_int_equal(restored, STATUS_NO_MEMORY);
    assert_non_null(strstr(recorder_error(record.recorder), "there is no memory"));
    assert_non_null(strstr(recorder_error(record.recorder), "metrics.jsonl"));
    sem_post(&record.go);
    assert_int_equal(recorder_settle(record.recorder, PATIENCE_MS), STATUS_NO_MEMORY);
    close_record(&record);
}

static void a_thread_that_cannot_be_started_is_named(void **state)
{
    (void)state;
    char folder[512], *top = temp_folder_create();
    struct story story;
    struct recorder *recorder;
    snprintf(folder, sizeof(folder), "%.400s/run", top);
    story_open_training(&story, 2);
    const struct recorder_options options = {.folder = folder, .job = &story.job};
    has_no_thread = true;
    captured_log_begin();
    enum status status = recorder_create(&options, &recorder);
    has_no_thread = false;
    assert_non_null(strstr(captured_log_end(), "the thread that waits for the disk with"));
    assert_int_equal(status, STATUS_NO_MEMORY);
    coordinator_finish(&story.coordinator);
    temp_folder_destroy(top);
}

/* Nobody has settled it, as when the job has never begun. */
static void an_end_that_waits_in_vain_says_so(void **state)
{
    (void)state;
    static struct record record;
    open_record(&record, false);
    captured_log_begin();
    assert_false(recorder_destroy(record.recorder, 1));
    const char *log = captured_log_end();
    assert_non_null(strstr(log, "the disk hangs"));
    assert_non_null(strstr(log, record.folder));
    coordinator_finish(&record.story.coordinator);
    temp_folder_destroy(record.top);
}

/* What the thread has stays with it until the process ends. */
static void the_end_waits_for_a_bounded_time_and_names_the_file(void **state)
{
    (void)state;
    static struct record record;
    open_record(&record, false);
    report(&record, 0, 1);
    captured_log_begin();
    enum status settled = recorder_settle(record.recorder, 1);
    captured_log_end();
    assert_int_equal(settled, STATUS_IO);
    assert_non_null(strstr(recorder_error(record.recorder), "the disk hangs"));
    assert_non_null(strstr(recorder_error(record.recorder), record.folder));
    assert_int_equal(recorder_write_summary(record.recorder, &record.story.coordinator), STATUS_IO);
    assert_int_equal(recorder_settle(record.recorder, PATIENCE_MS), STATUS_IO);
    assert_false(recorder_destroy(record.recorder, PATIENCE_MS));
    coordinator_finish(&record.story.coordinator);
    temp_folder_destroy(record.top);
}

static void tell(void *data)
{
    struct record *record = data;
    sem_post(&record->begun);
}

/* The job has failed by then, and a summary would say something else. */
static void a_disk_that_is_back_too_late_gets_nothing(void **state)
{
    (void)state;
    static struct record record;
    char summary[600];
    open_record(&record, false);
    snprintf(summary, sizeof(summary), "%s/summary.json", record.folder);
    assert_int_equal(recorder_write_summary(record.recorder, &record.story.coordinator), STATUS_OK);
    assert_true(recorder_do(record.recorder, tell, &record));
    captured_log_begin();
    enum status settled = recorder_settle(record.recorder, 1);
    captured_log_end();
    assert_int_equal(settled, STATUS_IO);
    sem_post(&record.go);
    sem_wait(&record.begun);
    assert_int_not_equal(access(summary, F_OK), 0);
    assert_false(recorder_destroy(record.recorder, PATIENCE_MS));
    coordinator_finish(&record.story.coordinator);
    temp_folder_destroy(record.top);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_reported_meanwhile_is_written_once_it_is_back),
        cmocka_unit_test(what_is_told_without_a_step_is_in_the_lines_too),
        cmocka_unit_test(more_than_may_wait_comes_in_longer_lines),
        cmocka_unit_test(evaluations_that_nobody_asks_for_do_not_wait),
        cmocka_unit_test(any_number_of_evaluations_may_wait),
        cmocka_unit_test(a_disk_that_hangs_is_named_once_and_that_it_is_back),
        cmocka_unit_test(a_coordinator_that_stood_still_says_nothing_of_the_disk),
        cmocka_unit_test(any_number_of_losses_may_be_noted_meanwhile),
        cmocka_unit_test(what_is_too_much_to_wait_is_named),
        cmocka_unit_test(a_disk_that_is_back_just_then_is_no_lack_of_memory),
        cmocka_unit_test(what_there_is_no_memory_for_is_named),
        cmocka_unit_test(a_thread_that_cannot_be_started_is_named),
        cmocka_unit_test(an_end_that_waits_in_vain_says_so),
        cmocka_unit_test(the_end_waits_for_a_bounded_time_and_names_the_file),
        cmocka_unit_test(a_disk_that_is_back_too_late_gets_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
