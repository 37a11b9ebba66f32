/* Tests of what the launcher takes from what members write. */
#include "deploy/launch/members.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <stdlib.h>
#include <string.h>

static void announce(struct members *members, const char *text, char ret_endpoint[40])
{
    const struct agent_message message = {
        .kind = AGENT_OUTPUT, .id = members->first_id, .stream = "announce", .text = text};
    assert_true(members_take(members, 0, &message, ret_endpoint, 40));
}

static void signs_of_life_come_behind_the_endpoint(void **state)
{
    struct host_link link = {.state = HOST_LINK_UP};
    struct crew crew = {.links = &link, .count = 1};
    struct members members;
    char endpoint[40] = "";
    (void)state;
    assert_int_equal(members_init(&members, &crew, 1), STATUS_OK);
    const struct member *member = &members.list[0];
    announce(&members, "tcp://here:1", endpoint);
    assert_string_equal(endpoint, "tcp://here:1");
    assert_int_equal(member->alive_ms, 0); // it has given none
    announce(&members, "alive 20000", endpoint);
    assert_true(member->alive_ms > 0);
    assert_int_equal(member->patience_ms, 20000);
    announce(&members, "busy", endpoint);
    assert_int_equal(member->alive_ms, 0); // none is due
    announce(&members, "alive 4000", endpoint);
    assert_true(member->alive_ms > 0);
    assert_int_equal(member->patience_ms, 4000);
    assert_string_equal(endpoint, "tcp://here:1");
    members_finish(&members);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(signs_of_life_come_behind_the_endpoint),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
