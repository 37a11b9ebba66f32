/* Tests of tensors: names and layouts of both frameworks, and descriptions that make no sense. */
#include "deploy/export/tensors.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <string.h>

// conv2d (2, 3, 2, 2) with bias; batch_norm (2); conv2d (1, 2, 1, 1) without; linear (2, 1, 2, 3).
#define DESCRIPTION                                                                  \
    "{\"values\": 44, \"statistics\": 4, \"layers\": ["                              \
    "{\"kind\": \"conv2d\", \"shape\": [2, 3, 2, 2], \"weight\": 0, \"bias\": 24},"  \
    "{\"kind\": \"batch_norm\", \"shape\": [2], \"weight\": 26, \"bias\": 28,"       \
    " \"statistics\": 0, \"epsilon\": 1e-5},"                                        \
    "{\"kind\": \"conv2d\", \"shape\": [1, 2, 1, 1], \"weight\": 30},"               \
    "{\"kind\": \"linear\", \"shape\": [2, 1, 2, 2], \"weight\": 32, \"bias\": 40}," \
    "{\"kind\": \"linear\", \"shape\": [1, 1, 1, 1], \"weight\": 42, \"bias\": 43}]}"

static float values[44], statistics[4];

static struct tensor_source source_of_numbers(void)
{
    for (int i = 0; i < 44; i++) {
        values[i] = (float)i;
    }
    for (int i = 0; i < 4; i++) {
        statistics[i] = (float)(100 + i);
    }
    return (struct tensor_source){values, statistics, 44, 4, 938};
}

static struct tensors make(enum tensor_names names)
{
    char error[256];
    struct tensors tensors;
    struct tensor_source source = source_of_numbers();
    json_t *model = json_loads(DESCRIPTION, 0, NULL);
    assert_non_null(model);
    assert_int_equal(tensors_make(model, &source, names, &tensors, error, sizeof(error)),
                     STATUS_OK);
    json_decref(model);
    return tensors;
}

static void check_tensor(const struct tensor *tensor, const char *name, const char *shape,
                         float first)
{
    char text[64] = "";
    uint64_t count = 1;
    for (uint32_t i = 0; i < tensor->rank; i++) {
        size_t at = strlen(text);
        snprintf(text + at, sizeof(text) - at, "%s%u", i > 0 ? " " : "", tensor->shape[i]);
        count *= tensor->shape[i];
    }
    assert_string_equal(tensor->name, name);
    assert_string_equal(text, shape);
    assert_int_equal(tensor->count, count);
    assert_true(tensor->floats != NULL ? tensor->floats[0] == first
                                       : (float)tensor->whole == first);
}

static void torch_has_its_own_names_and_our_order(void **state)
{
    (void)state;
    static const struct {
        const char *name, *shape;
        float first;
    } expected[] = {
        {"conv1.weight", "2 3 2 2", 0},
        {"conv1.bias", "2", 24},
        {"bn1.weight", "2", 26},
        {"bn1.bias", "2", 28},
        {"bn1.running_mean", "2", 100},
        {"bn1.running_var", "2", 102},
        {"bn1.num_batches_tracked", "", 938},
        {"conv2.weight", "1 2 1 1", 30},
        {"fc1.weight", "2 4", 32},
        {"fc1.bias", "2", 40},
        {"fc2.weight", "1 1", 42},
        {"fc2.bias", "1", 43},
    };
    struct tensors tensors = make(TENSOR_NAMES_TORCH);
    assert_int_equal(tensors.count, sizeof(expected) / sizeof(expected[0]));
    for (uint32_t i = 0; i < tensors.count; i++) {
        check_tensor(&tensors.list[i], expected[i].name, expected[i].shape, expected[i].first);
        for (uint64_t j = 1; tensors.list[i].floats != NULL && j < tensors.list[i].count; j++) {
            assert_true(tensors.list[i].floats[j] == expected[i].first + (float)j);
        }
    }
    tensors_finish(&tensors);
}

