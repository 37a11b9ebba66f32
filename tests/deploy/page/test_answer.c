/* Tests of the sentences of a report: what is claimed, and what is not. */
#include "deploy/page/answer.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <stdio.h>
#include <string.h>

static struct answer_setting setting(const char *label, size_t runs, double rate, double half_width)
{
    return (struct answer_setting){.label = label,
                                   .planned = runs,
                                   .completed = runs,
                                   .workers = 4,
                                   .digest = "",
                                   .rate = {runs, rate, half_width},
                                   .compute_ms = {runs, 5, 0.1},
                                   .exchange_ms = {runs, 1, 0.1},
                                   .input_ms = {runs, 0.1, 0.01}};
}

static void check(const struct answer_setting *settings, size_t count, const char *expected)
{
    char text[ANSWER_BYTES];
    const struct answer_input input = {.settings = settings, .count = count};
    answer_write(&input, text);
    assert_string_equal(text, expected);
}

static void the_answer_names_bits_speed_and_loss(void **state)
{
    (void)state;
    struct answer_setting two[] = {setting("ring", 3, 113, 2), setting("ps-sync", 3, 100, 2)};
    two[0].digest = two[1].digest = "abc";
    two[1].exchange_ms.mean = 1.8;
    check(two, 2,
          "ring and ps-sync end with the same bits.\n"
          "ring is 1.13 times as fast as ps-sync; what ps-sync loses is exchange wait (0.8 ms more "
          "in a step).");
}

static void intervals_that_overlap_show_no_difference(void **state)
{
    (void)state;
    const struct answer_setting two[] = {setting("ring", 3, 113, 7), setting("ps-sync", 3, 100, 7)};
    check(two, 2, "These runs show no difference in speed between ring and ps-sync.");
}

static void single_runs_must_differ_by_more(void **state)
{
    (void)state;
    struct answer_setting two[] = {setting("ring", 1, 105, 0), setting("ps-sync", 1, 100, 0)};
    check(two, 2, "Single runs this close show no difference in speed between ring and ps-sync.");
    two[0].rate.mean = 150;
    check(two, 2, "ring is 1.50 times as fast as ps-sync, each run once.");
}

static void no_loss_is_named_that_the_times_do_not_show(void **state)
{
    (void)state;
    struct answer_setting two[] = {setting("ring", 3, 150, 2), setting("ps-sync", 3, 100, 2)};
    two[1].exchange_ms = (struct statistics){3, 1.8, 2}; // its interval covers the other's mean
    check(two, 2, "ring is 1.50 times as fast as ps-sync.");
}

static void different_bits_are_said(void **state)
{
    (void)state;
    struct answer_setting three[] = {setting("a", 1, 0, 0), setting("b", 1, 0, 0),
                                     setting("c", 1, 0, 0)};
    three[0].digest = three[2].digest = "abc";
    three[1].digest = "xyz";
    check(three, 3, "a; b and c end with different bits, which they should not.");
    three[1].family = 1; // another job
    check(three, 3, "a and c end with the same bits.");
}

static void families_that_agree_are_counted(void **state)
{
    (void)state;
    struct answer_setting four[] = {setting("a", 1, 0, 0), setting("b", 1, 0, 0),
                                    setting("c", 1, 0, 0), setting("d", 1, 0, 0)};
    for (size_t i = 0; i < 4; i++) {
        four[i].digest = i < 2 ? "abc" : "xyz";
        four[i].family = i < 2 ? 0 : 2;
    }
    check(four, 4, "Settings that must end with the same bits do so, in each of 2 comparisons.");
}

static void ends_that_are_none_are_named(void **state)
{
    (void)state;
    struct answer_setting two[] = {setting("a", 0, 0, 0), setting("b", 0, 0, 0)};
    two[0].planned = two[0].diverged = 2;
    two[1].planned = 3;
    two[1].failed = 1;
    check(two, 2,
          "No run was completed.\nTraining diverged with a.\nb failed, for reasons given below.\n"
          "Not all runs of b have been made.");
}

