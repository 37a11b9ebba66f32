/* Tests of a wait for a disk that may hang. */
#include "common/thread/slow_disk.h"
#include "tests/support/common/captured_log.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <semaphore.h>
#include <string.h>

#define PATH  "/somewhere/run"
#define TURNS 6 // more than one that hangs gets here

/* What has to be done; it waits for the disk until somebody lets it go on. */
struct work {
    sem_t go;
    _Atomic uint64_t moved;
    unsigned turns;
    bool is_done;
};

static void run(void *data)
{
    struct work *work = data;
    sem_wait(&work->go);
    work->is_done = true;
}

static enum status await(struct work *work, bool (*turn)(void *context))
{
    const struct slow_disk_wait wait = {.warn_s = 0.25, .fail_s = 1, .turn = turn, .context = work};
    const struct slow_disk_work what = {.complaint = "given nothing of",
                                        .path = PATH,
                                        .moved = &work->moved,
                                        .run = run,
                                        .data = work};
    return slow_disk_await(&wait, &what);
}

static void what_the_disk_does_is_done(void **state)
{
    (void)state;
    struct work work = {.turns = 0};
    sem_init(&work.go, 0, 1);
    captured_log_begin();
    enum status status = await(&work, NULL);
    const char *log = captured_log_end();
    assert_int_equal(status, STATUS_OK);
    assert_true(work.is_done);
    assert_null(strstr(log, PATH));
}

static bool count_turn(void *context)
{
    struct work *work = context;
    work->turns++;
    return true;
}

/* The thread has the work until the process ends. */
static void one_that_hangs_is_named_and_not_waited_for(void **state)
{
    (void)state;
    static struct work work;
    sem_init(&work.go, 0, 0);
    captured_log_begin();
    enum status status = await(&work, count_turn);
    const char *log = captured_log_end();
    assert_int_equal(status, STATUS_IO);
    assert_non_null(strstr(log, "the disk has given nothing of " PATH));
    assert_non_null(strstr(log, "the disk hangs: it has given nothing of " PATH));
    assert_in_range(work.turns, 1, TURNS - 1);
}

static bool move(void *context)
{
    struct work *work = context;
    work->moved++;
    if (++work->turns == TURNS) {
        sem_post(&work->go);
    }
    return true;
}

static void one_that_gets_on_is_waited_for(void **state)
{
    (void)state;
    struct work work = {.turns = 0};
    sem_init(&work.go, 0, 0);
    captured_log_begin();
    enum status status = await(&work, move);
    const char *log = captured_log_end();
    assert_int_equal(status, STATUS_OK);
    assert_true(work.is_done);
    assert_null(strstr(log, "hangs:"));
}

static bool want_the_end(void *context)
{
    (void)context;
    return false;
}

static void whoever_does_not_want_to_wait_does_not(void **state)
{
    (void)state;
    static struct work work;
    sem_init(&work.go, 0, 0);
    captured_log_begin();
    enum status status = await(&work, want_the_end);
    const char *log = captured_log_end();
    assert_int_equal(status, STATUS_INTERRUPTED);
    assert_non_null(strstr(log, PATH));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_the_disk_does_is_done),
        cmocka_unit_test(one_that_hangs_is_named_and_not_waited_for),
        cmocka_unit_test(one_that_gets_on_is_waited_for),
        cmocka_unit_test(whoever_does_not_want_to_wait_does_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
