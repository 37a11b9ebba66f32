/* Tests of whom a worker connects to, of those that the coordinator has named. */
#include "tests/support/common/choices.h"
#include "tests/support/common/insecure.h"
#include "worker/link/neighbours.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <stdio.h>
#include <string.h>

#define WORKERS 6

/* A job of ring, and a place for each line. */
struct scene {
    struct job job;
    struct channel *channel;
    struct neighbours neighbours;
    char place[ENDPOINTS_PLACE_BYTES], text[WORKERS * ENDPOINTS_PLACE_BYTES];
    struct departures *departures; // of the channel, if they are noted
};

static void open_scene_on(struct scene *scene, const char *transport)
{
    memset(scene, 0, sizeof(*scene));
    scene->job = (struct job){
        .workers = WORKERS, .mode.kind = MODE_RING, .switches = "none", .connections = 1};
    scene->job.transport = choice_of(transport_choices, transport);
    assert_int_equal(channel_create(&scene->channel), STATUS_OK);
    assert_int_equal(channel_secure(scene->channel, &test_insecure), STATUS_OK);
    const struct endpoints_wish wish = {.address = "127.0.0.1", .port_range = ""};
    assert_int_equal(channel_listen(scene->channel, scene->job.transport, &wish, scene->place),
                     STATUS_OK);
}

static void open_scene(struct scene *scene)
{
    open_scene_on(scene, "tcp");
}

static void close_scene(struct scene *scene)
{
    neighbours_free(&scene->neighbours);
    channel_destroy(scene->channel, 0);
}

/* As rank 2, with so many places of workers. */
static enum status connect_with(struct scene *scene, enum all_reduce all_reduce, uint32_t places)
{
    scene->text[0] = '\0';
    for (uint32_t i = 0; i < places; i++) {
        size_t used = strlen(scene->text);
        snprintf(scene->text + used, sizeof(scene->text) - used, "%s\n", scene->place);
    }
    const struct neighbours_named named = {
        .places = scene->text, .all_reduce = all_reduce, .process = 2};
    return neighbours_connect(&scene->neighbours, scene->channel, &scene->job, &named);
}

/* Bits of the ranks that it is connected to. */
static unsigned connected(const struct scene *scene)
{
    unsigned ranks = 0;
    for (uint32_t i = 0; i < WORKERS; i++) {
        ranks |= (unsigned)(scene->neighbours.workers[i].count > 0) << i;
    }
    return ranks;
}

static void a_worker_connects_to_those_that_its_algorithm_needs(void **state)
{
    (void)state;
    static const struct {
        enum all_reduce all_reduce;
        uint32_t places;
        unsigned ranks;
    } cases[] = {
        {ALL_REDUCE_RING, 1, 1u << 3},
        {ALL_REDUCE_SHARED, WORKERS, 1u << 3},
        // The next one, and those 4, 2 and 1 ranks back.
        {ALL_REDUCE_HALVING, 4, 1u << 3 | 1u << 4 | 1u << 0 | 1u << 1},
        {ALL_REDUCE_DIRECT, WORKERS - 1, 0x3Fu & ~(1u << 2)},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct scene scene;
        open_scene(&scene);
        assert_int_equal(connect_with(&scene, cases[i].all_reduce, cases[i].places), STATUS_OK);
        assert_int_equal(connected(&scene), cases[i].ranks);
        close_scene(&scene);
    }
}

static void who_is_connected_already_stays_so(void **state)
{
    (void)state;
    struct scene scene;
    open_scene(&scene);
    assert_int_equal(connect_with(&scene, ALL_REDUCE_RING, 1), STATUS_OK);
    uint64_t next = scene.neighbours.workers[3].peers[0];
    assert_int_equal(connect_with(&scene, ALL_REDUCE_HALVING, 4), STATUS_OK);
    assert_int_equal(scene.neighbours.workers[3].peers[0], next);
    assert_int_equal(scene.neighbours.workers[3].count, 1);
    close_scene(&scene);
}

static void connections_are_made_so_often_as_asked_over_a_network_alone(void **state)
{
    (void)state;
    static const char *const transports[] = {"tcp", "ipc"};
    for (size_t i = 0; i < sizeof(transports) / sizeof(transports[0]); i++) {
        struct scene scene;
        open_scene_on(&scene, transports[i]);
        scene.job.connections = 3;
        assert_int_equal(connect_with(&scene, ALL_REDUCE_RING, 1), STATUS_OK);
        const struct lanes *next = &scene.neighbours.workers[3];
        assert_int_equal(next->count, i == 0 ? 3 : 1);
        for (uint32_t k = 1; k < next->count; k++) {
            assert_true(next->peers[k] != next->peers[k - 1]);
        }
        close_scene(&scene);
    }
}

