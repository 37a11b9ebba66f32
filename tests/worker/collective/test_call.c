/* Tests of calls and messages: threads in the place of processes, each with its own view of the
 * memory of all. */
#include "worker/collective/call.h"
#include "worker/collective/letters.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WORLD_MAX  4
#define INTAKE_MAX 200000 // less than what members send before they receive

struct member {
    _Atomic bool *is_over; // the job is: one has said so
    struct team *team;
    uint32_t rank, world;
    enum status status;
    struct team_fault fault;
    void (*play)(struct member *member);
    size_t count; // of the values that are reduced
};

static const uint32_t everybody[WORLD_MAX] = {0, 1, 2, 3};

static bool is_over(void *context)
{
    return atomic_load((_Atomic bool *)context);
}

static void *run(void *data)
{
    struct member *member = data;
    member->play(member);
    return NULL;
}

static void play_all(uint32_t world, size_t count, void (*play)(struct member *member),
                     struct member members[WORLD_MAX])
{
    struct team_place places[WORLD_MAX];
    pthread_t threads[WORLD_MAX];
    _Atomic bool over = false;
    for (uint32_t i = 0; i < world; i++) {
        const struct team_options options = {.rank = i,
                                             .world = world,
                                             .intake_max = INTAKE_MAX,
                                             .is_over = is_over,
                                             .context = &over};
        members[i] = (struct member){
            .is_over = &over, .rank = i, .world = world, .play = play, .count = count};
        assert_int_equal(team_create(&options, &places[i], &members[i].team), STATUS_OK);
    }
    for (uint32_t i = 0; i < world; i++) {
        assert_int_equal(team_map(members[i].team, places), STATUS_OK);
    }
    for (uint32_t i = 0; i < world; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, run, &members[i]), 0);
    }
    for (uint32_t i = 0; i < world; i++) {
        pthread_join(threads[i], NULL);
    }
    for (uint32_t i = 0; i < world; i++) {
        team_destroy(members[i].team);
    }
}

static struct call_options call_of(const struct member *member, const char *label)
{
    return (struct call_options){everybody, member->world, label};
}

static void add_up(struct member *member)
{
    const struct call_options options = call_of(member, "a sum");
    int64_t *values = malloc((member->count + 1) * sizeof(*values));
    for (size_t i = 0; i < member->count; i++) {
        values[i] = (int64_t)i * (member->rank + 1);
    }
    const struct call_values of = {values, member->count, FOLD_INT64, FOLD_SUM};
    member->status = call_all_reduce(member->team, &options, &of, &member->fault);
    int64_t ranks = (int64_t)member->world * (member->world + 1) / 2;
    for (size_t i = 0; i < member->count && member->status == STATUS_OK; i++) {
        member->status = values[i] == (int64_t)i * ranks ? STATUS_OK : STATUS_INVALID;
    }
    free(values);
}

static void sums_have_every_value_of_every_process(void **state)
{
    (void)state;
    static const size_t counts[] = {0, 1, 3, 17, 5000, 300001};
    struct member members[WORLD_MAX];
    for (uint32_t world = 1; world <= WORLD_MAX; world++) {
        for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
            play_all(world, counts[i], add_up, members);
            for (uint32_t rank = 0; rank < world; rank++) {
                assert_int_equal(members[rank].status, STATUS_OK);
            }
        }
    }
}

static void move_around(struct member *member)
{
    const struct call_options options = call_of(member, "moves");
    uint32_t own[3] = {member->rank, 7, member->rank}, all[WORLD_MAX][3];
    enum status status =
        call_all_gather(member->team, &options, own, sizeof(own), all, &member->fault);
    for (uint32_t i = 0; i < member->world && status == STATUS_OK; i++) {
        status = all[i][0] == i && all[i][1] == 7 && all[i][2] == i ? STATUS_OK : STATUS_INVALID;
    }
    char text[100] = "not this";
    if (member->rank == 2) {
        snprintf(text, sizeof(text), "what rank 2 has");
    }
    if (status == STATUS_OK) {
        status = call_broadcast(member->team, &options, text, sizeof(text), 2, &member->fault);
    }
    if (status == STATUS_OK) {
        status = call_barrier(member->team, &options, &member->fault);
    }
    member->status = strcmp(text, "what rank 2 has") == 0 ? status : STATUS_INVALID;
}

static void bytes_go_to_all(void **state)
{
    (void)state;
    struct member members[WORLD_MAX];
    play_all(WORLD_MAX, 0, move_around, members);
    for (uint32_t rank = 0; rank < WORLD_MAX; rank++) {
        assert_int_equal(members[rank].status, STATUS_OK);
    }
}

static void differ(struct member *member)
{
    const struct call_options options = call_of(member, member->rank == 1 ? "one" : "another");
    member->status = call_barrier(member->team, &options, &member->fault);
}

