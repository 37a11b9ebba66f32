/* Tests of calls and messages: threads in the place of processes, each with its own view of the
 * memory of all. */
#include "worker/collective/call.h"
#include "worker/collective/mail.h"

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

#define WORLD_MAX 4

struct member {
    struct team *team;
    uint32_t rank, world;
    enum status status;
    struct team_fault fault;
    void (*play)(struct member *member);
    size_t count; // of the values that are reduced
};

static const uint32_t everybody[WORLD_MAX] = {0, 1, 2, 3};

static bool never(void *context)
{
    (void)context;
    return false;
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
    for (uint32_t i = 0; i < world; i++) {
        const struct team_options options = {.rank = i, .world = world, .is_over = never};
        members[i] = (struct member){.rank = i, .world = world, .play = play, .count = count};
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
    assert_true(members[0].fault.is_label);
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
        status = mail_send(member->team, after, &header, sent, count - 1, &member->fault);
    }
    for (int i = 0; i < 3 && status == STATUS_OK; i++) {
        memset(come, 0, count);
        status = mail_receive(member->team, before, &header, come, count - 1, &member->fault);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_have_every_value_of_every_process),
        cmocka_unit_test(bytes_go_to_all),
        cmocka_unit_test(a_call_that_differs_is_named),
        cmocka_unit_test(nobody_waits_for_one_that_has_left),
        cmocka_unit_test(nobody_waits_for_one_that_needs_its_gradient),
        cmocka_unit_test(messages_do_not_wait_for_receivers_that_send),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