static void places_that_are_missing_are_an_error(void **state)
{
    (void)state;
    struct scene scene;
    open_scene(&scene);
    assert_int_equal(connect_with(&scene, ALL_REDUCE_HALVING, 3), STATUS_MISMATCH);
    close_scene(&scene);
}

/* Takes what comes, and whoever says hello as a caller. */
static void serve(struct channel *channel, struct neighbours *callers_of)
{
    struct envelope envelope;
    struct message message;
    if (channel_receive(channel, 20, &envelope, &message) != STATUS_OK) {
        return;
    }
    bool is_new;
    if (callers_of != NULL && message.kind == MESSAGE_HELLO) {
        (void)callers_meet(&callers_of->callers, &message, envelope.peer, &is_new);
    }
    envelope_release(&envelope);
}

static bool finds_broken(const struct scene *scene, bool has_servers, enum member_role *ret_role,
                         uint32_t *ret_index)
{
    return neighbours_find_broken(&scene->neighbours, has_servers, scene->channel->transport,
                                  scene->departures, ret_role, ret_index);
}

/* Rank 2 is connected to rank 3, which ends. */
static void the_one_that_it_connects_to_and_that_closes_is_found(void **state)
{
    (void)state;
    struct scene scene, other;
    enum member_role role;
    uint32_t index;
    open_scene(&scene);
    open_scene(&other);
    struct transport *transport = scene.channel->transport;
    scene.departures = transport_note_departures(transport);
    assert_false(finds_broken(&scene, false, &role, &index));
    snprintf(scene.place, sizeof(scene.place), "%s", other.place);
    assert_int_equal(connect_with(&scene, ALL_REDUCE_RING, 1), STATUS_OK);
    uint64_t next = scene.neighbours.workers[3].peers[0];
    while (transport_handshake(transport, next) != HANDSHAKE_DONE) {
        serve(scene.channel, NULL);
        serve(other.channel, NULL);
    }
    assert_false(finds_broken(&scene, false, &role, &index));
    close_scene(&other);
    while (!finds_broken(&scene, false, &role, &index)) {
        serve(scene.channel, NULL);
    }
    assert_int_equal(role, ROLE_WORKER);
    assert_int_equal(index, 3);
    assert_false(finds_broken(&scene, true, &role, &index)); // where it is not used
    close_scene(&scene);
}

/* Rank 1 says hello, and ends. */
static void a_caller_that_closes_is_found(void **state)
{
    (void)state;
    struct scene scene, other;
    enum member_role role;
    uint32_t index;
    const struct wire_hello at = {.is_far = true};
    const struct message hello = {.kind = MESSAGE_HELLO, .rank = 1, .hello = &at};
    open_scene(&scene);
    open_scene(&other);
    struct transport *transport = scene.channel->transport;
    scene.departures = transport_note_departures(transport);
    snprintf(other.place, sizeof(other.place), "%s", scene.place);
    assert_int_equal(connect_with(&scene, ALL_REDUCE_RING, 1), STATUS_OK);
    assert_int_equal(connect_with(&other, ALL_REDUCE_RING, 1), STATUS_OK);
    assert_int_equal(
        channel_send(other.channel, other.neighbours.workers[3].peers[0], &hello, NULL, NULL),
        STATUS_OK);
    while (callers_lanes(&scene.neighbours.callers, 1)->count == 0) {
        serve(scene.channel, &scene.neighbours);
        serve(other.channel, NULL);
    }
    assert_false(finds_broken(&scene, false, &role, &index));
    close_scene(&other);
    while (!finds_broken(&scene, false, &role, &index)) {
        serve(scene.channel, NULL);
    }
    assert_int_equal(role, ROLE_WORKER);
    assert_int_equal(index, 1);
    close_scene(&scene);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_worker_connects_to_those_that_its_algorithm_needs),
        cmocka_unit_test(who_is_connected_already_stays_so),
        cmocka_unit_test(connections_are_made_so_often_as_asked_over_a_network_alone),
        cmocka_unit_test(places_that_are_missing_are_an_error),
        cmocka_unit_test(the_one_that_it_connects_to_and_that_closes_is_found),
        cmocka_unit_test(a_caller_that_closes_is_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
