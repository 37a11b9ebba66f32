/* Tests of what is read from a worker's description of a model. */
#include "deploy/calibrate/model_layers.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h> // needs the four above
// clang-format on

static struct model_layers layers;

static enum status read_text(const char *text)
{
    json_t *description = json_loads(text, 0, NULL);
    assert_non_null(description);
    enum status status = model_layers_read(description, &layers);
    json_decref(description);
    return status;
}

static void layers_are_numbered_and_have_what_lies_up_to_the_next(void **state)
{
    (void)state;
    assert_int_equal(read_text("{\"values\": 160, \"layers\": [{\"kind\": \"conv2d\", \"weight\": "
                               "0, \"bias\": 90}, {\"kind\": \"linear\", \"weight\": 100}]}"),
                     STATUS_OK);
    assert_int_equal(layers.count, 2);
    assert_string_equal(layers.list[0].name, "conv2d 1");
    assert_string_equal(layers.list[1].name, "linear 2");
    assert_int_equal(layers.list[0].parameters, 100);
    assert_int_equal(layers.list[1].parameters, 60);
    assert_int_equal(layers.parameters, 160);
}

static void a_description_without_sense_is_refused(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "{}",
        "{\"values\": 5, \"layers\": []}",
        "{\"values\": 5, \"layers\": [{\"kind\": \"linear\"}]}",
        "{\"values\": 5, \"layers\": [{\"weight\": 0}]}",
        "{\"values\": 0, \"layers\": [{\"kind\": \"linear\", \"weight\": 0}]}",
        "{\"values\": 5, \"layers\": [{\"kind\": \"linear\", \"weight\": 1}]}",
        "{\"values\":5,\"layers\":[{\"kind\":\"a\",\"weight\":0},{\"kind\":\"b\",\"weight\":0}]}",
    };
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        assert_int_equal(read_text(texts[i]), STATUS_MALFORMED);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layers_are_numbered_and_have_what_lies_up_to_the_next),
        cmocka_unit_test(a_description_without_sense_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