static void keras_has_the_pixels_first(void **state)
{
    (void)state;
    static const char *const names[] = {
        "conv2d/kernel",
        "conv2d/bias",
        "batch_normalization/gamma",
        "batch_normalization/beta",
        "batch_normalization/moving_mean",
        "batch_normalization/moving_variance",
        "conv2d_1/kernel",
        "dense/kernel",
        "dense/bias",
        "dense_1/kernel",
        "dense_1/bias",
    };
    struct tensors tensors = make(TENSOR_NAMES_KERAS);
    assert_int_equal(tensors.count, sizeof(names) / sizeof(names[0]));
    for (uint32_t i = 0; i < tensors.count; i++) {
        assert_string_equal(tensors.list[i].name, names[i]);
    }
    check_tensor(&tensors.list[0], "conv2d/kernel", "2 2 3 2", 0);
    // (R, S, C, K) = (r, s, c, k) of (K, C, R, S).
    for (uint32_t i = 0; i < 24; i++) {
        uint32_t k = i % 2, c = i / 2 % 3, s = i / 6 % 2, r = i / 12;
        assert_true(tensors.list[0].floats[i] == (float)(((k * 3 + c) * 2 + r) * 2 + s));
    }
    check_tensor(&tensors.list[7], "dense/kernel", "4 2", 32);
    // One channel, so that pixels keep their order: (H W C, K) of (K, C, H, W).
    for (uint32_t i = 0; i < 8; i++) {
        uint32_t k = i % 2, pixel = i / 2;
        assert_true(tensors.list[7].floats[i] == (float)(32 + k * 4 + pixel));
    }
    tensors_finish(&tensors);
}

static void a_description_that_makes_no_sense_is_refused(void **state)
{
    (void)state;
#define WITH(layers) "{\"values\": 44, \"statistics\": 4, \"layers\": [" layers "]}"
    static const struct {
        const char *text, *error;
    } cases[] = {
        {"{}", "44 parameters"},
        {"[]", "44 parameters"},
        {"{\"values\": 45, \"statistics\": 4, \"layers\": []}", "44 parameters"},
        {"{\"values\": 44, \"statistics\": 5, \"layers\": []}", "4 statistics"},
        {WITH(""), "44 parameters"},
        {WITH("{\"kind\": \"lstm\", \"shape\": [1], \"weight\": 0}"), "layer 1"},
        {WITH("{\"kind\": \"conv2d\", \"shape\": [1, 1, 1, 1], \"weight\": 44}"), "layer 1"},
        {WITH("{\"kind\": \"conv2d\", \"shape\": [1, 1, 1, 1], \"weight\": -1}"), "layer 1"},
        {WITH("{\"kind\": \"conv2d\", \"shape\": [1, 1, 1], \"weight\": 0}"), "layer 1"},
        {WITH("{\"kind\": \"conv2d\", \"shape\": [0, 1, 1, 1], \"weight\": 0}"), "layer 1"},
        {WITH("{\"kind\": \"conv2d\", \"shape\": [45, 1, 1, 1], \"weight\": 0}"), "layer 1"},
        {WITH("{\"kind\": \"conv2d\", \"shape\": [65536, 65536, 65536, 65536], \"weight\": 0}"),
         "layer 1"},
        {WITH("{\"kind\": \"conv2d\", \"shape\": [2, 1, 1, 1], \"weight\": 0, \"bias\": 43}"),
         "layer 1"},
        {WITH("{\"kind\": \"batch_norm\", \"shape\": [2], \"weight\": 0, \"bias\": 2}"), "layer 1"},
        {WITH("{\"kind\": \"batch_norm\", \"shape\": [2], \"weight\": 0, \"statistics\": 0}"),
         "layer 1"},
        {WITH("{\"kind\": \"batch_norm\", \"shape\": [2], \"weight\": 0, \"bias\": 2,"
              " \"statistics\": 1}"),
         "layer 1"},
        {WITH("{\"kind\": \"linear\", \"shape\": [1, 1, 1, 1], \"weight\": 0}, 7"), "layer 2"},
    };
    struct tensor_source source = source_of_numbers();
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char error[256] = "";
        struct tensors tensors;
        json_t *model = json_loads(cases[i].text, 0, NULL);
        assert_non_null(model);
        assert_int_equal(
            tensors_make(model, &source, TENSOR_NAMES_TORCH, &tensors, error, sizeof(error)),
            STATUS_MALFORMED);
        assert_non_null(strstr(error, cases[i].error));
        json_decref(model);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(torch_has_its_own_names_and_our_order),
        cmocka_unit_test(keras_has_the_pixels_first),
        cmocka_unit_test(a_description_that_makes_no_sense_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
