/* Tests of the checkpoint in memory: what is whole stays until the next one is, too. */
#include "ps-server/checkpoint/vault.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on

static struct vault *begin(uint64_t step)
{
    struct vault *vault;
    assert_int_equal(vault_create(&vault), STATUS_OK);
    vault_begin(vault, step);
    return vault;
}

/* Stores `count` values from `first` on, each `value`. */
static void store(struct vault *vault, const char *name, struct span span, float value)
{
    float values[8];
    const struct wire_piece piece = {.vector = name, .total = 8};
    const struct message message = {
        .kind = MESSAGE_PIECE, .piece = &piece, .span = span, .values = values};
    for (size_t i = 0; i < 8; i++) {
        values[i] = value;
    }
    assert_int_equal(vault_store(vault, &message), STATUS_OK);
}

static void check(const struct vault *vault, const char *name, float first, float last)
{
    uint64_t total;
    const float *values = vault_find(vault, name, &total);
    assert_non_null(values);
    assert_int_equal(total, 8);
    assert_true(values[0] == first);
    assert_true(values[7] == last);
}

static void pieces_of_a_vector_are_found_when_it_is_whole(void **state)
{
    (void)state;
    struct vault *vault = begin(5);
    store(vault, "params", (struct span){4, 4}, 2);
    store(vault, "params", (struct span){0, 4}, 1);
    assert_int_equal(vault_step(vault), 0);
    assert_null(vault_job_part(vault));
    assert_int_equal(vault_commit(vault, json_integer(55)), STATUS_OK);
    assert_int_equal(vault_step(vault), 5);
    assert_int_equal(json_integer_value(vault_job_part(vault)), 55);
    check(vault, "params", 1, 2);
    uint64_t total;
    assert_null(vault_find(vault, "state-1", &total));
    vault_destroy(vault);
}

static void what_is_whole_stays_until_the_next_one_is(void **state)
{
    (void)state;
    struct vault *vault = begin(5);
    store(vault, "params", (struct span){0, 8}, 1);
    assert_int_equal(vault_commit(vault, json_integer(5)), STATUS_OK);
    vault_begin(vault, 10);
    store(vault, "params", (struct span){0, 8}, 2);
    assert_int_equal(vault_step(vault), 5);
    check(vault, "params", 1, 1);
    vault_abandon(vault);
    store(vault, "params", (struct span){0, 8}, 3); // was on its way
    assert_int_equal(vault_step(vault), 5);
    vault_begin(vault, 15);
    store(vault, "params", (struct span){0, 8}, 4);
    assert_int_equal(vault_commit(vault, json_integer(15)), STATUS_OK);
    assert_int_equal(vault_step(vault), 15);
    check(vault, "params", 4, 4);
    vault_destroy(vault);
}

static void a_vector_that_a_checkpoint_does_not_have_is_not_found_in_its_buffers(void **state)
{
    (void)state;
    struct vault *vault = begin(1);
    uint64_t total;
    for (uint64_t step = 1; step <= 3; step++) {
        vault_begin(vault, step);
        store(vault, "params", (struct span){0, 8}, (float)step);
        if (step == 1) {
            store(vault, "rank-3/residual", (struct span){0, 8}, 1);
        }
        assert_int_equal(vault_commit(vault, json_integer(1)), STATUS_OK);
    }
    assert_null(vault_find(vault, "rank-3/residual", &total));
    check(vault, "params", 3, 3);
    vault_destroy(vault);
}

static void what_is_held_stays_while_others_come_and_go(void **state)
{
    (void)state;
    struct vault *vault = begin(1);
    store(vault, "params", (struct span){0, 8}, 1);
    store(vault, "state-1", (struct span){0, 8}, 1);
    assert_int_equal(vault_commit(vault, json_integer(1)), STATUS_OK);
    vault_hold(vault);
    const struct vault_vector held = vault_vector(vault, 1);
    assert_string_equal(held.name, "state-1");
    assert_null(vault_vector(vault, 2).name);
    for (uint64_t step = 2; step <= 6; step++) {
        vault_begin(vault, step);
        store(vault, "params", (struct span){0, 8}, (float)step);
        store(vault, "state-1", (struct span){0, 8}, (float)step);
        assert_true(held.values[0] == 1 && held.values[7] == 1);
        assert_int_equal(vault_commit(vault, json_integer(1)), STATUS_OK);
        check(vault, "params", (float)step, (float)step);
    }
    vault_let_go(vault);
    vault_begin(vault, 7);
    store(vault, "params", (struct span){0, 8}, 7);
    check(vault, "params", 6, 6);
    vault_destroy(vault);
}

static void without_what_it_says_of_the_job_it_is_not_whole(void **state)
{
    (void)state;
    struct vault *vault = begin(5);
    store(vault, "params", (struct span){0, 8}, 1);
    assert_int_equal(vault_commit(vault, NULL), STATUS_NO_MEMORY);
    assert_int_equal(vault_step(vault), 0);
    vault_destroy(vault);
    vault_destroy(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces_of_a_vector_are_found_when_it_is_whole),
        cmocka_unit_test(what_is_whole_stays_until_the_next_one_is),
        cmocka_unit_test(a_vector_that_a_checkpoint_does_not_have_is_not_found_in_its_buffers),
        cmocka_unit_test(what_is_held_stays_while_others_come_and_go),
        cmocka_unit_test(without_what_it_says_of_the_job_it_is_not_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
