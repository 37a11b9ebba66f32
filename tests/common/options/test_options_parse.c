/* Tests of the sources of options: the forms of the command line, the environment, and which of
 * them wins. */
#include "common/options/options.h"
#include "tests/support/common/captured_log.h"
#include "tests/support/common/sample_options.h"
#include "tests/support/common/temp_folder.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <stdlib.h>
#include <string.h>

#define ARGUMENTS(...) ((const char *const[8]){__VA_ARGS__})

static struct sample parse(const char *const arguments[8])
{
    struct sample sample;
    const char *log;
    enum status status = sample_parse(&sample, arguments, &log);
    if (status != STATUS_OK) {
        fail_msg("refused: %s", log);
    }
    assert_string_equal(log, "");
    return sample;
}

static void a_value_is_attached_or_follows(void **state)
{
    (void)state;
    assert_int_equal(parse(ARGUMENTS("--workers", "4")).workers, 4);
    assert_int_equal(parse(ARGUMENTS("--workers=4")).workers, 4);
    assert_int_equal(parse(ARGUMENTS("-n", "4")).workers, 4);
    assert_int_equal(parse(ARGUMENTS("-n4")).workers, 4);
    assert_int_equal(parse(ARGUMENTS("-n=4")).workers, 4);
    assert_string_equal(parse(ARGUMENTS("--name=a=b")).name, "a=b");
    assert_string_equal(parse(ARGUMENTS("--name=")).name, "");
    assert_string_equal(parse(ARGUMENTS("--name=--loud")).name, "--loud");
    assert_string_equal(parse(ARGUMENTS("--name", "-x")).name, "-x");
}

static void flags_take_no_value(void **state)
{
    (void)state;
    assert_true(parse(ARGUMENTS("--loud")).is_loud);
    assert_true(parse(ARGUMENTS("-l")).is_loud);
    assert_true(parse(ARGUMENTS("--loud=true")).is_loud);
    assert_false(parse(ARGUMENTS("--loud", "--no-loud")).is_loud);
    assert_false(parse(ARGUMENTS("--loud", "--loud=false")).is_loud);
}

static void the_last_of_several_wins(void **state)
{
    (void)state;
    assert_int_equal(parse(ARGUMENTS("-n", "4", "--workers=8")).workers, 8);
}

static void items_of_a_list_are_joined_until_it_is_cleared(void **state)
{
    (void)state;
    assert_string_equal(parse(ARGUMENTS("--items", "a=1")).items, "a=1");
    assert_string_equal(parse(ARGUMENTS("--items", "a", "--items=b", "--items=c;d")).items,
                        "a;b;c;d");
    assert_string_equal(parse(ARGUMENTS("--items", "a", "--items=none", "--items=c")).items, "c");
    sample_refuse(ARGUMENTS("--items=0123456789", "--items=0123456789", "--items=0123456789"),
                  "longer than 31", "command line");
}

static void every_set_has_its_options(void **state)
{
    (void)state;
    struct sample sample = parse(ARGUMENTS("--port", "80", "--color", "blue"));
    assert_int_equal(sample.port, 80);
    assert_int_equal(sample.color, SAMPLE_BLUE);
}

static void an_unknown_option_is_refused_with_the_nearest(void **state)
{
    (void)state;
    sample_refuse(ARGUMENTS("--worker", "2"), "unknown option --worker; did you mean --workers?",
                  "");
    sample_refuse(ARGUMENTS("--colour=red"), "unknown option --colour; did you mean --color?", "");
    sample_refuse(ARGUMENTS("--hepl"), "unknown option --hepl; did you mean --help?", "");
    sample_refuse(ARGUMENTS("--confg", "x"), "did you mean --config?", "");
    sample_refuse(ARGUMENTS("--xyzzy"), "unknown option --xyzzy; --help lists them all", "");
    sample_refuse(ARGUMENTS("-x"), "unknown option -x; --help lists them all", "");
    sample_refuse(ARGUMENTS("--"), "unknown option --;", "");
    sample_refuse(ARGUMENTS("--=5"), "unknown option --;", "");
}

static void only_flags_are_negated(void **state)
{
    (void)state;
    sample_refuse(ARGUMENTS("--no-workers"), "unknown option --no-workers", "");
    sample_refuse(ARGUMENTS("--no-loud=true"), "unknown option --no-loud", "");
}

static void a_missing_value_is_not_taken_from_the_next_option(void **state)
{
    (void)state;
    sample_refuse(ARGUMENTS("--workers"), "option --workers needs a value", "");
    sample_refuse(ARGUMENTS("-n"), "option --workers needs a value", "");
    sample_refuse(ARGUMENTS("--name", "--loud"), "option --name needs a value", "--name=VALUE");
    sample_refuse(ARGUMENTS("--config"), "option --config needs a value", "");
    sample_refuse(ARGUMENTS("--config", "--loud"), "option --config needs a value", "");
}

