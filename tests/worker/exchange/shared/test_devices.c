/* Tests of how workers agree that their devices sum: N workers, each a thread, with devices that
 * note what they are asked. */
#include "worker/exchange/exchange_device.h"
#include "worker/exchange/shared/devices.h"
#include "worker/exchange/shared/group.h"
#include "worker/exchange/shared/posts.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define WORLD       3
#define BOARD_BYTES 32768

static const struct layout layout = {
    .value_count = 10, .bucket_count = 2, .buckets = {{4, 6}, {0, 4}}};

struct worker {
    uint32_t rank;
    float *const *grads; // of all
    struct group *group;
    struct exchange_device device;
    pthread_t thread;

    // What its device does.
    bool is_there;
    enum status share_status, meet_status;

    // What it was asked.
    uint32_t met_count, parted_count;
    unsigned char seen[WORLD]; // of each share, its first byte
    _Atomic uint32_t *flags;
    uint32_t flag_count; // to one worker

    bool has_met;
    enum status status;
};

static enum status share(void *context, unsigned char ret_share[EXCHANGE_SHARE_BYTES])
{
    const struct worker *worker = context;
    memset(ret_share, (int)(10 + worker->rank), EXCHANGE_SHARE_BYTES);
    return worker->share_status;
}

static enum status meet(void *context, const struct exchange_meeting *meeting)
{
    struct worker *worker = context;
    assert_int_equal(meeting->rank, worker->rank);
    assert_int_equal(meeting->bucket_count, layout.bucket_count);
    worker->met_count++;
    for (uint32_t rank = 0; rank < meeting->world; rank++) {
        worker->seen[rank] = meeting->shares[rank][EXCHANGE_SHARE_BYTES - 1];
    }
    worker->flags = meeting->flags;
    worker->flag_count = meeting->bucket_count * EXCHANGE_FLAG_COUNT * meeting->world;
    assert_true(sizeof(uint32_t) * meeting->world * worker->flag_count <= meeting->flag_bytes);
    return worker->meet_status;
}

static void part(void *context)
{
    struct worker *worker = context;
    worker->parted_count++;
}

static bool never(void *context)
{
    (void)context;
    return false;
}

static bool always(void *context)
{
    (void)context;
    return true;
}

/* Meets twice, as in two phases, and then has one step of each. */
static void *work(void *context)
{
    struct worker *worker = context;
    for (uint32_t phase = 0; phase < 2 && worker->status == STATUS_OK; phase++) {
        worker->status = group_meet(worker->group, worker->is_there ? &worker->device : NULL, never,
                                    NULL, &worker->has_met);
        for (uint32_t bucket = 0; bucket < layout.bucket_count; bucket++) {
            assert_int_equal(group_arrive(worker->group, bucket), STATUS_OK);
        }
        for (uint32_t bucket = 0; bucket < layout.bucket_count; bucket++) {
            assert_int_equal(group_wait(worker->group, bucket, never, NULL), STATUS_OK);
        }
    }
    group_destroy(worker->group);
    return NULL;
}

static void open_group(struct worker *worker, void *board)
{
    const struct group_options options = {
        .rank = worker->rank,
        .world = WORLD,
        .layout = &layout,
        .own = worker->grads[worker->rank],
        .grads = worker->grads,
        .board = board,
    };
    assert_in_range(group_board_bytes(&layout, WORLD, false), 1, BOARD_BYTES);
    assert_int_equal(group_create(&options, &worker->group), STATUS_OK);
}

struct fixture {
    void *board;
    float values[WORLD][10];
    float *grads[WORLD];
    struct worker workers[WORLD];
};

static void open_all(struct fixture *fixture)
{
    memset(fixture, 0, sizeof(*fixture));
    fixture->board = aligned_alloc(POSTS_ALIGNMENT, BOARD_BYTES);
    memset(fixture->board, 0, BOARD_BYTES);
    for (uint32_t rank = 0; rank < WORLD; rank++) {
        fixture->values[rank][5] = (float)(3 * rank);
        fixture->grads[rank] = fixture->values[rank];
        fixture->workers[rank] =
            (struct worker){.rank = rank, .grads = fixture->grads, .is_there = true};
        fixture->workers[rank].device = (struct exchange_device){
            .share = share, .meet = meet, .part = part, .context = &fixture->workers[rank]};
        open_group(&fixture->workers[rank], fixture->board);
    }
}

static void run_all(struct fixture *fixture)
{
    for (uint32_t rank = 0; rank < WORLD; rank++) {
        pthread_create(&fixture->workers[rank].thread, NULL, work, &fixture->workers[rank]);
    }
    for (uint32_t rank = 0; rank < WORLD; rank++) {
        pthread_join(fixture->workers[rank].thread, NULL);
        assert_int_equal(fixture->workers[rank].status, STATUS_OK);
    }
    free(fixture->board);
}

/* The host has summed. The second sum is that of means. */
static void check_means(const struct fixture *fixture)
{
    for (uint32_t rank = 0; rank < WORLD; rank++) {
        assert_false(fixture->workers[rank].has_met);
        assert_true(fixture->values[rank][5] == 3);
    }
}

