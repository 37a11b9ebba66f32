/* Tests of what a worker keeps for a coordinator that comes in the place of a lost one. */
#include "worker/link/absence.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <string.h>

#define TOLD_MAX 64

struct told {
    struct {
        enum message_kind kind;
        uint32_t rank;
        uint64_t step, steps;
        bool is_repeated, closes_period;
    } list[TOLD_MAX];
    uint32_t count;
};

static void tell(void *context, const struct message *message)
{
    struct told *told = context;
    const struct wire_report *report = message->report;
    assert_true(told->count < TOLD_MAX);
    told->list[told->count].kind = message->kind;
    told->list[told->count].rank = message->rank;
    told->list[told->count].step = message->step;
    told->list[told->count].steps = report != NULL ? report->steps : 0;
    told->list[told->count].is_repeated = report != NULL && report->is_repeated;
    told->list[told->count].closes_period = report != NULL && report->closes_period;
    told->count++;
}

static struct outbox_entry report_of(uint32_t rank, uint64_t step, bool closes_period)
{
    struct outbox_entry entry, copy = {.message = {.kind = MESSAGE_REPORT}};
    copy.report = (struct wire_report){.steps = 5, .images = 10, .closes_period = closes_period};
    copy.message.rank = rank;
    copy.message.step = step;
    copy.message.report = &copy.report;
    outbox_entry_copy(&entry, &copy);
    return entry;
}

/* The entry is copied again, since a returned one has moved. */
static void note_told(struct absence *absence, uint32_t rank, uint64_t step, bool closes_period)
{
    struct outbox_entry entry = report_of(rank, step, closes_period), own;
    entry.message.report = &entry.report;
    entry.message.text = entry.text;
    outbox_entry_copy(&own, &entry);
    absence_note_told(absence, &own);
}

static void hold(struct absence *absence, enum message_kind kind, uint64_t step)
{
    struct outbox_entry entry = report_of(3, step, false), own;
    entry.message.kind = kind;
    entry.message.report = kind == MESSAGE_REPORT ? &entry.report : NULL;
    entry.message.text = entry.text;
    outbox_entry_copy(&own, &entry);
    absence_hold(absence, &own);
}

static void what_was_told_is_told_again_in_short(void **state)
{
    struct absence absence = {0};
    struct told told = {.count = 0};
    (void)state;
    assert_int_equal(absence_begin(&absence, 2, 2), STATUS_OK);
    for (uint64_t step = 5; step <= 50; step += 5) {
        note_told(&absence, 2, step, false);
        note_told(&absence, 3, step, false);
    }
    note_told(&absence, 2, 50, true);
    absence_tell(&absence, tell, &told);
    assert_int_equal(told.count, 3);
    assert_int_equal(told.list[0].rank, 2);
    assert_int_equal(told.list[0].steps, 50);
    assert_int_equal(told.list[0].step, 50);
    assert_int_equal(told.list[1].rank, 3);
    assert_true(told.list[2].closes_period);
    for (uint32_t i = 0; i < told.count; i++) {
        assert_true(told.list[i].is_repeated);
    }
    absence_finish(&absence);
}

static void what_could_not_be_said_is_said_in_order_and_once(void **state)
{
    struct absence absence = {0};
    struct told told = {.count = 0}, later = {.count = 0};
    (void)state;
    assert_int_equal(absence_begin(&absence, 2, 2), STATUS_OK);
    for (uint64_t step = 5; step <= 100; step += 5) { // more than there is room for at first
        hold(&absence, step == 50 ? MESSAGE_SNAPSHOT : MESSAGE_REPORT, step);
    }
    absence_tell(&absence, tell, &told);
    assert_int_equal(told.count, 20);
    for (uint32_t i = 0; i < told.count; i++) {
        assert_int_equal(told.list[i].step, 5 * (i + 1));
        assert_false(told.list[i].is_repeated);
    }
    assert_int_equal(told.list[9].kind, MESSAGE_SNAPSHOT);
    assert_int_equal(absence.snapshot_step, 50);
    absence_tell(&absence, tell, &later); // to a third coordinator
    assert_int_equal(later.count, 1);
    assert_int_equal(later.list[0].steps, 95);
    assert_true(later.list[0].is_repeated);
    absence_finish(&absence);
}

static void what_waits_for_an_answer_is_asked_again_until_it_comes(void **state)
{
    struct absence absence = {0};
    (void)state;
    assert_int_equal(absence_begin(&absence, 2, 2), STATUS_OK);
    assert_null(absence_unanswered(&absence));
    hold(&absence, MESSAGE_PASSED, 7);
    assert_int_equal(absence_unanswered(&absence)->kind, MESSAGE_PASSED);
    absence_note_phase(&absence);
    assert_null(absence_unanswered(&absence));
    hold(&absence, MESSAGE_DONE, 9);
    assert_int_equal(absence_unanswered(&absence)->kind, MESSAGE_DONE);
    absence_finish(&absence);
}

static void the_last_sum_is_kept_for_those_who_have_not_got_it(void **state)
{
    struct absence absence = {0};
    const double first[2] = {1, 2}, second[3] = {3, 4, 5};
    const struct wire_sum sums[2] = {{0, 2, first}, {1, 3, second}};
    (void)state;
    absence_note_sum(&absence, &sums[0]); // of a job that does not outlast its coordinator
    assert_null(absence.sum);
    assert_int_equal(absence_begin(&absence, 2, 2), STATUS_OK);
    absence_note_sum(&absence, &sums[0]);
    absence_note_sum(&absence, &sums[1]);
    assert_int_equal(absence.sum_count, 3);
    assert_memory_equal(absence.sum, second, sizeof(second));
    absence_finish(&absence);
}

static void note_sum(struct absence *absence)
{
    static const double value = 1;
    absence_note_sum(absence, &(struct wire_sum){0, 1, &value});
}

static void a_commit_is_told_again_until_the_sum_behind_it_has_come(void **state)
{
    struct absence absence = {0};
    struct told told = {.count = 0};
    struct outbox_entry commit = {.message = {.kind = MESSAGE_COMMIT, .rank = 3, .step = 10}};
    (void)state;
    assert_int_equal(absence_begin(&absence, 3, 1), STATUS_OK);
    absence_note_told(&absence, &commit);
    assert_false(absence.has_commit);
    absence_tell(&absence, tell, &told);
    assert_int_equal(told.count, 1);
    assert_int_equal(told.list[0].kind, MESSAGE_COMMIT);
    assert_int_equal(told.list[0].step, 10);
    note_sum(&absence);
    assert_true(absence.has_commit && absence.commit_step == 10);
    absence_tell(&absence, tell, &told);
    assert_int_equal(told.count, 1);
    commit.message.step = 20;
    absence_hold(&absence, &commit); // there is nobody to tell
    assert_int_equal(absence.commit_step, 10);
    absence_tell(&absence, tell, &told);
    assert_int_equal(told.count, 2);
    assert_int_equal(told.list[1].step, 20);
    absence_finish(&absence);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_told_is_told_again_in_short),
        cmocka_unit_test(what_could_not_be_said_is_said_in_order_and_once),
        cmocka_unit_test(what_waits_for_an_answer_is_asked_again_until_it_comes),
        cmocka_unit_test(the_last_sum_is_kept_for_those_who_have_not_got_it),
        cmocka_unit_test(a_commit_is_told_again_until_the_sum_behind_it_has_come),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
