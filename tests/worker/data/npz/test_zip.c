/* Tests of reading zip files: what was put in comes out, and damage anywhere is noticed. */
#include "tests/support/data/npz_maker.h"
#include "worker/data/npz/zip.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MEMBER_BYTES 500

static uint8_t byte_of(unsigned member, size_t i)
{
    return (uint8_t)(i * i / 7 + (size_t)member * 31);
}

static void make(struct npz_maker *maker, bool is_deflated, bool is_zip64)
{
    *maker = (struct npz_maker){.is_deflated = is_deflated, .is_zip64 = is_zip64};
    for (unsigned member = 0; member < 3; member++) {
        uint8_t bytes[MEMBER_BYTES];
        char name[16];
        for (size_t i = 0; i < MEMBER_BYTES; i++) {
            bytes[i] = byte_of(member, i);
        }
        snprintf(name, sizeof(name), "member %u", member);
        npz_maker_add(maker, name, bytes, MEMBER_BYTES - member);
    }
    npz_maker_finish(maker);
}

/* Reads all members; the first status that is not STATUS_OK, and the reason. */
static enum status read_all(const uint8_t *file, uint64_t size, unsigned *ret_count, char *ret_why)
{
    struct zip zip;
    struct zip_member member;
    enum status status = zip_open(file, size, &zip, ret_why, 256);
    if (status != STATUS_OK) {
        return status;
    }
    uint64_t at = zip.directory;
    *ret_count = 0;
    for (;;) {
        uint8_t room[MEMBER_BYTES];
        status = zip_next(&zip, &at, &member, ret_why, 256);
        if (status != STATUS_OK) {
            return status == STATUS_END_OF_DATA ? STATUS_OK : status;
        }
        if (member.bytes > sizeof(room)) {
            return STATUS_MALFORMED;
        }
        status = zip_read(&member, member.is_deflated ? room : NULL, ret_why, 256);
        if (status != STATUS_OK) {
            return status;
        }
        const uint8_t *bytes = member.is_deflated ? room : member.packed;
        for (size_t i = 0; i < member.bytes; i++) {
            assert_int_equal(bytes[i], byte_of(*ret_count, i));
        }
        ++*ret_count;
    }
}

static void members_come_out_as_they_were_put_in(void **state)
{
    (void)state;
    static struct npz_maker maker;
    for (unsigned kind = 0; kind < 4; kind++) {
        char why[256] = "";
        unsigned count;
        make(&maker, kind % 2 == 1, kind / 2 == 1);
        assert_int_equal(read_all(maker.bytes, maker.size, &count, why), STATUS_OK);
        assert_int_equal(count, 3);
    }
}

static void a_comment_at_the_end_is_passed_over(void **state)
{
    (void)state;
    static struct npz_maker maker;
    char why[256] = "";
    unsigned count;
    make(&maker, true, false);
    maker.bytes[maker.size - 2] = 5;
    memcpy(maker.bytes + maker.size, "PK\5\6!", 5);
    assert_int_equal(read_all(maker.bytes, maker.size + 5, &count, why), STATUS_OK);
    assert_int_equal(count, 3);
}

/* A file of its own for each length, so that a sanitizer sees what is read behind its end. */
static void a_file_that_was_cut_is_refused_at_any_length(void **state)
{
    (void)state;
    static struct npz_maker maker;
    for (unsigned kind = 0; kind < 4; kind++) {
        make(&maker, kind % 2 == 1, kind / 2 == 1);
        for (size_t size = 0; size < maker.size; size += 3) {
            char why[256] = "";
            unsigned count;
            uint8_t *cut = malloc(size + 1);
            assert_non_null(cut);
            memcpy(cut, maker.bytes, size);
            assert_int_not_equal(read_all(cut, size, &count, why), STATUS_OK);
            assert_int_not_equal(why[0], '\0');
            free(cut);
        }
    }
}

/* The bytes of members: each is part of what the checksum is of. */
static void a_changed_byte_of_a_member_is_noticed(void **state)
{
    (void)state;
    static struct npz_maker maker;
    for (unsigned kind = 0; kind < 2; kind++) {
        make(&maker, kind == 1, false);
        for (size_t i = 38; i < 60; i++) { // behind what stands in front of the first member
            char why[256] = "";
            unsigned count;
            maker.bytes[i] ^= 4;
            assert_int_equal(read_all(maker.bytes, maker.size, &count, why), STATUS_MALFORMED);
            assert_non_null(strstr(why, "it is damaged: "));
            maker.bytes[i] ^= 4;
        }
    }
}

/* Where a field of the first entry of the directory is. */
static uint8_t *entry_of(struct npz_maker *maker)
{
    return memmem(maker->bytes, maker->size, "PK\1\2", 4);
}

static void refuse(struct npz_maker *maker, size_t field, uint8_t value, const char *text)
{
    char why[256] = "";
    unsigned count;
    entry_of(maker)[field] = value;
    enum status status = read_all(maker->bytes, maker->size, &count, why);
    if (status == STATUS_OK || strstr(why, text) == NULL) {
        fail_msg("%s, \"%s\" instead of \"%s\"", status_text(status), why, text);
    }
}

static void what_cannot_be_unpacked_is_said(void **state)
{
    (void)state;
    static struct npz_maker maker;
    make(&maker, false, false);
    refuse(&maker, 8, 1, "a member is encrypted");
    make(&maker, false, false);
    refuse(&maker, 10, 12, "compressed by method 12");
    make(&maker, false, false);
    refuse(&maker, 24, 1, "a stored member has two sizes");
    make(&maker, true, false);
    refuse(&maker, 26, 255, "too short for what it claims to unpack to");
    make(&maker, true, false);
    refuse(&maker, 24, 1, "it does not unpack");
    make(&maker, true, false);
    refuse(&maker, 42, 1, "does not lie where the directory says");
    make(&maker, false, true);
    refuse(&maker, 46 + 8 + 6, 9, "the sizes of a member are missing (zip64)");
    make(&maker, false, false);
    entry_of(&maker)[20] = entry_of(&maker)[24] = 0xFF;
    entry_of(&maker)[21] = entry_of(&maker)[25] = 0xFF;
    refuse(&maker, 8, 0, "a member is longer than the file");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(members_come_out_as_they_were_put_in),
        cmocka_unit_test(a_comment_at_the_end_is_passed_over),
        cmocka_unit_test(a_file_that_was_cut_is_refused_at_any_length),
        cmocka_unit_test(a_changed_byte_of_a_member_is_noticed),
        cmocka_unit_test(what_cannot_be_unpacked_is_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