static void accuracies_follow_the_same_rule(void **state)
{
    (void)state;
    struct answer_setting two[] = {setting("a", 3, 0, 0), setting("b", 3, 0, 0)};
    two[0].accuracy = (struct statistics){3, 87.5, 0.5};
    two[1].accuracy = (struct statistics){3, 84, 1};
    check(two, 2,
          "a ends with the best accuracy, 87.50 ± 0.50 %; b with the worst, 84.00 ± 1.00 %.");
    two[1].accuracy.half_width = 4;
    check(two, 2, "These runs show no difference in accuracy.");
}

static void scaling_is_said_for_the_largest(void **state)
{
    (void)state;
    char text[ANSWER_BYTES];
    struct scaling_design design = {.name = "ring", .count = 2, .base_workers = 1};
    design.points[1] = (struct scaling_point){
        .workers = 4, .speed_up = {3, 3.2, 0.1}, .efficiency = {3, 0.8, 0.025}};
    struct answer_setting two[] = {setting("ring, 1 worker", 3, 100, 1),
                                   setting("ring, 4 workers", 3, 320, 1)};
    two[0].workers = 1;
    const struct answer_input input = {two, 2, &design, 1};
    answer_write(&input, text);
    assert_string_equal(text, "ring reaches a speed-up of 3.20 ± 0.10 with 4 workers, 80 % of the "
                              "ideal, counted from 1 worker.");
    design.points[1].speed_up.half_width = 2.5; // 1 is within its interval
    answer_write(&input, text);
    assert_string_equal(text, "These runs show no speed-up of ring with 4 workers.");
}

static void nothing_to_say_is_said(void **state)
{
    (void)state;
    struct answer_setting one[] = {setting("ring", 1, 0, 0)};
    check(one, 1, "ring was completed.");
    check(NULL, 0, "No run was completed.");
}

static void of_one_setting_the_answer_is_what_it_reached(void **state)
{
    (void)state;
    struct answer_setting one[] = {setting("ring", 1, 6009, 0)};
    check(one, 1,
          "ring was completed, at 6009 images per second.\n"
          "Of the 6.1 ms of a step, 82 % went into computing, 16 % into exchange wait and 2 % into "
          "input wait.");
    one[0] = setting("ring", 3, 6009, 20);
    one[0].accuracy = (struct statistics){3, 81.25, 0.5};
    one[0].compute_ms.count = 0;
    check(one, 1,
          "ring was completed with a test accuracy of 81.25 ± 0.50 %, at 6009 ± 20 images per "
          "second.");
}

static void long_labels_and_many_settings_fit(void **state)
{
    (void)state;
    static struct answer_setting many[1000];
    static char labels[1000][256];
    char text[ANSWER_BYTES];
    for (size_t i = 0; i < 1000; i++) {
        memset(labels[i], 'x', sizeof(labels[i]) - 1);
        many[i] = setting(labels[i], 3, 100 + (double)i, 1);
        many[i].digest = "abc";
        many[i].failed = many[i].diverged = 1;
    }
    const struct answer_input input = {.settings = many, .count = 1000};
    answer_write(&input, text);
    assert_true(strlen(text) < ANSWER_BYTES);
    assert_int_equal(text[strlen(text) - 1], '.'); // a sentence is whole, or left out
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_answer_names_bits_speed_and_loss),
        cmocka_unit_test(intervals_that_overlap_show_no_difference),
        cmocka_unit_test(single_runs_must_differ_by_more),
        cmocka_unit_test(no_loss_is_named_that_the_times_do_not_show),
        cmocka_unit_test(different_bits_are_said),
        cmocka_unit_test(families_that_agree_are_counted),
        cmocka_unit_test(ends_that_are_none_are_named),
        cmocka_unit_test(accuracies_follow_the_same_rule),
        cmocka_unit_test(scaling_is_said_for_the_largest),
        cmocka_unit_test(nothing_to_say_is_said),
        cmocka_unit_test(of_one_setting_the_answer_is_what_it_reached),
        cmocka_unit_test(long_labels_and_many_settings_fit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
