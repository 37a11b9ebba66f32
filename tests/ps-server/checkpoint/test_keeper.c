/* Tests of what members fetch of a checkpoint on the disk, which may hang. */
#include "common/job/job_text.h"
#include "ps-server/checkpoint/keeper.h"
#include "tests/support/common/captured_log.h"
#include "tests/support/common/sample_job.h"
#include "tests/support/common/temp_folder.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>

#define STEP     5
#define FLOATS   UINT64_C(8)
#define SENT_MAX 8

/* The disk. */
static atomic_bool hangs, fails;
static sem_t begun, go;

static uint32_t threads_left = UINT32_MAX; // that the system has

// NOLINTBEGIN(readability-identifier-naming): the linker's names.
ssize_t __real_pread64(int fd, void *bytes, size_t size, off_t offset);
ssize_t __wrap_pread64(int fd, void *bytes, size_t size, off_t offset);
int __real_pthread_create(pthread_t *ret_thread, const pthread_attr_t *attributes,
                          void *(*run)(void *data), void *data);
int __wrap_pthread_create(pthread_t *ret_thread, const pthread_attr_t *attributes,
                          void *(*run)(void *data), void *data);
// NOLINTEND(readability-identifier-naming)

ssize_t __wrap_pread64(int fd, void *bytes, size_t size, off_t offset)
{
    if (hangs) {
        sem_post(&begun);
        sem_wait(&go);
    }
    if (fails) {
        errno = EIO;
        return -1;
    }
    return __real_pread64(fd, bytes, size, offset);
}

int __wrap_pthread_create(pthread_t *ret_thread, const pthread_attr_t *attributes,
                          void *(*run)(void *data), void *data)
{
    if (threads_left == 0) {
        return EAGAIN;
    }
    threads_left--;
    return __real_pthread_create(ret_thread, attributes, run, data);
}

/* A ring of two that is resumed, and what the coordinator has told. */
struct resumed {
    char *folder;
    struct job job;
    char text[JOB_TEXT_BYTES];
    struct coordinator coordinator;
    struct keeper *keeper;
    struct saver *saver;
    struct disk_watch watch;
    sem_t answered;
    struct {
        uint64_t peer;
        char vector[PIECE_NAME_BYTES];
        struct span span;
        bool has_values;
        float first;
    } sent[SENT_MAX];
    uint32_t sent_count;
    char said[1024];
};

static void note_sent(void *context, uint64_t peer, const struct message *message)
{
    struct resumed *resumed = context;
    if (message->kind == MESSAGE_PIECE && resumed->sent_count < SENT_MAX) {
        uint32_t i = resumed->sent_count++;
        resumed->sent[i].peer = peer;
        resumed->sent[i].span = message->span;
        resumed->sent[i].has_values = message->values != NULL;
        resumed->sent[i].first = message->values != NULL ? message->values[0] : 0;
        snprintf(resumed->sent[i].vector, PIECE_NAME_BYTES, "%s", message->piece->vector);
    }
}

static void note_said(void *context, bool is_error, const char *sentence)
{
    struct resumed *resumed = context;
    (void)is_error;
    snprintf(resumed->said, sizeof(resumed->said), "%s", sentence);
}

static void wake(void *context)
{
    struct resumed *resumed = context;
    sem_post(&resumed->answered);
}

/* A folder with the checkpoint of a step. */
static void write_checkpoint(struct resumed *resumed)
{
    static const struct checkpoint_vector vectors[] = {{"params", FLOATS * sizeof(float)}};
    struct coordinator *coordinator = &resumed->coordinator;
    struct checkpoint_writer *writer;
    float values[FLOATS];
    for (uint32_t i = 0; i < FLOATS; i++) {
        values[i] = (float)i;
    }
    coordinator->layout = (struct layout){.value_count = FLOATS};
    coordinator->train_samples = 100;
    coordinator->checkpointing.step = STEP;
    coordinator->checkpointing.plan = checkpoints_of(&resumed->job, 100);
    json_t *part = job_part_json(coordinator, 1000);
    assert_int_equal(checkpoint_writer_open(resumed->folder, 1, &writer), STATUS_OK);
    assert_int_equal(checkpoint_begin(writer, STEP), STATUS_OK);
    assert_int_equal(checkpoint_write(writer, "params", 0, values, sizeof(values)), STATUS_OK);
    assert_int_equal(checkpoint_commit(writer, vectors, 1, part), STATUS_OK);
    checkpoint_writer_close(writer);
    json_decref(part);
}