static void a_call_that_differs_is_named(void **state)
{
    (void)state;
    struct member members[WORLD_MAX];
    play_all(2, 0, differ, members);
    assert_int_equal(members[0].status, STATUS_MISMATCH);
    assert_int_equal(members[0].fault.kind, TEAM_DIFFERS);
    assert_int_equal(members[0].fault.rank, 1);
    assert_string_equal(members[0].fault.other.label, "one");
    assert_string_equal(members[1].fault.other.label, "another");
}

static void desert(struct member *member)
{
    const struct call_options options = call_of(member, "the last call");
    if (member->rank == 1) {
        team_say_presence(member->team, TEAM_LEFT);
    } else {
        member->status = call_barrier(member->team, &options, &member->fault);
    }
}

static void nobody_waits_for_one_that_has_left(void **state)
{
    (void)state;
    struct member members[WORLD_MAX];
    play_all(2, 0, desert, members);
    assert_int_equal(members[0].status, STATUS_UNREACHABLE);
    assert_int_equal(members[0].fault.rank, 1);
    assert_int_equal(members[0].fault.presence, TEAM_LEFT);
}

static void train_on(struct member *member)
{
    const struct call_options options = call_of(member, "a call");
    if (member->rank == 1) {
        team_say_steps(member->team, 3, 3);
    } else {
        team_say_steps(member->team, 2, 0);
        member->status = call_barrier(member->team, &options, &member->fault);
    }
}

static void nobody_waits_for_one_that_needs_its_gradient(void **state)
{
    (void)state;
    struct member members[WORLD_MAX];
    play_all(2, 0, train_on, members);
    assert_int_equal(members[0].status, STATUS_UNREACHABLE);
    assert_int_equal(members[0].fault.needs_step, 3);
}

/* All send far more than fits on the way before they receive. */
static void send_first(struct member *member)
{
    size_t count = 200000;
    struct team_header header = {.bytes = count, .label = "a letter"};
    uint32_t after = (member->rank + 1) % member->world;
    uint32_t before = (member->rank + member->world - 1) % member->world;
    unsigned char *sent = malloc(count), *come = calloc(1, count);
    memset(sent, (int)member->rank + 1, count);
    enum status status = STATUS_OK;
    for (int i = 0; i < 3 && status == STATUS_OK; i++) {
        status = letters_send(member->team, after, &header, sent, count - 1, &member->fault);
    }
    for (int i = 0; i < 3 && status == STATUS_OK; i++) {
        memset(come, 0, count);
        status = letters_receive(member->team, before, &header, come, count - 1, &member->fault);
        bool is_whole =
            come[0] == before + 1 && come[count - 2] == before + 1 && come[count - 1] == 0;
        status = status == STATUS_OK && !is_whole ? STATUS_INVALID : status;
    }
    const struct call_options options = call_of(member, "the end");
    member->status =
        status == STATUS_OK ? call_barrier(member->team, &options, &member->fault) : status;
    free(sent);
    free(come);
}

static void messages_do_not_wait_for_receivers_that_send(void **state)
{
    (void)state;
    struct member members[WORLD_MAX];
    play_all(3, 0, send_first, members);
    for (uint32_t rank = 0; rank < 3; rank++) {
        assert_int_equal(members[rank].status, STATUS_OK);
    }
}

/* Each receives from the one behind it, and nobody sends. */
static void receive_around(struct member *member)
{
    char label[TEAM_LABEL_BYTES];
    struct team_header header = {.bytes = 1, .label = "a letter"};
    unsigned char come;
    uint32_t after = (member->rank + 1) % member->world;
    snprintf(label, sizeof(label), "a letter for rank %u", member->rank);
    memcpy(header.label, label, sizeof(label));
    member->status = letters_receive(member->team, after, &header, &come, 1, &member->fault);
    atomic_store(member->is_over, true);
}

/* Whoever notices ends the job, and then the others do not wait either. */
static void check_circle(const struct member *members, uint32_t waiting, uint32_t world)
{
    uint32_t noticed = 0;
    for (uint32_t rank = 0; rank < waiting; rank++) {
        const struct team_fault *fault = &members[rank].fault;
        if (members[rank].status == STATUS_INTERRUPTED) {
            continue;
        }
        noticed++;
        assert_int_equal(members[rank].status, STATUS_UNREACHABLE);
        assert_int_equal(fault->kind, TEAM_CIRCLE);
        assert_int_equal(fault->rank, (rank + 1) % world);
        assert_int_equal(fault->after, (rank + 2) % world);
    }
    assert_in_range(noticed, 1, waiting);
}

