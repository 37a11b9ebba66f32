/* Tests of the commands that repeat runs. */
#include "deploy/page/run_command.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <stdio.h>
#include <string.h>

static void check(json_t *options, const char *expected)
{
    char text[COMMAND_TEXT_BYTES];
    struct run_folder run = {.job = json_pack("{s:o}", "options", options)};
    assert_int_equal(run_command_of(&run, text), expected != NULL);
    if (expected != NULL) {
        assert_string_equal(text, expected);
    }
    json_decref(run.job);
}

static void a_command_has_the_mode_and_what_differs_from_defaults(void **state)
{
    (void)state;
    check(json_pack("{s:s, s:i, s:i, s:s, s:f, s:b, s:i}", "mode", "ring", "workers", 4, "servers",
                    0, "straggler", "rank=2,factor=6", "lr", 0.125, "timeline", 1, "seed", 1),
          "ringside run --mode ring --workers 4 --lr 0.125 --straggler rank=2,factor=6 --timeline");
    check(json_pack("{s:s, s:b, s:f, s:s}", "mode", "ps-sync", "cuda-graphs", 0, "bucket-mb", 1.0,
                    "data", "mnist:/a b"),
          "ringside run --mode ps-sync --data 'mnist:/a b' --no-cuda-graphs");
    check(json_pack("{s:s, s:s, s:s}", "mode", "ring", "model", "cnn", "optimizer", "momentum"),
          "ringside run --mode ring"); // which the default comes to
}

static void what_follows_from_other_options_is_left_out(void **state)
{
    (void)state;
    check(json_pack("{s:s, s:i, s:i, s:s}", "mode", "ring", "batch", 22, "global-batch", 64,
                    "security", "curve"),
          "ringside run --mode ring --global-batch 64");
    check(json_pack("{s:s, s:i, s:i}", "mode", "ring", "batch", 22, "global-batch", 0),
          "ringside run --mode ring --batch 22");
}

/* Without it the command would run another job: its faults have another end. */
static void what_becomes_of_a_loss_is_said_where_the_job_would_not_choose_it(void **state)
{
    (void)state;
    check(json_pack("{s:s, s:i, s:s}", "mode", "ring", "workers", 4, "on-loss", "redeal"),
          "ringside run --mode ring --workers 4");
    check(json_pack("{s:s, s:i, s:s}", "mode", "ring", "workers", 4, "on-loss", "shrink"),
          "ringside run --mode ring --workers 4 --on-loss shrink");
    check(json_pack("{s:s, s:i, s:s}", "mode", "ring", "workers", 4, "on-loss", "fail"),
          "ringside run --mode ring --workers 4 --on-loss fail");
    check(json_pack("{s:s, s:i, s:i, s:s}", "mode", "ring", "workers", 4, "sync-every", 4,
                    "on-loss", "fail"),
          "ringside run --mode ring --workers 4 --sync-every 4");
    check(json_pack("{s:s, s:s}", "mode", "local", "on-loss", "fail"), "ringside run --mode local");
}

static void ranks_that_a_loss_has_left_out_are_not_said(void **state)
{
    (void)state;
    char text[COMMAND_TEXT_BYTES];
    struct run_folder run = {
        .job = json_pack("{s:{s:s, s:i, s:s, s:s}}", "options", "mode", "ring", "workers", 4,
                         "on-loss", "shrink", "without-ranks", "2"),
        .summary = json_pack("{s:i}", "workers_lost", 1),
    };
    assert_true(run_command_of(&run, text));
    assert_string_equal(text, "ringside run --mode ring --workers 4 --on-loss shrink");
    json_decref(run.summary);
    run.summary = json_pack("{s:i}", "workers_lost", 0);
    assert_true(run_command_of(&run, text));
    assert_string_equal(text,
                        "ringside run --mode ring --workers 4 --on-loss shrink --without-ranks 2");
    json_decref(run.summary);
    json_decref(run.job);
}

static json_t *own_program_options(json_int_t steps)
{
    return json_pack("{s:s, s:s, s:s, s:s, s:I}", "mode", "ring", "model", "external:train.py",
                     "data", "external:train.py", "eval", "none", "steps", steps);
}

