/* Tests of experiment files: what they stand for, and what is refused. */
#include "deploy/sweep/experiment.h"
#include "tests/support/common/captured_log.h"
#include "tests/support/common/temp_folder.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <stdio.h>
#include <string.h>

static struct experiment experiment;

/* Expands "sweep --experiment FILE --seed 7" with a file of this text. */
static enum status expand(const char *text, int *ret_argc, char **ret_argv)
{
    static char path[1024], name[] = "sweep", option[] = "--experiment", seed[] = "--seed=7";
    char *folder = temp_folder_create();
    temp_folder_write(folder, "file.ini", text, strlen(text));
    snprintf(path, sizeof(path), "%s/file.ini", folder);
    char *argv[] = {name, option, path, seed};
    captured_log_begin();
    enum status status = experiment_expand(4, argv, &experiment, ret_argc, ret_argv);
    temp_folder_destroy(folder);
    return status;
}

static void a_file_stands_for_arguments_and_the_command_line_comes_after_them(void **state)
{
    (void)state;
    char *argv[8 + EXPERIMENT_LINES_MAX];
    int argc = 0;
    enum status status = expand("; a comment\n[job]\nmodel = lenet5\n[grid]\norder = free,"
                                "seeded:constant:2\n[sweep]\nrepeat = 3\n",
                                &argc, argv);
    assert_string_equal(captured_log_end(), "");
    assert_int_equal(status, STATUS_OK);
    assert_int_equal(argc, 5);
    assert_string_equal(argv[0], "sweep");
    assert_string_equal(argv[1], "--model=lenet5");
    assert_string_equal(argv[2], "--" EXPERIMENT_GRID "=order=free,seeded:constant:2");
    assert_string_equal(argv[3], "--repeat=3");
    assert_string_equal(argv[4], "--seed=7");
    assert_null(argv[5]);
}

static void a_line_that_does_not_belong_is_named(void **state)
{
    (void)state;
    static const char *const texts[] = {"model = cnn\n", "[jobs]\nmodel = cnn\n",
                                        "[sweep]\nseeds = 3\n", "[job]\nmodel\n"};
    static const char *const places[] = {
        "file.ini:1:", "file.ini:2:", "file.ini:2:", "file.ini:2:"};
    for (size_t i = 0; i < 4; i++) {
        char *argv[8 + EXPERIMENT_LINES_MAX];
        int argc = 0;
        enum status status = expand(texts[i], &argc, argv);
        assert_non_null(strstr(captured_log_end(), places[i]));
        assert_int_equal(status, STATUS_INVALID);
    }
}

static void a_file_that_is_not_there_is_named(void **state)
{
    (void)state;
    char name[] = "sweep", option[] = "--experiment=/nowhere/x.ini";
    char *argv[] = {name, option}, *all[8 + EXPERIMENT_LINES_MAX];
    int count;
    captured_log_begin();
    enum status status = experiment_expand(2, argv, &experiment, &count, all);
    assert_non_null(strstr(captured_log_end(), "/nowhere/x.ini"));
    assert_int_equal(status, STATUS_INVALID);
}

/* It opens, and cannot be read. */
static void a_folder_in_its_place_is_named(void **state)
{
    (void)state;
    char name[] = "sweep", option[] = "--experiment=/";
    char *argv[] = {name, option}, *all[8 + EXPERIMENT_LINES_MAX];
    int count;
    captured_log_begin();
    enum status status = experiment_expand(2, argv, &experiment, &count, all);
    assert_non_null(strstr(captured_log_end(), "cannot read the experiment /: Is a directory"));
    assert_int_equal(status, STATUS_INVALID);
}

static void without_a_file_nothing_changes(void **state)
{
    (void)state;
    char name[] = "sweep", option[] = "--repeat=2";
    char *argv[] = {name, option}, *all[8 + EXPERIMENT_LINES_MAX];
    int count;
    assert_int_equal(experiment_expand(2, argv, &experiment, &count, all), STATUS_OK);
    assert_int_equal(count, 2);
    assert_ptr_equal(all[1], option);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_stands_for_arguments_and_the_command_line_comes_after_them),
        cmocka_unit_test(a_line_that_does_not_belong_is_named),
        cmocka_unit_test(a_file_that_is_not_there_is_named),
        cmocka_unit_test(a_folder_in_its_place_is_named),
        cmocka_unit_test(without_a_file_nothing_changes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
