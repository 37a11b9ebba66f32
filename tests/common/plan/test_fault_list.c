/* Tests of the list that --fault gives: what is read, what is refused, and what strikes whom when.
 */
#include "common/plan/fault_list.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <stdio.h>
#include <string.h>

static struct faults parse(const char *text)
{
    struct faults faults;
    char why[256] = "";
    if (faults_parse(text, &faults, why, sizeof(why)) != STATUS_OK) {
        fail_msg("%s", why);
    }
    return faults;
}

static void what_is_read_is_written_as_it_was(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "rank=2,step=100,kill",         "after=step:150,join",
        "rank=0,step=1,stop=5s",        "shard=0,step=50,kill",
        "rank=2,step=100,partition=3s", "shard=12,step=1000000000000000,stop=0.25s"};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        const struct faults faults = parse(texts[i]);
        char text[FAULT_TEXT_BYTES];
        assert_int_equal(faults.count, 1);
        fault_format(&faults.list[0], text);
        assert_string_equal(text, texts[i]);
    }
    assert_int_equal(parse("none").count, 0);
    assert_int_equal(parse("rank=1,step=2,kill;rank=1,step=3,kill;shard=1,step=2,stop=1s").count,
                     3);
}

static void what_is_no_fault_is_refused_and_says_why(void **state)
{
    (void)state;
    static const char *const texts[][2] = {
        {"", "is no fault"},
        {"kill", "must begin with rank=R or shard=K"},
        {"worker=1,step=2,kill", "must begin with rank=R or shard=K"},
        {"rank=,step=2,kill", "must begin with rank=R or shard=K"},
        {"rank=-1,step=2,kill", "must begin with rank=R or shard=K"},
        {"rank=1.5,step=2,kill", "must begin with rank=R or shard=K"},
        {"rank=99999999999,step=2,kill", "must begin with rank=R or shard=K"},
        {"step=2,rank=1,kill", "must begin with rank=R or shard=K"},
        {"rank=1", "names no step"},
        {"rank=1,kill", "names no step"},
        {"rank=1,step=0,kill", "steps count from 1"},
        {"rank=1,step=-5,kill", "names no step"},
        {"rank=1,step=1e3,kill", "names no step"},
        {"shard=1,step=99999999999999999999,kill", "names no step"},
        {"rank=1,step=2", "does nothing there"},
        {"rank=1,step=2,", "does nothing there"},
        {"rank=1,step=2,KILL", "does what is not known"},
        {"rank=1,step=2,kill,", "does what is not known"},
        {"rank=1,step=2,kill=9", "does what is not known"},
        {"rank=1,step=2,stop", "does what is not known"},
        {"rank=1,step=2,partition", "does what is not known"},
        {"rank=1,step=2,partition=", "does not say how long"},
        {"rank=1,step=2,partition=0s", "too short or too long"},
        {"rank=1,step=2,stop=", "does not say how long"},
        {"rank=1,step=2,stop=5", "does not say how long"},
        {"rank=1,step=2,stop=5ms", "does not say how long"},
        {"rank=1,step=2,stop=-5s", "does not say how long"},
        {"rank=1,step=2,stop=nans", "does not say how long"},
        {"rank=1,step=2,stop=0s", "too short or too long"},
        {"rank=1,step=2,stop=3601s", "too short or too long"},
        {"rank=1,step=2,stop=0.00000000000000000000000000000001s", "more digits"},
        {"rank=1,step=2,kill;", "behind each semicolon"},
        {"rank=1,step=2,kill;;rank=2,step=2,kill", "behind each semicolon"},
        {"rank=1,step=2,kill; rank=2,step=2,kill", "must begin with"},
        {"rank=1,step=2,kill;rank=1,step=2,stop=1s", "another fault is already"},
        {"none;rank=1,step=2,kill", "must begin with"},
        {"after=step:0,join", "steps count from 1"},
        {"after=150,join", "must stand step:S"},
        {"after=step:150", "must stand join"},
        {"after=step:150,kill", "must stand join"},
        {"after=step:150,join,join", "must stand join"},
        {"after=step:15,join;after=step:15,join", "another fault is already"},
    };
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct faults faults = {.count = 7};
        char why[256] = "";
        if (faults_parse(texts[i][0], &faults, why, sizeof(why)) != STATUS_INVALID ||
            strstr(why, texts[i][1]) == NULL) {
            fail_msg("'%s': %s", texts[i][0], why);
        }
        assert_int_equal(faults.count, 7);
    }
}

static void sixteen_faults_are_taken_and_one_more_is_not(void **state)
{
    (void)state;
    char text[1024] = "", why[256] = "";
    struct faults faults;
    for (unsigned i = 0; i <= FAULTS_MAX; i++) {
        if (i > 0) {
            assert_int_equal(faults_parse(text, &faults, why, sizeof(why)), STATUS_OK);
        }
        size_t used = strlen(text);
        snprintf(text + used, sizeof(text) - used, "%srank=%u,step=2,kill", i > 0 ? ";" : "", i);
    }
    assert_int_equal(faults_parse(text, &faults, why, sizeof(why)), STATUS_INVALID);
    assert_non_null(strstr(why, "at most 16"));
}

/* The step of the fault that strikes behind one; 0: none does. */
static uint64_t next(const struct faults *faults, enum fault_place place, uint32_t number,
                     uint64_t step)
{
    const struct fault_seat seat = {place, number};
    const struct fault *fault = faults_next(faults, &seat, step);
    return fault != NULL ? fault->step : 0;
}

static void a_fault_strikes_its_own_rank_or_shard_and_steps_that_are_still_to_come(void **state)
{
    (void)state;
    const struct faults faults =
        parse("rank=1,step=9,stop=1s;rank=1,step=4,stop=1s;shard=1,step=5,stop=1s");
    assert_int_equal(next(&faults, FAULT_AT_RANK, 1, 0), 4);
    assert_int_equal(next(&faults, FAULT_AT_RANK, 1, 3), 4);
    assert_int_equal(next(&faults, FAULT_AT_RANK, 1, 4), 9);
    assert_int_equal(next(&faults, FAULT_AT_RANK, 1, 9), 0);
    assert_int_equal(next(&faults, FAULT_AT_RANK, 0, 0), 0);
    assert_int_equal(next(&faults, FAULT_AT_SHARD, 1, 0), 5);
    assert_int_equal(next(&faults, FAULT_AT_SHARD, 0, 0), 0);
}

static void nothing_strikes_behind_a_kill_that_is_yet_to_come(void **state)
{
    (void)state;
    const struct faults faults = parse("rank=2,step=100,kill;rank=1,step=50,kill;"
                                       "shard=0,step=50,kill;rank=0,step=45,stop=1s");
    assert_ptr_equal(faults_next_kill(&faults), &faults.list[1]);
    assert_int_equal(next(&faults, FAULT_AT_RANK, 0, 40), 45);
    assert_int_equal(next(&faults, FAULT_AT_RANK, 1, 40), 50);
    assert_int_equal(next(&faults, FAULT_AT_SHARD, 0, 40), 0);
    assert_int_equal(next(&faults, FAULT_AT_RANK, 2, 40), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_read_is_written_as_it_was),
        cmocka_unit_test(what_is_no_fault_is_refused_and_says_why),
        cmocka_unit_test(sixteen_faults_are_taken_and_one_more_is_not),
        cmocka_unit_test(a_fault_strikes_its_own_rank_or_shard_and_steps_that_are_still_to_come),
        cmocka_unit_test(nothing_strikes_behind_a_kill_that_is_yet_to_come),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
