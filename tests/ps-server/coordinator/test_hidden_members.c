/* Tests of members that listen where those of other hosts cannot connect to them. */
#include "tests/support/ps-server/coordinator_story.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <string.h>

/* JOIN of one that listens at a loopback address, or at another one (""). */
static void join_at(struct story *story, uint64_t peer, enum member_role role, uint64_t host_id,
                    const char *loopback)
{
    const struct wire_member member = {.role = role,
                                       .has_rank = role == ROLE_SERVER,
                                       .rank = role == ROLE_SERVER ? 1 : 0,
                                       .host = "node",
                                       .host_id = host_id,
                                       .loopback = loopback};
    story_give(story, peer,
               (struct message){.kind = MESSAGE_JOIN, .member = &member, .text = RINGSIDE_VERSION},
               110);
}

static void expect_hidden(const struct story *story, uint64_t peer)
{
    const struct transcript *transcript = &story->transcript;
    for (uint32_t i = 0; i < transcript->sent_count; i++) {
        if (transcript->sent[i].kind == MESSAGE_REFUSE) {
            assert_int_equal(transcript->sent[i].peer, peer);
            assert_non_null(strstr(transcript->last_error,
                                   "): --bind is 127.0.0.1, a loopback address, "
                                   "which the workers on other hosts cannot connect to: say "
                                   "--bind 0.0.0.0, or an address of its host that they reach"));
            return;
        }
    }
    fail_msg("nobody is refused");
}

static void
one_at_a_loopback_address_is_refused_where_others_have_come_from_other_hosts(void **state)
{
    (void)state;
    struct story story;
    story_open(&story, "ring", 3, 0);
    join_at(&story, 1, ROLE_WORKER, 1, "");
    join_at(&story, 2, ROLE_WORKER, 2, "127.0.0.1");
    expect_hidden(&story, 2);
    assert_int_equal(story.coordinator.membership.workers[1].state, SLOT_FREE);
    join_at(&story, 3, ROLE_WORKER, 1, "127.0.0.1"); // all that are there are on its host
    assert_int_equal(story.coordinator.membership.workers[1].peer, 3);
    coordinator_finish(&story.coordinator);
}

static void one_at_a_loopback_address_goes_when_another_comes_from_another_host(void **state)
{
    (void)state;
    struct story story;
    story_open(&story, "ring", 2, 0);
    join_at(&story, 1, ROLE_WORKER, 1, "127.0.0.1");
    join_at(&story, 2, ROLE_WORKER, 2, "");
    expect_hidden(&story, 1);
    assert_int_equal(story.coordinator.membership.workers[1].peer, 2);
    join_at(&story, 3, ROLE_WORKER, 1, "");
    assert_int_equal(story_last_kind(&story), MESSAGE_WELCOME);
    assert_int_equal(story.coordinator.membership.workers[0].peer, 3);
    coordinator_finish(&story.coordinator);
}

static void give_sum(struct story *story, uint64_t peer, double value)
{
    const struct wire_sum sum = {.count = 1, .values = &value};
    story_give(story, peer, (struct message){.kind = MESSAGE_SUM, .sum = &sum}, 120);
}

/* In its place another process gives. Sums are added in the place of the first worker. */
static void what_it_had_given_to_a_sum_goes_with_it(void **state)
{
    (void)state;
    struct story story;
    story_open(&story, "ring", 2, 0);
    join_at(&story, 1, ROLE_WORKER, 1, "127.0.0.1");
    give_sum(&story, 1, 100);
    join_at(&story, 2, ROLE_WORKER, 2, "");
    expect_hidden(&story, 1);
    give_sum(&story, 2, 3);
    assert_int_equal(story.coordinator.sums.round, 0); // it waits for the other one
    join_at(&story, 3, ROLE_WORKER, 1, "");
    give_sum(&story, 3, 5);
    assert_int_equal(story_last_kind(&story), MESSAGE_SUM);
    assert_true(story.coordinator.sums.values[0] == 8);
    coordinator_finish(&story.coordinator);
}

static void nobody_goes_for_one_that_gets_no_place(void **state)
{
    (void)state;
    struct story story;
    story_open(&story, "ring", 2, 0);
    join_at(&story, 1, ROLE_WORKER, 1, "127.0.0.1");
    join_at(&story, 2, ROLE_WORKER, 1, "127.0.0.1");
    join_at(&story, 3, ROLE_WORKER, 2, "");
    assert_int_equal(story_last_kind(&story), MESSAGE_REFUSE);
    assert_int_equal(story.transcript.sent[story.transcript.sent_count - 1].peer, 3);
    assert_int_equal(story.coordinator.membership.workers[0].state, SLOT_JOINED);
    assert_int_equal(story.coordinator.membership.workers[1].state, SLOT_JOINED);
    coordinator_finish(&story.coordinator);
}

static void a_server_at_a_loopback_address_is_refused_likewise(void **state)
{
    (void)state;
    for (int is_first = 0; is_first < 2; is_first++) {
        struct story story;
        story_open(&story, "ps-sync", 2, 2);
        if (is_first != 0) {
            join_at(&story, 10, ROLE_SERVER, 2, "127.0.0.1");
        }
        join_at(&story, 1, ROLE_WORKER, 1, "127.0.0.1"); // nobody connects to it
        if (is_first == 0) {
            join_at(&story, 10, ROLE_SERVER, 2, "127.0.0.1");
        }
        expect_hidden(&story, 10);
        assert_int_equal(story.coordinator.membership.servers[1].state, SLOT_FREE);
        assert_int_equal(story.coordinator.membership.workers[0].state, SLOT_JOINED);
        coordinator_finish(&story.coordinator);
    }
}

static void on_one_host_a_loopback_address_will_do(void **state)
{
    (void)state;
    struct story story;
    story_open(&story, "ring", 2, 0);
    join_at(&story, 1, ROLE_WORKER, 1, "127.0.0.1");
    join_at(&story, 2, ROLE_WORKER, 1, "127.0.0.1");
    assert_int_equal(story.coordinator.membership.workers[1].peer, 2);
    coordinator_finish(&story.coordinator);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(
            one_at_a_loopback_address_is_refused_where_others_have_come_from_other_hosts),
        cmocka_unit_test(one_at_a_loopback_address_goes_when_another_comes_from_another_host),
        cmocka_unit_test(what_it_had_given_to_a_sum_goes_with_it),
        cmocka_unit_test(nobody_goes_for_one_that_gets_no_place),
        cmocka_unit_test(a_server_at_a_loopback_address_is_refused_likewise),
        cmocka_unit_test(on_one_host_a_loopback_address_will_do),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
