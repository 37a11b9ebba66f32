/* Tests of what a run folder tells of the times that its job was started again. */
#include "ps-server/record/history.h"
#include "tests/support/common/temp_folder.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <string.h>

static int set_up(void **state)
{
    *state = temp_folder_create();
    return 0;
}

static int tear_down(void **state)
{
    temp_folder_destroy(*state);
    return 0;
}

static void write_text(const char *folder, const char *name, const char *text)
{
    temp_folder_write(folder, name, text, strlen(text));
}

static void a_folder_without_a_run_has_no_history(void **state)
{
    struct history_entry entry = {.is_whole = true};
    assert_false(history_has_run(*state));
    assert_false(history_is_complete(*state));
    json_t *list = history_json(*state);
    assert_int_equal(json_array_size(list), 0);
    json_decref(list);
    history_complete_entry(*state, &entry);
    assert_int_equal(entry.restarts, 1);
    assert_non_null(strstr(entry.reason, "was it killed?"));
}

static void a_result_gives_the_reason_and_the_totals(void **state)
{
    struct history_entry entry = {.is_whole = true};
    write_text(*state, "summary.json",
               "{\"outcome\": \"failed\", \"reason\": \"worker 1 was lost\", \"restarts\": 4, "
               "\"workers_lost\": 2}");
    assert_true(history_has_run(*state));
    assert_false(history_is_complete(*state));
    history_complete_entry(*state, &entry);
    assert_string_equal(entry.reason, "worker 1 was lost");
    assert_int_equal(entry.restarts, 5);
    assert_int_equal(entry.workers_lost, 2);
}

static void a_completed_run_is_known(void **state)
{
    write_text(*state, "summary.json", "{\"outcome\": \"completed\"}");
    assert_true(history_is_complete(*state));
    write_text(*state, "summary.json", "{\"outcome\": \"compl");
    assert_false(history_is_complete(*state));
}

static void totals_outlive_a_coordinator_without_a_result(void **state)
{
    const struct history_entry lost_worker = {
        .reason = "worker 3 was lost", .begin_step = 7, .restarts = 1, .workers_lost = 1};
    struct history_entry entry = {.is_whole = true, .reason = "it was killed", .begin_step = 5};
    assert_int_equal(history_add(*state, &lost_worker), STATUS_OK);
    history_complete_entry(*state, &entry);
    assert_int_equal(entry.restarts, 2);
    assert_int_equal(entry.workers_lost, 1);
    assert_int_equal(history_add(*state, &entry), STATUS_OK);
    json_t *list = history_json(*state); // of the whole job alone
    assert_int_equal(json_array_size(list), 1);
    const json_t *only = json_array_get(list, 0);
    assert_string_equal(json_string_value(json_object_get(only, "reason")), "it was killed");
    assert_int_equal(json_integer_value(json_object_get(only, "begin_step")), 5);
    json_decref(list);
}

/* The launcher does not tell it again, unless it has not started another one: then once more. */
static void a_loss_is_known_to_the_next_coordinator_by_its_process(void **state)
{
    const struct history_entry loss = {
        .reason = "worker 1 was killed", .lost_launch = 24577, .workers_lost = 1};
    struct history_entry entry = {.is_whole = true};
    assert_int_equal(history_add(*state, &loss), STATUS_OK);
    history_complete_entry(*state, &entry);
    assert_int_equal(entry.workers_lost, 1);
    assert_int_equal(entry.restarts, 1); // the job has not gone on before
    assert_int_equal(entry.counted_count, 1);
    assert_int_equal(entry.counted[0], 24577);
    json_t *list = history_json(*state);
    assert_int_equal(json_array_size(list), 0);
    json_decref(list);
    assert_int_equal(history_add(*state, &entry), STATUS_OK); // it goes on
    struct history_entry next = {.is_whole = true};
    history_complete_entry(*state, &next);
    assert_int_equal(next.counted_count, 0);
    assert_int_equal(next.workers_lost, 1);
    assert_int_equal(next.restarts, 2);
}

static void what_the_checkpoint_knows_is_the_least(void **state)
{
    struct history_entry entry = {.is_whole = true, .restarts = 9};
    write_text(*state, "summary.json", "{\"restarts\": 1}");
    history_complete_entry(*state, &entry);
    assert_int_equal(entry.restarts, 9);
}

static void a_cut_line_and_a_foreign_one_do_not_matter(void **state)
{
    const struct history_entry entry = {.is_whole = true, .reason = "again", .restarts = 3};
    struct history_entry next = {.is_whole = true};
    write_text(*state, HISTORY_FILE, "[1]\n{\"of\": \"job\", \"restarts\": -8}\n{\"of\": \"jo");
    assert_int_equal(history_add(*state, &entry), STATUS_OK);
    history_complete_entry(*state, &next);
    assert_int_equal(next.restarts, 4);
    json_t *list = history_json(*state);
    assert_int_equal(json_array_size(list), 2);
    json_decref(list);
}

/* A reason may name a file of the user's, or have been cut within a character. */
static void a_reason_that_is_no_utf8_is_written_as_far_as_it_is(void **state)
{
    const struct history_entry entry = {
        .is_whole = true, .reason = "cannot read caf\xe9", .restarts = UINT32_MAX};
    assert_int_equal(history_add(*state, &entry), STATUS_OK);
    json_t *list = history_json(*state);
    assert_string_equal(json_string_value(json_object_get(json_array_get(list, 0), "reason")),
                        "cannot read caf?");
    json_decref(list);
    struct history_entry next = {.is_whole = true};
    history_complete_entry(*state, &next);
    assert_true(next.restarts == UINT32_MAX); // it does not wrap
}

#define HISTORY_TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        HISTORY_TEST(a_folder_without_a_run_has_no_history),
        HISTORY_TEST(a_result_gives_the_reason_and_the_totals),
        HISTORY_TEST(a_completed_run_is_known),
        HISTORY_TEST(totals_outlive_a_coordinator_without_a_result),
        HISTORY_TEST(a_loss_is_known_to_the_next_coordinator_by_its_process),
        HISTORY_TEST(what_the_checkpoint_knows_is_the_least),
        HISTORY_TEST(a_cut_line_and_a_foreign_one_do_not_matter),
        HISTORY_TEST(a_reason_that_is_no_utf8_is_written_as_far_as_it_is),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
