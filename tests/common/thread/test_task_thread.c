/* Tests of a thread that runs tasks. */
#include "common/thread/task_thread.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>

#define CAPACITY    4
#define MANY        20000000 // tasks, which take longer than any turn of a busy machine
#define PATIENCE_MS 600000   // that no test needs

/* What was run; the task 0 waits until somebody lets it go. */
struct log {
    sem_t begun, go;
    unsigned count;
    int tasks[16];
};

static void run(void *context, void *task)
{
    struct log *log = context;
    int number = *(const int *)task;
    if (number == 0) {
        sem_post(&log->begun);
        sem_wait(&log->go);
    }
    log->tasks[log->count++] = number;
}

static struct task_thread *open_thread(struct log *log)
{
    const struct task_thread_options options = {.name = "tasks",
                                                .capacity = CAPACITY,
                                                .task_bytes = sizeof(int),
                                                .run = run,
                                                .context = log};
    struct task_thread *thread;
    log->count = 0;
    sem_init(&log->begun, 0, 0);
    sem_init(&log->go, 0, 0);
    assert_int_equal(task_thread_create(&options, &thread), STATUS_OK);
    return thread;
}

/* Hands over the task 0, and waits until the thread is at it. */
static void block(struct task_thread *thread, struct log *log)
{
    static const int task = 0;
    assert_true(task_thread_add(thread, &task));
    sem_wait(&log->begun);
}

static void tasks_are_run_in_their_order_and_before_the_end(void **state)
{
    (void)state;
    struct log log;
    struct task_thread *thread = open_thread(&log);
    block(thread, &log);
    for (int i = 1; i <= CAPACITY; i++) {
        assert_true(task_thread_add(thread, &i));
    }
    sem_post(&log.go);
    assert_true(task_thread_destroy(thread, PATIENCE_MS));
    assert_int_equal(log.count, CAPACITY + 1);
    for (int i = 0; i <= CAPACITY; i++) {
        assert_int_equal(log.tasks[i], i);
    }
}

static void one_that_does_not_fit_is_refused(void **state)
{
    (void)state;
    struct log log;
    struct task_thread *thread = open_thread(&log);
    block(thread, &log);
    int task = 1;
    for (unsigned i = 0; i < CAPACITY; i++) {
        assert_int_equal(task_thread_room(thread), CAPACITY - i);
        assert_true(task_thread_add(thread, &task));
    }
    assert_false(task_thread_add(thread, &task));
    sem_post(&log.go);
    assert_true(task_thread_destroy(thread, PATIENCE_MS));
    assert_int_equal(log.count, CAPACITY + 1);
}

/* The oldest stands anywhere in the ring when it gets more places. */
static void a_queue_that_grows_keeps_the_order(void **state)
{
    (void)state;
    for (uint32_t places = 1; places <= 4; places++) {
        for (int before = 0; before < 4; before++) {
            struct log log = {.count = 0};
            const struct task_thread_options options = {.name = "tasks",
                                                        .capacity = 9,
                                                        .places = places,
                                                        .task_bytes = sizeof(int),
                                                        .run = run,
                                                        .context = &log};
            struct task_thread *thread;
            sem_init(&log.begun, 0, 0);
            sem_init(&log.go, 0, 0);
            assert_int_equal(task_thread_create(&options, &thread), STATUS_OK);
            for (int i = 0; i < before; i++) {
                assert_true(task_thread_add(thread, &(int){1}));
                assert_true(task_thread_await_queued(thread, PATIENCE_MS));
            }
            block(thread, &log);
            for (int i = 1; i <= 9; i++) {
                assert_int_equal(task_thread_room(thread), 10 - i);
                assert_true(task_thread_add(thread, &i));
            }
            assert_false(task_thread_add(thread, &(int){1}));
            sem_post(&log.go);
            assert_true(task_thread_destroy(thread, PATIENCE_MS));
            assert_int_equal(log.count, before + 10);
            for (int i = 0; i <= 9; i++) {
                assert_int_equal(log.tasks[before + i], i);
            }
        }
    }
}

static void a_wait_for_one_that_hangs_ends(void **state)
{
    (void)state;
    struct log log;
    uint64_t done;
    struct task_thread *thread = open_thread(&log);
    block(thread, &log);
    assert_false(task_thread_await_queued(thread, 1));
    assert_true(task_thread_is_busy(thread, &done));
    assert_int_equal(done, 0);
    sem_post(&log.go);
    assert_true(task_thread_await_queued(thread, PATIENCE_MS));
    assert_false(task_thread_is_busy(thread, &done));
    assert_int_equal(done, 1);
    assert_true(task_thread_destroy(thread, PATIENCE_MS));
}

/* As after SIGSTOP, or a pause of its machine: the thread did not run meanwhile, either. */
static void time_in_which_nobody_has_looked_is_not_idle(void **state)
{
    (void)state;
    struct log log;
    struct task_watch watch = {.done = 0};
    struct task_thread *thread = open_thread(&log);
    block(thread, &log);
    assert_int_equal(task_watch_idle_ms(&watch, thread, 1000), 0);
    assert_int_equal(task_watch_idle_ms(&watch, thread, 1200), 200);
    assert_int_equal(task_watch_idle_ms(&watch, thread, 601200), 200 + ATTENTION_TURN_MS);
    assert_int_equal(task_watch_idle_ms(&watch, thread, 601300), 300 + ATTENTION_TURN_MS);
    sem_post(&log.go);
    assert_true(task_thread_await_queued(thread, PATIENCE_MS));
    assert_int_equal(task_watch_idle_ms(&watch, thread, 601400), 0);
    assert_true(task_thread_destroy(thread, PATIENCE_MS));
}

/* Each task queues the next one, as if somebody else did, until nobody waits any more. */
struct relay {
    struct task_thread *thread;
    atomic_bool is_over;
    unsigned long count;
};

static void run_relay(void *context, void *task)
{
    struct relay *relay = context;
    relay->count++;
    if (!relay->is_over && relay->count < MANY) {
        assert_true(task_thread_add(relay->thread, task));
    }
}

static void what_is_queued_later_is_not_waited_for(void **state)
{
    (void)state;
    static const int task = 1;
    struct relay relay = {.is_over = false};
    const struct task_thread_options options = {.name = "relay",
                                                .capacity = CAPACITY,
                                                .task_bytes = sizeof(int),
                                                .run = run_relay,
                                                .context = &relay};
    assert_int_equal(task_thread_create(&options, &relay.thread), STATUS_OK);
    assert_true(task_thread_add(relay.thread, &task));
    assert_true(task_thread_await_queued(relay.thread, PATIENCE_MS));
    relay.is_over = true;
    assert_true(task_thread_destroy(relay.thread, PATIENCE_MS));
    assert_in_range(relay.count, 1, MANY - 1);
}

/* It stays with the thread, which has what it needs until the process ends. */
static void so_does_the_wait_for_its_end(void **state)
{
    (void)state;
    static struct log log;
    struct task_thread *thread = open_thread(&log);
    block(thread, &log);
    assert_false(task_thread_destroy(thread, 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tasks_are_run_in_their_order_and_before_the_end),
        cmocka_unit_test(one_that_does_not_fit_is_refused),
        cmocka_unit_test(a_queue_that_grows_keeps_the_order),
        cmocka_unit_test(a_wait_for_one_that_hangs_ends),
        cmocka_unit_test(time_in_which_nobody_has_looked_is_not_idle),
        cmocka_unit_test(what_is_queued_later_is_not_waited_for),
        cmocka_unit_test(so_does_the_wait_for_its_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