static void check_program(json_int_t steps, const char *program, const char *expected)
{
    char text[COMMAND_TEXT_BYTES];
    struct run_folder run = {
        .job = json_pack("{s:o, s:s?}", "options", own_program_options(steps), "program", program)};
    assert_int_equal(run_command_of(&run, text), expected != NULL);
    if (expected != NULL) {
        assert_string_equal(text, expected);
    }
    json_decref(run.job);
}

/* Run folders of before do not have its command line. */
static void a_program_of_the_users_own_follows_dashes(void **state)
{
    (void)state;
    const json_int_t open = 1000000000000;
    check(own_program_options(open), NULL);
    check_program(open, NULL, NULL);
    check_program(open, "", NULL);
    check_program(open, "python3 train.py --note 'it is' $'a\\nb'",
                  "ringside run --mode ring --model external:train.py -- python3 train.py --note "
                  "'it is' $'a\\nb'");
    check_program(30, "./mine",
                  "ringside run --mode ring --model external:train.py --steps 30 -- ./mine");
    check_program(30, "./mine\n\x1b[2J",
                  "ringside run --mode ring --model external:train.py --steps 30 -- ./mine??[2J");
    static char large[COMMAND_TEXT_BYTES];
    memset(large, 'x', sizeof(large) - 1);
    check_program(30, large, NULL);
}

/* It would say it again. */
static void what_a_program_has_said_is_left_out(void **state)
{
    (void)state;
    static const char *const from[] = {"program", "options"};
    static const char *const schedules[] = {"constant", "cosine"};
    static const char *const expected[2][2] = {
        {"", " --lr 0.25 --lr-schedule cosine"},
        {" --optimizer adam --lr 0.25 --beta1 0.5 --weight-decay 0.125",
         " --optimizer adam --lr 0.25 --beta1 0.5 --weight-decay 0.125 --lr-schedule cosine"}};
    for (size_t i = 0; i < 4; i++) {
        char text[COMMAND_TEXT_BYTES], wanted[256];
        json_t *options = own_program_options(30);
        json_object_update_new(options, json_pack("{s:s, s:f, s:f, s:f, s:s}", "optimizer", "adam",
                                                  "lr", 0.25, "beta1", 0.5, "weight-decay", 0.125,
                                                  "lr-schedule", schedules[i % 2]));
        struct run_folder run = {.job = json_pack("{s:o, s:s, s:s}", "options", options, "program",
                                                  "./mine", "optimizer_from", from[i / 2])};
        snprintf(wanted, sizeof(wanted),
                 "ringside run --mode ring --model external:train.py --steps 30%s -- ./mine",
                 expected[i / 2][i % 2]);
        assert_true(run_command_of(&run, text));
        assert_string_equal(text, wanted);
        json_decref(run.job);
    }
}

/* The job has let go of the options' optimizer, and takes none of its settings without it. */
static void of_a_program_that_makes_the_updates_settings_are_left_out(void **state)
{
    (void)state;
    char text[COMMAND_TEXT_BYTES];
    json_t *options = own_program_options(30);
    json_object_update_new(options, json_pack("{s:s, s:f, s:f, s:f, s:f, s:s}", "optimizer", "auto",
                                              "lr", 0.25, "beta1", 0.5, "epsilon", 1e-8,
                                              "weight-decay", 0.125, "lr-scale", "linear"));
    struct run_folder run = {.job = json_pack("{s:o, s:s, s:n}", "options", options, "program",
                                              "./mine", "optimizer_from")};
    assert_true(run_command_of(&run, text));
    assert_string_equal(text, "ringside run --mode ring --model external:train.py --steps 30 --lr "
                              "0.25 -- ./mine");
    json_decref(run.job);
}

static void without_options_there_is_no_command(void **state)
{
    (void)state;
    char text[COMMAND_TEXT_BYTES];
    const struct run_folder run = {.job = NULL};
    assert_false(run_command_of(&run, text));
    check(json_array(), NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_command_has_the_mode_and_what_differs_from_defaults),
        cmocka_unit_test(what_follows_from_other_options_is_left_out),
        cmocka_unit_test(what_becomes_of_a_loss_is_said_where_the_job_would_not_choose_it),
        cmocka_unit_test(ranks_that_a_loss_has_left_out_are_not_said),
        cmocka_unit_test(a_program_of_the_users_own_follows_dashes),
        cmocka_unit_test(what_a_program_has_said_is_left_out),
        cmocka_unit_test(of_a_program_that_makes_the_updates_settings_are_left_out),
        cmocka_unit_test(without_options_there_is_no_command),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