static void an_argument_that_is_no_option_is_refused(void **state)
{
    (void)state;
    sample_refuse(ARGUMENTS("workers=4"), "'workers=4' is not an option", "no other argument");
    sample_refuse(ARGUMENTS(""), "'' is not an option", "");
    sample_refuse(ARGUMENTS("-"), "'-' is not an option", "");
    sample_refuse(ARGUMENTS("--loud", "true"), "'true' is not an option", "");
}

static void a_bad_value_is_refused_with_its_source(void **state)
{
    (void)state;
    sample_refuse(ARGUMENTS("--workers", "0"), "command line: workers is '0'", "from 1 to 4096");
    setenv("RINGSIDE_TOTAL_STEPS", "many", 1);
    sample_refuse(ARGUMENTS(NULL), "environment variable RINGSIDE_TOTAL_STEPS",
                  "total-steps is 'many'");
    unsetenv("RINGSIDE_TOTAL_STEPS");
}

static void the_environment_names_options_in_capitals(void **state)
{
    (void)state;
    setenv("RINGSIDE_TOTAL_STEPS", "7", 1);
    setenv("RINGSIDE_LOUD", "1", 1);
    struct sample sample = parse(ARGUMENTS(NULL));
    unsetenv("RINGSIDE_TOTAL_STEPS");
    unsetenv("RINGSIDE_LOUD");
    assert_int_equal(sample.total_steps, 7);
    assert_true(sample.is_loud);
}

static void variables_that_are_empty_or_of_other_programs_do_not_matter(void **state)
{
    (void)state;
    setenv("RINGSIDE_WORKERS", "", 1);
    setenv("RINGSIDE_CONFIG", "", 1);
    setenv("RINGSIDE_RANK", "no number", 1);
    struct sample sample = parse(ARGUMENTS(NULL));
    unsetenv("RINGSIDE_WORKERS");
    unsetenv("RINGSIDE_CONFIG");
    unsetenv("RINGSIDE_RANK");
    assert_int_equal(sample.workers, 2);
}

/* Writes a config file; the caller frees neither: *ret_argument is valid until the next call. */
static char *write_config(const char *text, const char **ret_argument)
{
    static char argument[256];
    char *folder = temp_folder_create();
    temp_folder_write(folder, "job.ini", text, strlen(text));
    snprintf(argument, sizeof(argument), "--config=%s/job.ini", folder);
    *ret_argument = argument;
    return folder;
}

static void later_sources_win(void **state)
{
    (void)state;
    const char *config;
    char *folder = write_config("workers = 3\nport = 3\ntotal-steps = 3\n", &config);
    setenv("RINGSIDE_WORKERS", "4", 1);
    setenv("RINGSIDE_PORT", "4", 1);
    struct sample sample = parse(ARGUMENTS("--workers", "5", config));
    unsetenv("RINGSIDE_WORKERS");
    unsetenv("RINGSIDE_PORT");
    temp_folder_destroy(folder);
    assert_int_equal(sample.workers, 5);
    assert_int_equal(sample.port, 4);
    assert_int_equal(sample.total_steps, 3);
    assert_true(sample.rate >= 0.5 && sample.rate <= 0.5);
}

static void the_environment_may_name_the_config_file(void **state)
{
    (void)state;
    const char *config, *other_config;
    char *folder = write_config("workers = 3\n", &config);
    setenv("RINGSIDE_CONFIG", strchr(config, '=') + 1, 1);
    assert_int_equal(parse(ARGUMENTS(NULL)).workers, 3);
    char *other_folder = write_config("workers = 6\n", &other_config);
    assert_int_equal(parse(ARGUMENTS(other_config)).workers, 6);
    unsetenv("RINGSIDE_CONFIG");
    temp_folder_destroy(folder);
    temp_folder_destroy(other_folder);
}

static void what_was_given_is_known_whatever_its_source(void **state)
{
    (void)state;
    const char *config;
    struct sample sample;
    char *folder = write_config("name = x\n", &config);
    struct option_program program = sample_program(&sample);
    char name[] = "sample", workers[] = "-n2", file[256];
    snprintf(file, sizeof(file), "%s", config);
    char *argv[] = {name, workers, file, NULL};
    bool is_done;
    setenv("RINGSIDE_PORT", "0", 1);
    assert_int_equal(options_parse(&program, 3, argv, &is_done), STATUS_OK);
    unsetenv("RINGSIDE_PORT");
    temp_folder_destroy(folder);
    assert_true(options_was_given(&program, "name"));
    assert_true(options_was_given(&program, "port"));
    assert_true(options_was_given(&program, "workers"));
    assert_false(options_was_given(&program, "color"));
}

static void each_program_knows_what_it_was_given_itself(void **state)
{
    (void)state;
    struct sample samples[2];
    struct option_program first = sample_program(&samples[0]), second = sample_program(&samples[1]);
    static char words[][16] = {"sample", "--items=a", "--items=b", "-n4"};
    char *argv[] = {words[0], words[1], words[2], words[3], NULL};
    bool is_done;
    assert_int_equal(options_parse(&first, 3, argv, &is_done), STATUS_OK);
    argv[2] = words[3];
    assert_int_equal(options_parse(&second, 3, argv, &is_done), STATUS_OK);
    assert_true(options_was_given(&first, "items") && !options_was_given(&first, "workers"));
    assert_true(options_was_given(&second, "items") && options_was_given(&second, "workers"));
    assert_string_equal(samples[0].items, "a;b");
    assert_string_equal(samples[1].items, "a");
}

