/* Tests of times to the target as text and JSON. */
#include "deploy/predict/study/study_target.h"
#include "tests/support/deploy/small_study.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <stdlib.h>
#include <string.h>

static void test_seconds_have_the_unit_that_people_use(void **state)
{
    (void)state;
    static const struct {
        double seconds;
        const char *text;
    } cases[] = {{0.25, "0.25 s"},  {119, "119 s"},  {120, "2 min"},
                 {7199, "120 min"}, {9000, "2.5 h"}, {864000, "10 d"}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char text[STUDY_TARGET_BYTES];
        study_target_format(cases[i].seconds, text);
        assert_string_equal(text, cases[i].text);
    }
}

/* A study of a ring of 2 and 4 workers with a row for the first. */
static struct small_study *create(const struct convergence *convergence)
{
    struct small_study *small = small_study_create(4, "ring", "1", "2,4");
    assert_non_null(small);
    small->study.convergence = convergence;
    assert_int_equal(study_make(&small->study), STATUS_OK);
    return small;
}

static void test_without_a_table_there_is_no_column(void **state)
{
    (void)state;
    char cell[STUDY_TARGET_BYTES];
    struct small_study *small = create(NULL);
    json_t *object = json_object();
    study_target_cell(&small->study, &small->study.points[0], cell);
    study_target_add_json(&small->study, &small->study.points[0], object);
    assert_string_equal(study_target_heading(&small->study), "");
    assert_string_equal(cell, "");
    assert_int_equal(json_object_size(object), 0);
    json_decref(object);
    small_study_destroy(small);
}

static void test_a_time_that_is_not_known_says_why(void **state)
{
    (void)state;
    struct convergence_row row = {.images = 64, .updates = 100};
    const struct convergence convergence = {&row, 1};
    char cell[STUDY_TARGET_BYTES], *text = NULL;
    size_t size = 0;
    struct small_study *small = create(&convergence);
    const struct study_point *points = small->study.points;
    json_t *known = json_object(), *unknown = json_object();
    study_target_cell(&small->study, &points[1], cell);
    assert_string_equal(cell, "          ?");
    study_target_add_json(&small->study, &points[0], known);
    study_target_add_json(&small->study, &points[1], unknown);
    assert_float_equal(json_real_value(json_object_get(known, "to_target_s")),
                       (100 * points[0].made.step_s), 1e-3);
    assert_true(json_is_null(json_object_get(unknown, "to_target_s")));
    assert_string_equal(json_string_value(json_object_get(unknown, "to_target_unknown")),
                        "no row has updates of 128 images; the largest are of 64");
    FILE *stream = open_memstream(&text, &size);
    assert_non_null(stream);
    study_target_print_unknown(&small->study, stream);
    fclose(stream);
    assert_non_null(strstr(text, "The time to the target of ring among 4 is not known: no row"));
    assert_null(strstr(text, "among 2"));
    free(text);
    json_decref(known);
    json_decref(unknown);
    small_study_destroy(small);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_seconds_have_the_unit_that_people_use),
        cmocka_unit_test(test_without_a_table_there_is_no_column),
        cmocka_unit_test(test_a_time_that_is_not_known_says_why),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
