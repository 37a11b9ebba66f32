/* Tests of how a network's file says which messages are paced. */
#include "deploy/predict/basis/network_pacing.h"
#include "tests/support/common/captured_log.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h> // needs the four above
// clang-format on
#include <string.h>

static enum status read(const char *text, struct network_pacing *pacing)
{
    json_t *object = json_loads(text, 0, NULL);
    assert_non_null(object);
    enum status status = network_pacing_read(&(struct fields){"n.json", "", object}, pacing);
    json_decref(object);
    return status;
}

static void it_is_all_but_answers_or_nothing_or_what_is_named(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool ring, pushes, answers;
    } cases[] = {
        {"{}", false, false, false},
        {"{\"paced\": true}", true, true, false},
        {"{\"paced\": false}", false, false, false},
        {"{\"paced\": []}", false, false, false},
        {"{\"paced\": [\"pushes\"]}", false, true, false},
        {"{\"paced\": [\"answers\", \"ring\"]}", true, false, true},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct network_pacing pacing = {{false}};
        assert_int_equal(read(cases[i].text, &pacing), STATUS_OK);
        assert_int_equal(pacing.is_paced[NETWORK_WAY_RING], cases[i].ring);
        assert_int_equal(pacing.is_paced[NETWORK_WAY_PUSHES], cases[i].pushes);
        assert_int_equal(pacing.is_paced[NETWORK_WAY_ANSWERS], cases[i].answers);
    }
}

static void what_is_not_there_changes_nothing(void **state)
{
    (void)state;
    struct network_pacing pacing = {{[NETWORK_WAY_RING] = true}};
    assert_int_equal(read("{}", &pacing), STATUS_OK);
    assert_true(pacing.is_paced[NETWORK_WAY_RING]);
}

static void what_is_written_is_read_the_same(void **state)
{
    (void)state;
    for (int bits = 0; bits < 1 << NETWORK_WAY_COUNT; bits++) {
        struct network_pacing pacing = {{false}}, other = {{false}};
        for (int way = 0; way < NETWORK_WAY_COUNT; way++) {
            pacing.is_paced[way] = bits >> way & 1;
        }
        json_t *object = json_pack("{s:o}", "paced", network_pacing_json(&pacing));
        assert_int_equal(network_pacing_read(&(struct fields){"n.json", "", object}, &other),
                         STATUS_OK);
        assert_memory_equal(&pacing, &other, sizeof(pacing));
        json_decref(object);
    }
}

static void other_words_and_values_are_refused_by_name(void **state)
{
    (void)state;
    static const char *const texts[] = {"{\"paced\": 1}", "{\"paced\": \"ring\"}",
                                        "{\"paced\": [\"rings\"]}", "{\"paced\": [true]}",
                                        "{\"paced\": null}"};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct network_pacing pacing = {{false}};
        captured_log_begin();
        assert_int_equal(read(texts[i], &pacing), STATUS_INVALID);
        assert_non_null(strstr(captured_log_end(), "paced"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_is_all_but_answers_or_nothing_or_what_is_named),
        cmocka_unit_test(what_is_not_there_changes_nothing),
        cmocka_unit_test(what_is_written_is_read_the_same),
        cmocka_unit_test(other_words_and_values_are_refused_by_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
