/* ringside compare --input-gap end to end, on real images. No speed is asserted. */
#include "tests/support/programs/programs.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text != NULL ? text : "";
}

static double number_of(const json_t *object, const char *key)
{
    assert_true(json_is_number(json_object_get(object, key)));
    return json_number_value(json_object_get(object, key));
}

/* Its images per second, which its summary has. */
static void check_run(const json_t *round, const char *side, const char *rate_key,
                      const char *data_prefix)
{
    json_t *summary = programs_read_json(text_of(round, side), "summary.json");
    assert_string_equal(text_of(summary, "outcome"), "completed");
    assert_int_equal(strncmp(text_of(summary, "dataset"), data_prefix, strlen(data_prefix)), 0);
    assert_true(number_of(summary, "seed") == number_of(round, "seed"));
    assert_true(number_of(summary, "images_per_second") == number_of(round, rate_key));
    json_decref(summary);
}

static void check_round(const json_t *round)
{
    check_run(round, "real", "real_images_per_second", "fashion-mnist:");
    check_run(round, "synthetic", "synthetic_images_per_second", "synthetic:fashion-mnist:");
    double expected = 100 * (1 - number_of(round, "real_images_per_second") /
                                     number_of(round, "synthetic_images_per_second"));
    assert_true(fabs(number_of(round, "percent") - expected) < 1e-9);
}

/* Both tables of the Markdown file. */
static void check_table(const char *folder)
{
    char path[PROGRAM_PATH_BYTES + 16], text[8192];
    snprintf(path, sizeof(path), "%s/table.md", folder);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
    fclose(file);
    assert_non_null(strstr(text, "| synthetic images/s | input gap |"));
    assert_non_null(strstr(text, "| loader threads |"));
    assert_non_null(strstr(text, "| data | seed |"));
    assert_non_null(strstr(text, "| synthetic:fashion-mnist:"));
    assert_non_null(strstr(text, " (auto) |"));
}

/* Two rounds of both designs: for each a gap, whose figure follows from its runs. */
static void a_comparison_says_how_far_real_images_fall_behind_noise(void **state)
{
    struct command_test *test = *state;
    const char *const args[] = {
        "compare",  "--out",   test->out,   "--modes", "ring,ps-sync",   "-n",
        "2",        "--model", "lenet5",    "--data",  "fashion-mnist",  "--input-gap",
        "--repeat", "2",       "--steps",   "4",       "--global-batch", "16",
        "--eval",   "none",    "--threads", "1",       "--augment",      "flip",
        NULL};
    if (getenv("RINGSIDE_DATA") == NULL) {
        print_message("RINGSIDE_DATA is not set: there are no real images\n");
        skip();
    }
    program_start(&test->run, test->folder, "deploy/ringside", false, args, NULL);
    if (program_wait(&test->run) != 0) {
        fail_msg("%s", program_output(&test->run));
    }
    json_t *gaps = programs_read_json(test->out, "input_gap.json");
    assert_int_equal(json_array_size(gaps), 2);
    for (size_t i = 0; i < 2; i++) {
        const json_t *gap = json_array_get(gaps, i), *rounds = json_object_get(gap, "rounds");
        assert_string_equal(text_of(gap, "mode"), i == 0 ? "ring" : "ps-sync");
        assert_int_equal(json_array_size(rounds), 2);
        double sum = 0, percent[2];
        for (size_t k = 0; k < 2; k++) {
            check_round(json_array_get(rounds, k));
            percent[k] = number_of(json_array_get(rounds, k), "percent");
            sum += percent[k];
        }
        assert_true(fabs(number_of(gap, "percent") - sum / 2) < 1e-9);
        // Of two values: half of their distance, times the quantile of one degree of freedom.
        double half_width = 12.706 * fabs(percent[0] - percent[1]) / 2;
        assert_true(fabs(number_of(gap, "half_width") - half_width) < 1e-6 * (1 + half_width));
    }
    json_decref(gaps);
    assert_non_null(strstr(program_output(&test->run), "input gap, by which real input falls"));

    check_table(test->out);

    // A report of the folder is no other.
    const char *const again[] = {"report", test->out, NULL};
    program_start(&test->run, test->folder, "deploy/ringside", false, again, NULL);
    assert_int_equal(program_wait(&test->run), 0);
    assert_non_null(strstr(program_output(&test->run), "input gap, by which real input falls"));
}

static void check_refused(struct command_test *test, const char *const *args, const char *text)
{
    program_start(&test->run, test->folder, "deploy/ringside", false, args, NULL);
    assert_int_equal(program_wait(&test->run), 2);
    if (strstr(program_output(&test->run), text) == NULL) {
        fail_msg("'%s' is not in: %s", text, program_output(&test->run));
    }
    assert_int_not_equal(access(test->out, F_OK), 0);
}

static void what_has_no_real_input_of_ours_is_refused(void **state)
{
    struct command_test *test = *state;
    const char *const program[] = {"compare",     "--out", test->out,   "--modes", "ring",
                                   "--input-gap", "--",    "/bin/true", NULL};
    check_refused(test, program, "--input-gap cannot be measured: a program of your own");
    const char *const noise[] = {"compare", "--out",     test->out,     "--modes", "ring",
                                 "--data",  "synthetic", "--input-gap", NULL};
    check_refused(test, noise, "--input-gap cannot be measured: it compares");
    const char *const resumed[] = {"compare",  "--out", test->out,     "--modes", "ring",
                                   "--resume", "auto",  "--input-gap", NULL};
    check_refused(test, resumed, "unknown option --resume");
}

#define GAP_TEST(function) \
    cmocka_unit_test_setup_teardown(function, command_test_set_up, command_test_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        GAP_TEST(a_comparison_says_how_far_real_images_fall_behind_noise),
        GAP_TEST(what_has_no_real_input_of_ours_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
