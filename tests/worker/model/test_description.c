/* Tests of descriptions: every parameter and every statistic belongs to one layer. */
#include "common/options/names.h"
#include "worker/model/description.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <jansson.h>

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static json_t *describe(const char *model, struct shape input)
{
    char *text;
    assert_int_equal(description_make(model, input, 10, &text), STATUS_OK);
    json_t *whole = json_loads(text, 0, NULL);
    assert_non_null(whole);
    free(text);
    return whole;
}

static uint64_t number(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    assert_true(json_is_integer(value) && json_integer_value(value) >= 0);
    return (uint64_t)json_integer_value(value);
}

static void take(bool *is_taken, uint64_t offset, uint64_t count, uint64_t limit)
{
    assert_true(offset <= limit && count <= limit - offset);
    for (uint64_t i = offset; i < offset + count; i++) {
        assert_false(is_taken[i]);
        is_taken[i] = true;
    }
}

static void every_value_of_every_model_belongs_to_one_layer(void **state)
{
    (void)state;
    for (const struct option_choice *choice = names_models; choice->name != NULL; choice++) {
        json_t *whole = describe(choice->name, (struct shape){3, 32, 32});
        uint64_t values = number(whole, "values"), statistics = number(whole, "statistics");
        bool *is_value = calloc(values + 1, sizeof(bool));
        bool *is_statistic = calloc(statistics + 1, sizeof(bool));
        size_t i;
        const json_t *layer, *layers = json_object_get(whole, "layers");
        assert_non_null(is_value);
        assert_non_null(is_statistic);
        json_array_foreach(layers, i, layer)
        {
            uint64_t count = 1;
            const json_t *shape = json_object_get(layer, "shape");
            uint64_t channels = (uint64_t)json_integer_value(json_array_get(shape, 0));
            for (size_t j = 0; j < json_array_size(shape); j++) {
                count *= (uint64_t)json_integer_value(json_array_get(shape, j));
            }
            take(is_value, number(layer, "weight"), count, values);
            if (json_object_get(layer, "bias") != NULL) {
                take(is_value, number(layer, "bias"), channels, values);
            }
            if (json_object_get(layer, "statistics") != NULL) {
                take(is_statistic, number(layer, "statistics"), 2 * channels, statistics);
            }
        }
        assert_null(memchr(is_value, false, values));
        assert_true(statistics == 0 || memchr(is_statistic, false, statistics) == NULL);
        free(is_value);
        free(is_statistic);
        json_decref(whole);
    }
}

static void lenet5_is_described_as_it_was_published(void **state)
{
    (void)state;
    json_t *whole = describe("lenet5", (struct shape){1, 28, 28});
    json_t *expected = json_loads(
        "{\"model\": \"lenet5\", \"input\": [1, 28, 28], \"classes\": 10, \"values\": 61706,"
        " \"statistics\": 0, \"layers\": ["
        "{\"kind\": \"conv2d\", \"shape\": [6, 1, 5, 5], \"weight\": 0, \"bias\": 150},"
        "{\"kind\": \"conv2d\", \"shape\": [16, 6, 5, 5], \"weight\": 156, \"bias\": 2556},"
        "{\"kind\": \"linear\", \"shape\": [120, 16, 5, 5], \"weight\": 2572, \"bias\": 50572},"
        "{\"kind\": \"linear\", \"shape\": [84, 120, 1, 1], \"weight\": 50692, \"bias\": 60772},"
        "{\"kind\": \"linear\", \"shape\": [10, 84, 1, 1], \"weight\": 60856, \"bias\": 61696}]}",
        0, NULL);
    assert_non_null(expected);
    assert_true(json_equal(whole, expected));
    json_decref(expected);
    json_decref(whole);
}

static void what_cannot_be_built_is_not_described(void **state)
{
    (void)state;
    char *text;
    assert_int_equal(description_make("lenet6", (struct shape){1, 28, 28}, 10, &text),
                     STATUS_INVALID);
    assert_int_equal(description_make("lenet5", (struct shape){1, 4, 4}, 10, &text),
                     STATUS_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_value_of_every_model_belongs_to_one_layer),
        cmocka_unit_test(lenet5_is_described_as_it_was_published),
        cmocka_unit_test(what_cannot_be_built_is_not_described),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
