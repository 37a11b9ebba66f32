/* Tests of unpacking. */
#include "tests/support/data/packed.h"
#include "worker/data/gzip.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <string.h>

#define TEXT_BYTES   1000
#define PACKED_BYTES 4096

static void make_text(uint8_t text[TEXT_BYTES])
{
    for (uint32_t i = 0; i < TEXT_BYTES; i++) {
        text[i] = (uint8_t)(i * i / 7);
    }
}

static void check_malformed(const uint8_t *packed, size_t packed_size, size_t size,
                            const char *reason)
{
    uint8_t bytes[2 * TEXT_BYTES];
    char why[200] = "";
    assert_int_equal(gzip_unpack(packed, packed_size, bytes, size, why, sizeof(why)),
                     STATUS_MALFORMED);
    if (strstr(why, reason) == NULL) {
        fail_msg("\"%s\" is not in: %s", reason, why);
    }
}

static void what_was_packed_is_unpacked(void **state)
{
    (void)state;
    uint8_t text[TEXT_BYTES], packed[PACKED_BYTES], bytes[TEXT_BYTES];
    char why[200];
    make_text(text);
    for (size_t size = 0; size <= TEXT_BYTES; size += 50) {
        size_t packed_size = packed_write(text, size, packed, sizeof(packed));
        assert_true(gzip_is_packed(packed, packed_size));
        assert_int_equal(gzip_unpack(packed, packed_size, bytes, size, why, sizeof(why)),
                         STATUS_OK);
        assert_memory_equal(bytes, text, size);
    }
}

static void several_members_are_one_file(void **state)
{
    (void)state;
    uint8_t text[TEXT_BYTES], packed[PACKED_BYTES], bytes[TEXT_BYTES];
    char why[200];
    make_text(text);
    size_t size = packed_write(text, 300, packed, sizeof(packed));
    size += packed_write(text + 300, 700, packed + size, sizeof(packed) - size);
    size += packed_write(text, 0, packed + size, sizeof(packed) - size);
    assert_int_equal(gzip_unpack(packed, size, bytes, TEXT_BYTES, why, sizeof(why)), STATUS_OK);
    assert_memory_equal(bytes, text, TEXT_BYTES);
}

static void the_beginning_can_be_had_without_the_rest(void **state)
{
    (void)state;
    uint8_t text[TEXT_BYTES], packed[PACKED_BYTES], bytes[TEXT_BYTES];
    make_text(text);
    size_t size = packed_write(text, TEXT_BYTES, packed, sizeof(packed));
    assert_int_equal(gzip_peek(packed, size, bytes, 16), STATUS_OK);
    assert_memory_equal(bytes, text, 16);
    assert_int_equal(gzip_peek(packed, size, bytes, TEXT_BYTES), STATUS_OK);
    size = packed_write(text, 15, packed, sizeof(packed));
    assert_int_equal(gzip_peek(packed, size, bytes, 16), STATUS_MALFORMED);
    assert_int_equal(gzip_peek(packed, 3, bytes, 1), STATUS_MALFORMED);
}

static void a_file_that_breaks_off_anywhere_is_refused(void **state)
{
    (void)state;
    uint8_t text[TEXT_BYTES], packed[PACKED_BYTES];
    make_text(text);
    size_t whole = packed_write(text, TEXT_BYTES, packed, sizeof(packed));
    for (size_t size = 0; size < whole; size++) {
        check_malformed(packed, size, TEXT_BYTES, "it breaks off after");
    }
}

static void more_or_less_than_expected_is_refused(void **state)
{
    (void)state;
    uint8_t text[TEXT_BYTES], packed[PACKED_BYTES];
    make_text(text);
    size_t size = packed_write(text, TEXT_BYTES, packed, sizeof(packed));
    check_malformed(packed, size, TEXT_BYTES + 1, "unpacks to 1000 bytes where 1001 were");
    check_malformed(packed, size, TEXT_BYTES - 1, "unpacks to more than the 999 bytes");
}

static void what_follows_the_last_member_is_refused(void **state)
{
    (void)state;
    uint8_t text[TEXT_BYTES], packed[PACKED_BYTES] = {0};
    make_text(text);
    size_t size = packed_write(text, TEXT_BYTES, packed, sizeof(packed));
    memset(packed + size, 0, 20);
    check_malformed(packed, size + 20, TEXT_BYTES, "incorrect header check");
}

static void damage_is_said_to_be_damage(void **state)
{
    (void)state;
    uint8_t text[TEXT_BYTES], packed[PACKED_BYTES];
    make_text(text);
    size_t size = packed_write(text, TEXT_BYTES, packed, sizeof(packed));
    packed[size - 1] ^= 1;
    check_malformed(packed, size, TEXT_BYTES, "incorrect length check");
    packed[size - 1] ^= 1;
    packed[size - 5] ^= 1;
    check_malformed(packed, size, TEXT_BYTES, "incorrect data check");
}

static void only_the_magic_number_makes_a_packed_file(void **state)
{
    (void)state;
    static const uint8_t bytes[] = {0x1F, 0x8B};
    assert_true(gzip_is_packed(bytes, 2));
    assert_false(gzip_is_packed(bytes, 1));
    assert_false(gzip_is_packed(bytes + 1, 1));
    assert_false(gzip_is_packed(NULL, 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_packed_is_unpacked),
        cmocka_unit_test(several_members_are_one_file),
        cmocka_unit_test(the_beginning_can_be_had_without_the_rest),
        cmocka_unit_test(a_file_that_breaks_off_anywhere_is_refused),
        cmocka_unit_test(more_or_less_than_expected_is_refused),
        cmocka_unit_test(what_follows_the_last_member_is_refused),
        cmocka_unit_test(damage_is_said_to_be_damage),
        cmocka_unit_test(only_the_magic_number_makes_a_packed_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
