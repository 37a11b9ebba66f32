/* Tests of where a shard's workers are. */
#include "ps-server/far_workers.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on

static const struct job job = {.workers = 2, .connections = 3};

struct scene {
    struct channel *channel;
    struct far_workers far;
};

static void open_scene(struct scene *scene)
{
    assert_int_equal(channel_create(&scene->channel), STATUS_OK);
    assert_int_equal(far_workers_create(scene->channel, &job, &scene->far), STATUS_OK);
}

static void close_scene(struct scene *scene)
{
    channel_destroy(scene->channel, 0);
    far_workers_destroy(&scene->far);
}

static enum status meet(struct scene *scene, uint32_t rank, uint32_t lane, uint64_t peer)
{
    const struct message hello = {
        .kind = MESSAGE_HELLO, .rank = rank, .lane = lane, .is_far = true};
    bool is_new = false;
    enum status status = far_workers_meet(&scene->far, &hello, peer, &is_new);
    assert_true(status != STATUS_OK || is_new);
    return status;
}

static void a_worker_is_known_by_each_of_its_connections(void **state)
{
    (void)state;
    struct scene scene;
    open_scene(&scene);
    assert_int_equal(meet(&scene, 1, 2, 70), STATUS_OK); // the last one may be the first to come
    assert_true(far_workers_know(&scene.far, 1, 70));
    assert_false(far_workers_know(&scene.far, 0, 70));
    assert_false(far_workers_know(&scene.far, 1, 71));
    assert_int_equal(meet(&scene, 1, 0, 71), STATUS_OK);
    assert_true(far_workers_know(&scene.far, 1, 71));
    assert_int_equal(scene.far.lanes[1].count, 3);
    assert_true(lanes_of_bucket(&scene.far.lanes[1], 5) == 70);
    assert_true(lanes_of_bucket(&scene.far.lanes[1], 3) == 71);
    close_scene(&scene);
}

static void a_connection_that_is_made_anew_takes_the_place_of_the_old_one(void **state)
{
    (void)state;
    struct scene scene;
    open_scene(&scene);
    assert_int_equal(meet(&scene, 0, 1, 70), STATUS_OK);
    assert_int_equal(meet(&scene, 0, 1, 72), STATUS_OK);
    assert_false(far_workers_know(&scene.far, 0, 70));
    assert_true(far_workers_know(&scene.far, 0, 72));
    bool is_new = true;
    const struct message again = {.kind = MESSAGE_HELLO, .lane = 1, .is_far = true};
    assert_int_equal(far_workers_meet(&scene.far, &again, 72, &is_new), STATUS_OK);
    assert_false(is_new);
    close_scene(&scene);
}

static void ranks_and_connections_that_there_are_not_are_refused(void **state)
{
    (void)state;
    struct scene scene;
    open_scene(&scene);
    assert_int_equal(meet(&scene, 2, 0, 70), STATUS_MALFORMED);
    assert_int_equal(meet(&scene, UINT32_MAX, 0, 70), STATUS_MALFORMED);
    assert_int_equal(meet(&scene, 0, 3, 70), STATUS_MALFORMED);
    const struct message near = {.kind = MESSAGE_HELLO, .lane = 1}; // has a single one
    bool is_new;
    assert_int_equal(far_workers_meet(&scene.far, &near, 70, &is_new), STATUS_MALFORMED);
    assert_false(far_workers_know(&scene.far, UINT32_MAX, 70));
    close_scene(&scene);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_worker_is_known_by_each_of_its_connections),
        cmocka_unit_test(a_connection_that_is_made_anew_takes_the_place_of_the_old_one),
        cmocka_unit_test(ranks_and_connections_that_there_are_not_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
