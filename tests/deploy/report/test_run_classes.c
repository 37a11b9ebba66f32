/* Tests of the names of classes, as reports say them. */
#include "deploy/report/run_classes.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <stdlib.h>
#include <string.h>

/* Takes the list of classes; NULL: job.json has none. */
static struct run_folder make_run(const char *dataset, json_t *classes)
{
    struct run_folder run = {.path = "/nowhere"};
    run.summary = json_pack("{s:s}", "dataset", dataset);
    run.job = json_pack("{s:o}", "classes", classes != NULL ? classes : json_null());
    assert_non_null(run.summary);
    assert_non_null(run.job);
    return run;
}

static void check_text(json_t *classes, const char *expected)
{
    char text[RUN_CLASSES_BYTES];
    struct run_folder run = make_run("images:/data", classes);
    run_classes_describe(&run, text);
    assert_string_equal(text, expected);
    run_folder_close(&run);
}

static void a_few_classes_are_all_named(void **state)
{
    (void)state;
    check_text(json_pack("[s, s]", "cat", "a \xc3\xa9\x1b[2J\n"),
               "images:/data: 2 classes: cat, a \xc3\xa9?[2J?");
    check_text(json_pack("[s, i]", "cat", 7), "images:/data: 2 classes: cat, ?");
    check_text(NULL, "");
    check_text(json_array(), "");
}

static void of_many_classes_the_first_are_named_and_the_others_counted(void **state)
{
    (void)state;
    json_t *classes = json_array();
    for (int i = 0; i < 1000; i++) {
        json_array_append_new(classes, json_sprintf("n%03d", i));
    }
    check_text(classes, "images:/data: 1000 classes: n000, n001, n002, n003, n004, n005, n006, "
                        "n007, n008, n009 and 990 more");
}

static void long_names_are_cut_between_characters(void **state)
{
    (void)state;
    check_text(
        json_pack("[s, s]", "1234567890123456789012345678901", "12345678901234567890123456789012"),
        "images:/data: 2 classes: 1234567890123456789012345678901, "
        "1234567890123456789012345678…");
    check_text(json_pack("[s, s]", "123456789012345678901234567ééé", "é"),
               "images:/data: 2 classes: 123456789012345678901234567…, é");
}

static char *print(const struct run_folder *runs, size_t count)
{
    char *text = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&text, &size);
    assert_non_null(stream);
    run_classes_print(stream, runs, count);
    assert_int_equal(fclose(stream), 0);
    return text;
}

static void each_list_of_classes_has_one_line(void **state)
{
    (void)state;
    struct run_folder runs[] = {
        make_run("shapes", NULL),
        make_run("images:/a", json_pack("[s, s]", "cat", "dog")),
        make_run("images:/b", json_pack("[s, s]", "cat", "dog")),
        make_run("images:/a", json_pack("[s, s]", "cat", "dog")),
    };
    char *text = print(runs, 4);
    assert_string_equal(text, "images:/a: 2 classes: cat, dog\nimages:/b: 2 classes: cat, dog\n");
    free(text);
    text = print(runs, 1);
    assert_string_equal(text, "");
    free(text);
    for (size_t i = 0; i < 4; i++) {
        run_folder_close(&runs[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_few_classes_are_all_named),
        cmocka_unit_test(of_many_classes_the_first_are_named_and_the_others_counted),
        cmocka_unit_test(long_names_are_cut_between_characters),
        cmocka_unit_test(each_list_of_classes_has_one_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
