/* Tests of what an exchange sends in the place of values. */
#include "worker/exchange/coder.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <math.h>
#include <string.h>

static const struct layout layout = {.value_count = 8, .bucket_count = 1, .buckets = {{0, 8}}};

static struct coder created(const char *text)
{
    char why[128];
    struct codec codec;
    struct coder coder;
    assert_int_equal(codec_parse(text, &codec, why, sizeof(why)), STATUS_OK);
    assert_int_equal(coder_create(&codec, &layout, &coder), STATUS_OK);
    return coder;
}

static void without_compression_values_are_sent_where_they_lie(void **state)
{
    (void)state;
    struct coder coder = created("none");
    float values[8] = {1, 2, 3, 4, 5, 6, 7, 8}, to[8] = {0};
    struct message message = {.span = {2, 3}};
    assert_false(coder_is_on(&coder));
    coder_encode(&coder, values, &message);
    assert_ptr_equal(message.values, values + 2);
    assert_null(message.code);
    assert_int_equal(coder_copy(&coder, &message, to), STATUS_OK);
    assert_int_equal(coder_add(&coder, &message, to), STATUS_OK);
    const float wanted[8] = {0, 0, 6, 8, 10, 0, 0, 0};
    assert_memory_equal(to, wanted, sizeof(to));
    coder_destroy(&coder);
}

static void what_a_code_loses_comes_with_the_next(void **state)
{
    (void)state;
    struct coder coder = created("topk:0.25"); // two of eight
    const float values[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    float sum[8] = {0};
    for (int round = 0; round < 40; round++) {
        struct message message = {.span = {0, 8}};
        coder_encode(&coder, values, &message);
        assert_null(message.values);
        assert_int_equal(coder_add(&coder, &message, sum), STATUS_OK);
    }
    for (int i = 0; i < 8; i++) {
        assert_true(fabsf(sum[i] + coder.residual[i] - 40 * values[i]) < 1e-3f);
        assert_true(sum[i] > 0);
    }
    coder_destroy(&coder);
}

static void spans_have_codes_of_their_own(void **state)
{
    (void)state;
    struct coder coder = created("bf16");
    const float values[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    float to[8] = {0};
    struct message first = {.span = {0, 1}}, second = {.span = {1, 7}}, kept = {.span = {0, 1}};
    coder_encode(&coder, values, &first);
    coder_encode(&coder, values, &second);
    assert_int_equal(coder_copy(&coder, &first, to), STATUS_OK);
    assert_int_equal(coder_copy(&coder, &second, to), STATUS_OK);
    assert_memory_equal(to, values, sizeof(values));
    unsigned char others[2];
    memcpy(others, second.code, sizeof(others)); // the code of 2
    const struct message from = {.span = {0, 1}, .code = others, .code_bytes = sizeof(others)};
    coder_keep(&coder, &from, &kept);
    assert_ptr_equal(kept.code, first.code);
    assert_int_equal(coder_copy(&coder, &kept, to), STATUS_OK);
    assert_true(to[0] == 2 && to[1] == 2);
    coder_destroy(&coder);
}

static void what_is_not_as_agreed_is_refused(void **state)
{
    (void)state;
    struct coder on = created("int8"), off = created("none");
    float to[8] = {0};
    const float none[8] = {0};
    unsigned char code[16] = {0};
    const struct message values = {.span = {0, 8}, .values = none};
    const struct message shorter = {.span = {0, 8}, .code = code, .code_bytes = 11};
    const struct message whole = {.span = {0, 8}, .code = code, .code_bytes = 12};
    assert_int_equal(coder_copy(&on, &values, to), STATUS_MALFORMED);
    assert_int_equal(coder_add(&on, &shorter, to), STATUS_MALFORMED);
    assert_int_equal(coder_add(&off, &whole, to), STATUS_MALFORMED);
    assert_int_equal(coder_copy(&off, &whole, to), STATUS_MALFORMED);
    assert_int_equal(coder_copy(&on, &whole, to), STATUS_OK);
    assert_int_equal(coder_check(&on, &values), STATUS_MALFORMED);
    assert_int_equal(coder_check(&on, &shorter), STATUS_MALFORMED);
    assert_int_equal(coder_check(&off, &whole), STATUS_MALFORMED);
    assert_int_equal(coder_check(&on, &whole), STATUS_OK);
    assert_int_equal(coder_check(&off, &values), STATUS_OK);
    assert_memory_equal(to, none, sizeof(to));
    coder_destroy(&on);
    coder_destroy(&off);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_compression_values_are_sent_where_they_lie),
        cmocka_unit_test(what_a_code_loses_comes_with_the_next),
        cmocka_unit_test(spans_have_codes_of_their_own),
        cmocka_unit_test(what_is_not_as_agreed_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
