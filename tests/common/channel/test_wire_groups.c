/* Tests of groups of parameters on the wire: what comes back, and what is refused. */
#include "common/optimizer/groups.h"
#include "tests/support/common/wire_samples.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <math.h>
#include <string.h>

static void check_same_groups(const struct optimizer_groups *got,
                              const struct optimizer_groups *sent)
{
    assert_int_equal(got->group_count, sent->group_count);
    assert_int_equal(got->run_count, sent->run_count);
    assert_int_equal(got->is_relative, sent->is_relative);
    assert_memory_equal(got->groups, sent->groups, sent->group_count * sizeof(*sent->groups));
    if (sent->run_count > 0) {
        assert_memory_equal(got->run_ends, sent->run_ends, sent->run_count * sizeof(uint64_t));
        assert_memory_equal(got->run_groups, sent->run_groups, sent->run_count * sizeof(uint32_t));
    }
}

static void groups_come_back_field_by_field(void **state)
{
    (void)state;
    const enum message_kind kinds[] = {MESSAGE_READY, MESSAGE_START, MESSAGE_PUSH};
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        struct message sent = wire_sample(kinds[i]), got = wire_sample_send(&sent);
        check_same_groups(got.groups, sent.groups);
    }
}

static void the_most_groups_and_runs_fit_a_header(void **state)
{
    (void)state;
    static struct optimizer_group groups[OPTIMIZER_GROUPS_MAX];
    static uint64_t ends[OPTIMIZER_RUNS_MAX];
    static uint32_t members[OPTIMIZER_RUNS_MAX];
    for (uint32_t i = 0; i < OPTIMIZER_GROUPS_MAX; i++) {
        groups[i] = (struct optimizer_group){0.1, {0.2, 0.3, 0.4, 0.5, 0.6, 0.7}};
    }
    for (uint32_t i = 0; i < OPTIMIZER_RUNS_MAX; i++) {
        ends[i] = LAYOUT_VALUES_MAX - OPTIMIZER_RUNS_MAX + 1 + i;
        members[i] = i % OPTIMIZER_GROUPS_MAX;
    }
    const struct optimizer_groups most = {
        groups, OPTIMIZER_GROUPS_MAX, OPTIMIZER_RUNS_MAX, ends, members, true};
    struct message ready = wire_sample(MESSAGE_READY);
    ready.groups = &most;
    struct message got = wire_sample_send(&ready);
    check_same_groups(got.groups, &most);
}

static void groups_that_make_no_sense_are_refused(void **state)
{
    (void)state;
    static const struct optimizer_group rows[2] = {{1, {0}}, {(double)NAN, {0}}};
    static const struct optimizer_group infinite[1] = {{1, {.epsilon = (double)INFINITY}}};
    static const uint64_t same[2] = {5, 5}, down[2] = {5, 4}, zero[1] = {0},
                          far[1] = {LAYOUT_VALUES_MAX + 1}, end[1] = {5};
    static const uint32_t none[2] = {0, 0}, beyond[1] = {1};
    const struct optimizer_groups bad[] = {
        {rows, 0, 0, NULL, NULL, true},     {rows, 2, 0, NULL, NULL, true},
        {infinite, 1, 0, NULL, NULL, true}, {rows, 1, 2, same, none, true},
        {rows, 1, 2, down, none, true},     {rows, 1, 1, zero, none, true},
        {rows, 1, 1, far, none, true},      {rows, 1, 1, end, beyond, true},
    };
    struct message ready = wire_sample(MESSAGE_READY), got;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        ready.groups = &bad[i];
        assert_int_equal(wire_sample_decode_as(wire_sample_encode(&ready), NULL, 0, &got),
                         STATUS_MALFORMED);
    }
    struct message pull = wire_sample(MESSAGE_PULL);
    pull.groups = wire_sample(MESSAGE_PUSH).groups; // a kind that has none
    assert_int_equal(wire_sample_decode_as(wire_sample_encode(&pull), NULL, 0, &got),
                     STATUS_MALFORMED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(groups_come_back_field_by_field),
        cmocka_unit_test(the_most_groups_and_runs_fit_a_header),
        cmocka_unit_test(groups_that_make_no_sense_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
