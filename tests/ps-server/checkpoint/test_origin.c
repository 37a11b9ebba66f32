/* Tests of what a run goes on from that has a mirror: the newer one of that and its run folder. */
#include "common/checkpoint/checkpoint_writer.h"
#include "common/checkpoint/manifest.h"
#include "common/job/job_text.h"
#include "ps-server/checkpoint/origin.h"
#include "tests/support/common/captured_log.h"
#include "tests/support/common/sample_job.h"
#include "tests/support/common/temp_folder.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <semaphore.h>
#include <stdio.h>
#include <string.h>

#define FLOATS UINT64_C(8)

static const char *hanging; // folder whose disk hangs; NULL: none does
static sem_t hung;          // what hangs has read that
static sem_t go;            // nobody says so: what hangs does so until the process ends

// NOLINTBEGIN(readability-identifier-naming): the linker's names.
enum status __real_checkpoint_open_before(const struct checkpoint_place *place,
                                          struct checkpoint_reader **ret_reader, char *ret_error,
                                          size_t error_size, char *ret_notes, size_t notes_size);
enum status __wrap_checkpoint_open_before(const struct checkpoint_place *place,
                                          struct checkpoint_reader **ret_reader, char *ret_error,
                                          size_t error_size, char *ret_notes, size_t notes_size);
// NOLINTEND(readability-identifier-naming)

enum status __wrap_checkpoint_open_before(const struct checkpoint_place *place,
                                          struct checkpoint_reader **ret_reader, char *ret_error,
                                          size_t error_size, char *ret_notes, size_t notes_size)
{
    if (hanging != NULL && strcmp(place->folder, hanging) == 0) {
        sem_post(&hung);
        sem_wait(&go);
    }
    return __real_checkpoint_open_before(place, ret_reader, ret_error, error_size, ret_notes,
                                         notes_size);
}

/* A ring of two with two folders. */
struct run {
    char *folder, *mirror;
    struct job job;
    bool may_lack_mirror;
    struct slow_disk_wait wait;
    struct origin origin;
};

static void pass_over(void *context, bool is_error, const char *sentence)
{
    (void)context, (void)is_error, (void)sentence;
}

static void write_checkpoint(const struct job *job, const char *folder, uint64_t step)
{
    static const struct checkpoint_vector vectors[] = {{"params", FLOATS * sizeof(float)}};
    static struct coordinator coordinator;
    static char text[JOB_TEXT_BYTES];
    const struct coordinator_port port = {.log = pass_over};
    const float values[FLOATS] = {0};
    struct checkpoint_writer *writer;
    assert_int_equal(job_encode(job, text, sizeof(text)), STATUS_OK);
    assert_int_equal(coordinator_init(&coordinator, job, text, &port, 0), STATUS_OK);
    coordinator.layout = (struct layout){.value_count = FLOATS};
    coordinator.train_samples = 100;
    coordinator.checkpointing.step = step;
    coordinator.checkpointing.plan = checkpoints_of(job, 100);
    json_t *part = job_part_json(&coordinator, 1000);
    assert_int_equal(checkpoint_writer_open(folder, 4, &writer), STATUS_OK);
    assert_int_equal(checkpoint_begin(writer, step), STATUS_OK);
    assert_int_equal(checkpoint_write(writer, "params", 0, values, sizeof(values)), STATUS_OK);
    assert_int_equal(checkpoint_commit(writer, vectors, 1, part), STATUS_OK);
    checkpoint_writer_close(writer);
    json_decref(part);
    coordinator_finish(&coordinator);
}

static void open_run(struct run *run)
{
    *run = (struct run){.folder = temp_folder_create(),
                        .mirror = temp_folder_create(),
                        .wait = {.warn_s = 60, .fail_s = 60}};
    run->job = sample_job_resolved(SAMPLE_JOB("mode=ring", "batch=5", NULL));
}

static enum status look(struct run *run, const char *resume)
{
    const struct origin_options options = {.job = &run->job,
                                           .resume = resume,
                                           .folder = run->folder,
                                           .mirror = run->mirror,
                                           .may_lack_mirror = run->may_lack_mirror,
                                           .goes_on = true,
                                           .wait = run->wait,
                                           .mirror_wait = run->wait};
    return origin_find(&options, &run->origin);
}

static void close_run(struct run *run)
{
    origin_finish(&run->origin);
    temp_folder_destroy(run->folder);
    temp_folder_destroy(run->mirror);
}

static void check(struct run *run, const char *folder, uint64_t step, uint64_t written)
{
    assert_int_equal(look(run, ""), STATUS_OK);
    assert_int_equal(checkpoint_step(run->origin.reader), step);
    assert_memory_equal(checkpoint_path(run->origin.reader), folder, strlen(folder));
    assert_int_equal(run->origin.part.resume.step, step);
    assert_int_equal(run->origin.written, written);
    origin_finish(&run->origin);
}