static void open_resumed(struct resumed *resumed)
{
    const struct coordinator_port port = {.context = resumed, .send = note_sent, .log = note_said};
    memset(resumed, 0, sizeof(*resumed));
    hangs = false;
    sem_init(&resumed->answered, 0, 0);
    resumed->folder = temp_folder_create();
    resumed->job = sample_job_resolved(SAMPLE_JOB("mode=ring", "batch=5", "checkpoint-every=5",
                                                  "stall-warn=0.1", "stall-fail=0.4", NULL));
    assert_int_equal(job_encode(&resumed->job, resumed->text, sizeof(resumed->text)), STATUS_OK);
    assert_int_equal(
        coordinator_init(&resumed->coordinator, &resumed->job, resumed->text, &port, 0), STATUS_OK);
    write_checkpoint(resumed);
}

/* Goes on from the folder, or from the mirror there of a run in another one. */
static enum status create_from(struct resumed *resumed, bool is_mirror, bool may_lack_mirror)
{
    const struct slow_disk_wait wait = {.warn_s = resumed->job.stall_warn,
                                        .fail_s = job_disk_fail_s(&resumed->job)};
    const struct keeper_options options = {.origin = {.job = &resumed->job,
                                                      .resume = is_mirror ? "" : resumed->folder,
                                                      .folder = is_mirror ? "/nowhere/run" : "",
                                                      .mirror = is_mirror ? resumed->folder : "",
                                                      .goes_on = is_mirror,
                                                      .may_lack_mirror = may_lack_mirror,
                                                      .wait = wait,
                                                      .mirror_wait = wait},
                                           .saver = &resumed->saver,
                                           .watch = &resumed->watch,
                                           .member_count = 2,
                                           .wake = wake,
                                           .context = resumed};
    return keeper_create(&options, &resumed->keeper);
}

static enum status create(struct resumed *resumed)
{
    return create_from(resumed, false, false);
}

static void close_resumed(struct resumed *resumed)
{
    keeper_destroy(resumed->keeper);
    coordinator_finish(&resumed->coordinator);
    temp_folder_destroy(resumed->folder);
}

static void ask(struct resumed *resumed, uint64_t peer, const char *vector, struct span span)
{
    struct wire_piece piece = {.vector = vector, .total = FLOATS};
    const struct message message = {.kind = MESSAGE_FETCH, .piece = &piece, .span = span};
    keeper_do(resumed->keeper, &resumed->coordinator, CHECKPOINT_READ, peer, &message, 1);
}

static void members_are_given_what_they_ask_for_in_their_order(void **state)
{
    (void)state;
    static struct resumed resumed;
    open_resumed(&resumed);
    assert_int_equal(create(&resumed), STATUS_OK);
    assert_int_equal(keeper_begin_step(resumed.keeper), STEP);
    ask(&resumed, 1, "params", (struct span){4, 4});
    ask(&resumed, 2, "params", (struct span){0, 2});
    ask(&resumed, 1, "velocity", (struct span){0, 2}); // it has none
    ask(&resumed, 2, "params", (struct span){6, 4});   // nor so many
    for (uint32_t i = 0; i < 4; i++) {
        sem_wait(&resumed.answered);
    }
    keeper_take_news(resumed.keeper, &resumed.coordinator, 1);
    assert_int_equal(resumed.sent_count, 4);
    for (uint32_t i = 0; i < 4; i++) {
        assert_int_equal(resumed.sent[i].peer, 1 + i % 2);
        assert_int_equal(resumed.sent[i].has_values, i < 2);
    }
    assert_true(resumed.sent[0].first == 4 && resumed.sent[1].first == 0);
    assert_string_equal(resumed.sent[2].vector, "velocity");
    assert_int_equal(resumed.coordinator.fetched_bytes, 6 * sizeof(float));
    close_resumed(&resumed);
}