static void devices_that_all_can_meet_once_for_all_phases(void **state)
{
    (void)state;
    struct fixture fixture;
    open_all(&fixture);
    run_all(&fixture);
    for (uint32_t rank = 0; rank < WORLD; rank++) {
        const struct worker *worker = &fixture.workers[rank];
        assert_true(worker->has_met);
        assert_int_equal(worker->met_count, 1);
        assert_memory_equal(worker->seen, ((unsigned char[]){10, 11, 12}), WORLD);
        assert_int_equal(worker->parted_count, 1);
        assert_true(fixture.values[rank][5] == (float)(3 * rank)); // the host has not summed
    }
}

static void a_worker_without_such_a_device_leaves_the_sums_to_the_host(void **state)
{
    (void)state;
    for (uint32_t refusal = 0; refusal < 2; refusal++) {
        struct fixture fixture;
        open_all(&fixture);
        fixture.workers[1].is_there = refusal == 0;
        fixture.workers[1].share_status = STATUS_UNSUPPORTED;
        run_all(&fixture);
        check_means(&fixture);
        for (uint32_t rank = 0; rank < WORLD; rank++) {
            assert_int_equal(fixture.workers[rank].met_count, 0);
        }
    }
}

static void a_device_that_reaches_not_all_has_the_others_part(void **state)
{
    (void)state;
    struct fixture fixture;
    open_all(&fixture);
    fixture.workers[2].meet_status = STATUS_UNSUPPORTED;
    run_all(&fixture);
    check_means(&fixture);
    for (uint32_t rank = 0; rank < WORLD; rank++) {
        assert_int_equal(fixture.workers[rank].met_count, 1);
        assert_int_equal(fixture.workers[rank].parted_count, rank == 2 ? 0 : 1);
    }
}

static void who_waits_for_a_worker_that_never_comes_can_be_stopped(void **state)
{
    (void)state;
    struct fixture fixture;
    open_all(&fixture);
    struct worker *worker = &fixture.workers[0];
    assert_int_equal(group_meet(worker->group, &worker->device, always, NULL, &worker->has_met),
                     STATUS_INTERRUPTED);
    assert_false(worker->has_met);
    for (uint32_t rank = 0; rank < WORLD; rank++) {
        group_destroy(fixture.workers[rank].group);
    }
    free(fixture.board);
}

static void *meet_alone(void *context)
{
    struct worker *worker = context;
    worker->status = group_meet(worker->group, &worker->device, never, NULL, &worker->has_met);
    return NULL;
}

/* Others release themselves, when their devices are to be. */
static void a_release_ends_the_waits_of_its_own_device(void **state)
{
    (void)state;
    struct fixture fixture;
    open_all(&fixture);
    for (uint32_t rank = 0; rank < WORLD; rank++) {
        pthread_create(&fixture.workers[rank].thread, NULL, meet_alone, &fixture.workers[rank]);
    }
    for (uint32_t rank = 0; rank < WORLD; rank++) {
        pthread_join(fixture.workers[rank].thread, NULL);
        assert_true(fixture.workers[rank].has_met);
    }
    struct worker *worker = &fixture.workers[1];
    for (uint32_t round = 1; round <= 3; round++) {
        assert_int_equal(group_arrive(worker->group, 0), STATUS_OK);
        assert_int_equal(group_wait(worker->group, 0, never, NULL), STATUS_OK);
    }
    for (uint32_t i = 0; i < WORLD * worker->flag_count; i++) {
        assert_int_equal(worker->flags[i], 0);
    }
    group_release(worker->group);
    for (uint32_t i = 0; i < WORLD * worker->flag_count; i++) {
        assert_int_equal(worker->flags[i], i / worker->flag_count == worker->rank);
    }
    for (uint32_t rank = 0; rank < WORLD; rank++) {
        group_destroy(fixture.workers[rank].group);
        assert_int_equal(fixture.workers[rank].parted_count, 1);
    }
    free(fixture.board);
}

/* Of each pair, which would be more than the rest of the board. */
static void more_workers_than_may_meet_have_no_flags(void **state)
{
    (void)state;
    static const struct layout large = {.value_count = 1024, .bucket_count = 1024};
    size_t few = devices_bytes(&large, EXCHANGE_PEERS_MAX);
    size_t many = devices_bytes(&large, EXCHANGE_PEERS_MAX + 1);
    assert_true(few > sizeof(uint32_t) * 1024 * EXCHANGE_FLAG_COUNT);
    assert_in_range(many, 1, 2 * DEVICES_PAGE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(devices_that_all_can_meet_once_for_all_phases),
        cmocka_unit_test(a_worker_without_such_a_device_leaves_the_sums_to_the_host),
        cmocka_unit_test(a_device_that_reaches_not_all_has_the_others_part),
        cmocka_unit_test(who_waits_for_a_worker_that_never_comes_can_be_stopped),
        cmocka_unit_test(more_workers_than_may_meet_have_no_flags),
        cmocka_unit_test(a_release_ends_the_waits_of_its_own_device),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