static void the_newer_one_of_both_is_taken(void **state)
{
    (void)state;
    static struct run run;
    open_run(&run);
    write_checkpoint(&run.job, run.mirror, 3);
    check(&run, run.mirror, 3, 0);
    write_checkpoint(&run.job, run.folder, 5);
    captured_log_begin();
    check(&run, run.folder, 5, 5);
    write_checkpoint(&run.job, run.mirror, 7);
    check(&run, run.mirror, 7, 5);
    write_checkpoint(&run.job, run.folder, 7);
    check(&run, run.folder, 7, 7);
    assert_string_equal(captured_log_end(), "");
    close_run(&run);
}

static void a_mirror_before_its_first_copy_is_said(void **state)
{
    (void)state;
    static struct run run;
    open_run(&run);
    write_checkpoint(&run.job, run.folder, 5);
    captured_log_begin();
    check(&run, run.folder, 5, 5);
    assert_non_null(strstr(captured_log_end(), "nothing to go on from in --mirror"));
    close_run(&run);
}

static void before_what_resume_names(void **state)
{
    (void)state;
    static struct run run;
    open_run(&run);
    char *named = temp_folder_create();
    write_checkpoint(&run.job, named, 9);
    write_checkpoint(&run.job, run.mirror, 3);
    assert_int_equal(look(&run, named), STATUS_OK);
    assert_int_equal(checkpoint_step(run.origin.reader), 3);
    temp_folder_destroy(named);
    close_run(&run);
}

/* The one before it is still good, and the newer one is named. */
static void a_damaged_copy_is_passed_over(void **state)
{
    (void)state;
    static struct run run;
    open_run(&run);
    write_checkpoint(&run.job, run.mirror, 3);
    write_checkpoint(&run.job, run.mirror, 7);
    temp_folder_write(run.mirror, "step-000000000007/" MANIFEST_FILE, "x", 1);
    captured_log_begin();
    check(&run, run.mirror, 3, 0);
    assert_non_null(strstr(captured_log_end(), "step-000000000007"));
    close_run(&run);
}

static void a_mirror_of_a_job_with_other_options_is_refused_by_name(void **state)
{
    (void)state;
    static struct run run;
    open_run(&run);
    struct job other = run.job;
    other.seed++;
    write_checkpoint(&run.job, run.folder, 5);
    write_checkpoint(&other, run.mirror, 7);
    captured_log_begin();
    assert_int_equal(look(&run, ""), STATUS_INVALID);
    const char *log = captured_log_end();
    assert_non_null(strstr(log, "--seed"));
    assert_non_null(strstr(log, run.mirror));
    close_run(&run);
}

static void begin_to_hang(const char *folder)
{
    sem_init(&hung, 0, 0);
    sem_init(&go, 0, 0);
    hanging = folder;
}

/* Once so many threads hang there. */
static void end_hanging(int threads)
{
    for (int i = 0; i < threads; i++) {
        assert_int_equal(sem_wait(&hung), 0);
    }
    hanging = NULL;
}

/* It is as if there were none, where a launcher has started the coordinator again. */
static void a_mirror_whose_disk_hangs_is_named_and_may_be_lacking(void **state)
{
    (void)state;
    static struct run run;
    open_run(&run);
    write_checkpoint(&run.job, run.folder, 5);
    write_checkpoint(&run.job, run.mirror, 7);
    run.wait = (struct slow_disk_wait){.warn_s = 0.25, .fail_s = 0.5};
    begin_to_hang(run.mirror);
    captured_log_begin();
    assert_int_equal(look(&run, ""), STATUS_IO);
    run.may_lack_mirror = true;
    enum status status = look(&run, "");
    const char *log = captured_log_end();
    end_hanging(2);
    assert_int_equal(status, STATUS_OK);
    assert_true(run.origin.lacks_mirror);
    assert_int_equal(checkpoint_step(run.origin.reader), 5);
    assert_int_equal(run.origin.written, 5);
    const char *hangs = strstr(log, "the disk hangs: it has given nothing of the checkpoint in");
    assert_non_null(hangs);
    assert_non_null(strstr(hangs, run.mirror));
    assert_null(strstr(log, run.folder));
    close_run(&run);
}

/* It has what the job needs. */
static void a_run_folder_whose_disk_hangs_is_an_error(void **state)
{
    (void)state;
    static struct run run;
    open_run(&run);
    run.may_lack_mirror = true;
    run.wait = (struct slow_disk_wait){.warn_s = 0.25, .fail_s = 0.5};
    begin_to_hang(run.folder);
    captured_log_begin();
    assert_int_equal(look(&run, ""), STATUS_IO);
    end_hanging(1);
    assert_non_null(strstr(captured_log_end(), run.folder));
    close_run(&run);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(the_newer_one_of_both_is_taken, captured_log_drop),
        cmocka_unit_test_teardown(a_mirror_before_its_first_copy_is_said, captured_log_drop),
        cmocka_unit_test(before_what_resume_names),
        cmocka_unit_test_teardown(a_damaged_copy_is_passed_over, captured_log_drop),
        cmocka_unit_test_teardown(a_mirror_whose_disk_hangs_is_named_and_may_be_lacking,
                                  captured_log_drop),
        cmocka_unit_test_teardown(a_run_folder_whose_disk_hangs_is_an_error, captured_log_drop),
        cmocka_unit_test_teardown(a_mirror_of_a_job_with_other_options_is_refused_by_name,
                                  captured_log_drop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