static void receivers_in_a_circle_are_named(void **state)
{
    (void)state;
    struct member members[WORLD_MAX];
    for (uint32_t world = 2; world <= WORLD_MAX; world++) {
        play_all(world, 0, receive_around, members);
        check_circle(members, world, world);
        for (uint32_t rank = 0; rank < world; rank++) {
            char label[TEAM_LABEL_BYTES];
            snprintf(label, sizeof(label), "a letter for rank %u", (rank + 1) % world);
            if (members[rank].status == STATUS_UNREACHABLE) {
                assert_int_equal(members[rank].fault.other_pipe, TEAM_MESSAGES);
                assert_string_equal(members[rank].fault.other.label, label);
            }
        }
    }
}

/* One receives from one that adds up, with more than fits on the way. */
static void receive_beside_a_sum(struct member *member)
{
    if (member->rank == 0) {
        receive_around(member);
    } else {
        add_up(member);
        atomic_store(member->is_over, true);
    }
}

static void a_receiver_and_a_collective_do_not_wait_for_each_other(void **state)
{
    (void)state;
    static const size_t counts[] = {0, 1, 1000001};
    struct member members[WORLD_MAX];
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
        play_all(2, counts[i], receive_beside_a_sum, members);
        check_circle(members, 2, 2);
    }
}

/* Collectives of two each, which overlap in a circle. */
static void meet_around(struct member *member)
{
    static const uint32_t pairs[3][2] = {{0, 1}, {1, 2}, {0, 2}};
    const struct call_options options = {pairs[member->rank], 2, "a pair"};
    member->status = call_barrier(member->team, &options, &member->fault);
    atomic_store(member->is_over, true);
}

static void collectives_in_a_circle_are_named(void **state)
{
    (void)state;
    struct member members[WORLD_MAX];
    play_all(3, 0, meet_around, members);
    check_circle(members, 3, 3);
}

/* Rank 0 receives from rank 1, which receives from rank 2, which needs a gradient of rank 0. */
static void train_in_a_circle(struct member *member)
{
    if (member->rank == 2) {
        team_say_steps(member->team, 3, 3);
        return;
    }
    team_say_steps(member->team, member->rank == 0 ? 2 : 3, 0);
    receive_around(member);
}

static void a_circle_may_go_by_way_of_gradients(void **state)
{
    (void)state;
    struct member members[WORLD_MAX];
    play_all(3, 0, train_in_a_circle, members);
    check_circle(members, 2, 3);
    if (members[1].status == STATUS_UNREACHABLE) {
        assert_int_equal(members[1].fault.needs_step, 3);
    }
}

/* In each round another one sends to the others, who receive; then come a call of two and one of
 * all: many waits begin and end beside each other. */
static void wait_by_turns(struct member *member)
{
    static const uint32_t two[2] = {0, 1};
    const struct call_options all = call_of(member, "all"), pair = {two, 2, "the first two"};
    const struct team_header header = {.bytes = 100000, .label = "a letter"};
    unsigned char *bytes = calloc(1, header.bytes);
    enum status status = STATUS_OK;
    for (uint32_t i = 0; i < member->count && status == STATUS_OK; i++) {
        uint32_t last = member->world - 1, sender = i % member->world;
        if (member->rank == sender) {
            for (uint32_t to = 0; to < member->world && status == STATUS_OK; to++) {
                status = to == sender ? STATUS_OK
                                      : letters_send(member->team, to, &header, bytes, header.bytes,
                                                     &member->fault);
            }
        } else {
            status =
                letters_receive(member->team, sender, &header, bytes, header.bytes, &member->fault);
        }
        if (status == STATUS_OK && member->rank < 2) {
            status = call_barrier(member->team, &pair, &member->fault);
        }
        if (status == STATUS_OK) {
            status = call_broadcast(member->team, &all, bytes, header.bytes, last, &member->fault);
        }
    }
    member->status = status;
    free(bytes);
}

static void waits_that_end_are_no_circle(void **state)
{
    (void)state;
    struct member members[WORLD_MAX];
    play_all(WORLD_MAX, 500, wait_by_turns, members);
    for (uint32_t rank = 0; rank < WORLD_MAX; rank++) {
        assert_int_equal(members[rank].status, STATUS_OK);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_have_every_value_of_every_process),
        cmocka_unit_test(bytes_go_to_all),
        cmocka_unit_test(a_call_that_differs_is_named),
        cmocka_unit_test(nobody_waits_for_one_that_has_left),
        cmocka_unit_test(nobody_waits_for_one_that_needs_its_gradient),
        cmocka_unit_test(messages_do_not_wait_for_receivers_that_send),
        cmocka_unit_test(receivers_in_a_circle_are_named),
        cmocka_unit_test(a_receiver_and_a_collective_do_not_wait_for_each_other),
        cmocka_unit_test(collectives_in_a_circle_are_named),
        cmocka_unit_test(a_circle_may_go_by_way_of_gradients),
        cmocka_unit_test(waits_that_end_are_no_circle),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