/* Nobody waits for it but those who fetch: the loop goes round, and says what is the matter. */
static void a_disk_that_hangs_then_is_named_and_ends_the_job(void **state)
{
    (void)state;
    static struct resumed resumed; // which its thread has
    open_resumed(&resumed);
    assert_int_equal(create(&resumed), STATUS_OK);
    hangs = true;
    ask(&resumed, 1, "params", (struct span){0, 4});
    sem_wait(&begun);
    keeper_take_news(resumed.keeper, &resumed.coordinator, 1);
    keeper_take_news(resumed.keeper, &resumed.coordinator, 50);
    assert_int_equal(resumed.coordinator.membership.arrived_ms, 50); // --start-timeout is theirs
    assert_string_equal(resumed.said, "");
    keeper_take_news(resumed.keeper, &resumed.coordinator, 101);
    assert_non_null(strstr(resumed.said, "the disk has given nothing of"));
    assert_non_null(strstr(resumed.said, resumed.folder));
    assert_int_equal(resumed.coordinator.verdict, STATUS_OK);
    keeper_take_news(resumed.keeper, &resumed.coordinator, 201);
    assert_int_equal(resumed.coordinator.verdict, STATUS_IO);
    assert_non_null(strstr(resumed.coordinator.reason, "the disk hangs"));
    assert_int_equal(resumed.sent_count, 0);
    close_resumed(&resumed);
}

/* The member that has asked cannot help it, and is not told that the checkpoint lacks something. */
static void one_that_cannot_be_read_then_is_named_and_ends_the_job(void **state)
{
    (void)state;
    static struct resumed resumed;
    char file[512];
    open_resumed(&resumed);
    assert_int_equal(create(&resumed), STATUS_OK);
    fails = true;
    ask(&resumed, 1, "params", (struct span){0, 4});
    sem_wait(&resumed.answered);
    fails = false;
    keeper_take_news(resumed.keeper, &resumed.coordinator, 1);
    snprintf(file, sizeof(file), "%.400s/step-000000000005/params: Input/output error",
             resumed.folder);
    assert_int_equal(resumed.coordinator.verdict, STATUS_IO);
    assert_non_null(strstr(resumed.coordinator.reason, file));
    assert_non_null(strstr(resumed.coordinator.reason, "the disk itself fails"));
    assert_int_equal(resumed.sent_count, 0);
    close_resumed(&resumed);
}

/* All members join the next generation, for which the caller leaves the mirror. */
static void assert_mirror_is_left(struct resumed *resumed, const char *why)
{
    assert_int_equal(resumed->coordinator.state, COORDINATOR_RENEWING);
    assert_int_equal(resumed->coordinator.verdict, STATUS_AGAIN);
    assert_non_null(strstr(resumed->coordinator.reason, why));
    assert_non_null(strstr(resumed->coordinator.reason, resumed->folder));
    assert_true(keeper_lacks_mirror(resumed->keeper));
    assert_int_equal(resumed->sent_count, 0);
}

static void a_mirror_that_hangs_then_is_named_and_left(void **state)
{
    (void)state;
    static struct resumed resumed; // which its thread has
    open_resumed(&resumed);
    assert_int_equal(create_from(&resumed, true, true), STATUS_OK);
    assert_int_equal(keeper_begin_step(resumed.keeper), STEP);
    hangs = true;
    ask(&resumed, 1, "params", (struct span){0, 4});
    sem_wait(&begun);
    keeper_take_news(resumed.keeper, &resumed.coordinator, 1);
    keeper_take_news(resumed.keeper, &resumed.coordinator, 199);
    assert_int_equal(resumed.coordinator.state, COORDINATOR_GATHERING);
    keeper_take_news(resumed.keeper, &resumed.coordinator, 201);
    assert_mirror_is_left(&resumed, "the disk hangs");
    close_resumed(&resumed);
}

static void one_that_cannot_be_read_then_is_left_too(void **state)
{
    (void)state;
    static struct resumed resumed;
    open_resumed(&resumed);
    assert_int_equal(create_from(&resumed, true, true), STATUS_OK);
    fails = true;
    ask(&resumed, 1, "params", (struct span){0, 4});
    ask(&resumed, 2, "params", (struct span){4, 4});
    sem_wait(&resumed.answered);
    sem_wait(&resumed.answered);
    fails = false;
    keeper_take_news(resumed.keeper, &resumed.coordinator, 1);
    assert_mirror_is_left(&resumed, "Input/output error");
    close_resumed(&resumed);
}