static void a_program_without_arguments_has_its_defaults(void **state)
{
    (void)state;
    struct sample sample;
    struct option_program program = sample_program(&sample);
    bool is_done = true;
    sample.workers = 77;
    char *const argv[] = {NULL};
    assert_int_equal(options_parse(&program, 0, argv, &is_done), STATUS_OK);
    assert_false(is_done);
    assert_int_equal(sample.workers, 2);
}

/* What is started by a program that has options of its own in the environment. */
static void a_program_may_take_its_arguments_alone(void **state)
{
    (void)state;
    static char help[16 * 1024];
    const char *config;
    struct sample sample;
    bool is_done = true;
    struct option_program program = sample_program(&sample);
    program.takes_arguments_alone = true;
    char *folder = write_config("colour = red\n", &config);
    setenv("RINGSIDE_CONFIG", strchr(config, '=') + 1, 1);
    setenv("RINGSIDE_TOTAL_STEPS", "many", 1);
    setenv("RINGSIDE_PORT", "4", 1);
    char name[] = "sample", option[] = "-n7", file[256];
    char *const argv[] = {name, option, NULL};
    assert_int_equal(options_parse(&program, 2, argv, &is_done), STATUS_OK);
    assert_int_equal(sample.workers, 7);
    assert_int_equal(sample.port, 0);
    unsetenv("RINGSIDE_CONFIG");
    unsetenv("RINGSIDE_TOTAL_STEPS");
    unsetenv("RINGSIDE_PORT");
    snprintf(file, sizeof(file), "%s", config);
    char *const with_file[] = {name, file, NULL};
    captured_log_begin();
    assert_int_equal(options_parse(&program, 2, with_file, &is_done), STATUS_INVALID);
    assert_non_null(strstr(captured_log_end(), "unknown option --config"));
    temp_folder_destroy(folder);
    FILE *stream = fmemopen(help, sizeof(help), "w");
    assert_non_null(stream);
    options_print_help(&program, stream);
    fclose(stream);
    assert_null(strstr(help, "--config"));
    assert_null(strstr(help, "RINGSIDE_"));
}

static void help_has_every_row_of_every_set(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "usage: sample [OPTION ...]",
        "Does nothing.",
        "\nFirst\n",
        "\nSecond\n",
        "  -l, --loud  ",
        "  -n, --workers COUNT ",
        "processes [default 2; 1 to 4096]",
        "      --total-steps COUNT ",
        "[default 0; 0 to 9007199254740992]",
        "[default 0.5; 0 to 1000000]",
        "what it is called [default none]",
        "green         of grass",
        "bluish-or-green\n                                              of the sea",
        "  -p, --port PORT ",
        "      --config FILE",
        "RINGSIDE_",
        "Later wins: default, config file, environment, command line.",
        "\nExample\n  sample --loud\n",
    };
    static char text[16 * 1024];
    struct sample sample;
    struct option_program program = sample_program(&sample);
    FILE *stream = fmemopen(text, sizeof(text), "w");
    assert_non_null(stream);
    options_print_help(&program, stream);
    fclose(stream);
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        if (strstr(text, texts[i]) == NULL) {
            fail_msg("\"%s\" is not in: %s", texts[i], text);
        }
    }
    for (const char *line = text; *line != '\0'; line += strcspn(line, "\n") + 1) {
        assert_in_range(strcspn(line, "\n"), 0, 100);
    }
    assert_null(strstr(text, " \n"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_value_is_attached_or_follows),
        cmocka_unit_test(flags_take_no_value),
        cmocka_unit_test(the_last_of_several_wins),
        cmocka_unit_test(items_of_a_list_are_joined_until_it_is_cleared),
        cmocka_unit_test(every_set_has_its_options),
        cmocka_unit_test(an_unknown_option_is_refused_with_the_nearest),
        cmocka_unit_test(only_flags_are_negated),
        cmocka_unit_test(a_missing_value_is_not_taken_from_the_next_option),
        cmocka_unit_test(an_argument_that_is_no_option_is_refused),
        cmocka_unit_test(a_bad_value_is_refused_with_its_source),
        cmocka_unit_test(the_environment_names_options_in_capitals),
        cmocka_unit_test(variables_that_are_empty_or_of_other_programs_do_not_matter),
        cmocka_unit_test(later_sources_win),
        cmocka_unit_test(the_environment_may_name_the_config_file),
        cmocka_unit_test(what_was_given_is_known_whatever_its_source),
        cmocka_unit_test(each_program_knows_what_it_was_given_itself),
        cmocka_unit_test(a_program_without_arguments_has_its_defaults),
        cmocka_unit_test(a_program_may_take_its_arguments_alone),
        cmocka_unit_test(help_has_every_row_of_every_set),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
