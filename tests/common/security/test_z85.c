/* Tests of Z85: the vectors of RFC 32, and text that is none. */
#include "common/security/z85.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <string.h>

static void the_vectors_of_the_rfc_come_out(void **state)
{
    (void)state;
    const unsigned char hello[] = {0x86, 0x4F, 0xD2, 0x6F, 0xB5, 0x59, 0xF7, 0x5B};
    char text[Z85_TEXT_BYTES(sizeof(hello))];
    unsigned char bytes[sizeof(hello)];
    z85_encode(hello, sizeof(hello), text);
    assert_string_equal(text, "HelloWorld");
    assert_true(z85_decode("HelloWorld", 10, bytes));
    assert_memory_equal(bytes, hello, sizeof(hello));
    z85_encode(hello, 0, text);
    assert_string_equal(text, "");
    assert_true(z85_decode("", 0, bytes));
}

static void every_byte_comes_back(void **state)
{
    (void)state;
    unsigned char bytes[256], back[sizeof(bytes)];
    char text[Z85_TEXT_BYTES(sizeof(bytes))];
    for (unsigned i = 0; i < sizeof(bytes); i++) {
        bytes[i] = (unsigned char)(255 - i);
    }
    z85_encode(bytes, sizeof(bytes), text);
    assert_int_equal(strlen(text), sizeof(text) - 1);
    assert_true(z85_decode(text, strlen(text), back));
    assert_memory_equal(back, bytes, sizeof(bytes));
}

static void what_is_no_text_of_bytes_is_refused(void **state)
{
    (void)state;
    // Too short, a character that is none, more than four bytes can hold, a terminator inside.
    const char *const texts[] = {"Hell", "Hel\"o", "Hel o", "#####", "%nSc1", "Hell\xc3", "Hel\0o"};
    unsigned char bytes[8];
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        size_t size = i == 0 ? 4 : 5;
        assert_false(z85_decode(texts[i], size, bytes));
    }
    assert_true(z85_decode("%nSc0", 5, bytes)); // the largest
    const unsigned char largest[] = {0xFF, 0xFF, 0xFF, 0xFF};
    assert_memory_equal(bytes, largest, sizeof(largest));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_vectors_of_the_rfc_come_out),
        cmocka_unit_test(every_byte_comes_back),
        cmocka_unit_test(what_is_no_text_of_bytes_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