/* By hand: who has started it can mend the disk, and start it again. */
static void a_mirror_that_a_job_may_not_lack_ends_it_then(void **state)
{
    (void)state;
    static struct resumed resumed;
    open_resumed(&resumed);
    assert_int_equal(create_from(&resumed, true, false), STATUS_OK);
    fails = true;
    ask(&resumed, 1, "params", (struct span){0, 4});
    sem_wait(&resumed.answered);
    fails = false;
    keeper_take_news(resumed.keeper, &resumed.coordinator, 1);
    assert_int_equal(resumed.coordinator.verdict, STATUS_IO);
    assert_false(keeper_lacks_mirror(resumed.keeper));
    close_resumed(&resumed);
}

/* As after SIGSTOP, or a pause of its machine: the thread did not read meanwhile, either. */
static void time_in_which_the_coordinator_stood_still_does_not_count(void **state)
{
    (void)state;
    static struct resumed resumed; // which its thread has
    open_resumed(&resumed);
    resumed.job.stall_fail = 0.8; // half of which is longer than a turn of the loop
    assert_int_equal(create(&resumed), STATUS_OK);
    hangs = true;
    ask(&resumed, 1, "params", (struct span){0, 4});
    sem_wait(&begun);
    keeper_take_news(resumed.keeper, &resumed.coordinator, 1);
    keeper_take_news(resumed.keeper, &resumed.coordinator, 600001);
    assert_int_equal(resumed.coordinator.verdict, STATUS_OK);
    for (uint64_t now_ms = 600101; now_ms <= 600301; now_ms += 100) {
        keeper_take_news(resumed.keeper, &resumed.coordinator, now_ms);
    }
    assert_int_equal(resumed.coordinator.verdict, STATUS_IO);
    close_resumed(&resumed);
}

static void one_that_hangs_while_the_checkpoint_is_looked_for_is_named_too(void **state)
{
    (void)state;
    static struct resumed resumed;
    open_resumed(&resumed);
    hangs = true;
    captured_log_begin();
    enum status status = create(&resumed);
    hangs = false; // for the file of the log
    const char *log = captured_log_end();
    assert_int_equal(status, STATUS_IO);
    assert_non_null(strstr(log, "the disk has given nothing of"));
    assert_non_null(strstr(log, "the disk hangs"));
    assert_non_null(strstr(log, resumed.folder));
    close_resumed(&resumed);
}

/* As where a container has no more of them: the job ends, and says why. */
static void threads_that_cannot_be_started_are_named(void **state)
{
    (void)state;
    static const char *const named[] = {"the thread that waits for the disk",
                                        "the thread that reads what members fetch"};
    for (uint32_t i = 0; i < 2; i++) {
        static struct resumed resumed;
        open_resumed(&resumed);
        threads_left = i;
        captured_log_begin();
        enum status status = create(&resumed);
        const char *log = captured_log_end();
        threads_left = UINT32_MAX;
        assert_int_equal(status, STATUS_NO_MEMORY);
        assert_non_null(strstr(log, named[i]));
        close_resumed(&resumed);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(members_are_given_what_they_ask_for_in_their_order),
        cmocka_unit_test(threads_that_cannot_be_started_are_named),
        cmocka_unit_test(a_disk_that_hangs_then_is_named_and_ends_the_job),
        cmocka_unit_test(one_that_cannot_be_read_then_is_named_and_ends_the_job),
        cmocka_unit_test(time_in_which_the_coordinator_stood_still_does_not_count),
        cmocka_unit_test(a_mirror_that_hangs_then_is_named_and_left),
        cmocka_unit_test(one_that_cannot_be_read_then_is_left_too),
        cmocka_unit_test(a_mirror_that_a_job_may_not_lack_ends_it_then),
        cmocka_unit_test(one_that_hangs_while_the_checkpoint_is_looked_for_is_named_too),
    };
    sem_init(&begun, 0, 0);
    sem_init(&go, 0, 0); // nobody says so: what hangs does so until the process ends
    return cmocka_run_group_tests(tests, NULL, NULL);
}
