/* Tests of the headers of NumPy's arrays: what NumPy writes is understood, and nothing else. */
#include "tests/support/data/npz_maker.h"
#include "worker/data/npz/npy.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <string.h>

#define CAPACITY 1024

static const uint8_t items[64];

static enum status parse(uint8_t version, const char *text, size_t item_bytes, struct npy *ret_npy,
                         char why[256])
{
    uint8_t bytes[CAPACITY];
    size_t size = npz_maker_array(version, text, items, item_bytes, bytes, sizeof(bytes));
    why[0] = '\0';
    return npy_parse(bytes, size, ret_npy, why, 256);
}

static void all_versions_are_read(void **state)
{
    (void)state;
    static const char text[] =
        "{'descr': '|u1', 'fortran_order': False, 'shape': (2, 3, 4), }   \n";
    for (uint8_t version = 1; version <= 3; version++) {
        struct npy npy;
        char why[256];
        assert_int_equal(parse(version, text, 24, &npy, why), STATUS_OK);
        assert_string_equal(npy.type, "|u1");
        assert_int_equal(npy.kind, 'u');
        assert_int_equal(npy.item_bytes, 1);
        assert_false(npy.is_fortran);
        assert_int_equal(npy.dim_count, 3);
        assert_int_equal(npy.dims[0] * 100 + npy.dims[1] * 10 + npy.dims[2], 234);
        assert_int_equal(npy.count, 24);
        assert_int_equal(npy.at, (version == 1 ? 10 : 12) + strlen(text));
    }
}

static void shapes_and_types_are_those_of_the_header(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        size_t bytes;
        char order, kind;
        uint32_t item_bytes;
        bool is_fortran;
        const char *shape;
    } cases[] = {
        {"{'descr': '<i8', 'fortran_order': False, 'shape': (3,), }", 24, '<', 'i', 8, false,
         "(3,)"},
        {"{'descr': '>f4', 'fortran_order': True, 'shape': (2, 2)}", 16, '>', 'f', 4, true,
         "(2, 2)"},
        {"{'shape': (), 'fortran_order': False, 'descr': '|b1'}\n", 1, '|', 'b', 1, false, "()"},
        {"{ 'descr' : '<u2' , 'fortran_order' : False , 'shape' : ( 0 , 5 ) , } ", 0, '<', 'u', 2,
         false, "(0, 5)"},
        {"{'descr': '<c16', 'fortran_order': False, 'shape': (1, 1, 1, 1, 1, 1, 1, 2)}", 32, '<',
         'c', 16, false, "(1, 1, 1, 1, 1, 1, 1, 2)"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct npy npy;
        char why[256], shape[64];
        assert_int_equal(parse(1, cases[i].text, cases[i].bytes, &npy, why), STATUS_OK);
        assert_int_equal(npy.order, cases[i].order);
        assert_int_equal(npy.kind, cases[i].kind);
        assert_int_equal(npy.item_bytes, cases[i].item_bytes);
        assert_int_equal(npy.is_fortran, cases[i].is_fortran);
        npy_shape_text(&npy, shape, sizeof(shape));
        assert_string_equal(shape, cases[i].shape);
    }
}

static void what_is_no_array_of_numbers_is_refused(void **state)
{
    (void)state;
    static const struct {
        uint8_t version;
        const char *text;
        size_t bytes;
        const char *why;
    } cases[] = {
        {4, "{'descr': '|u1', 'fortran_order': False, 'shape': (1,)}", 1, "version 1 to 3"},
        {0, "{'descr': '|u1', 'fortran_order': False, 'shape': (1,)}", 1, "version 1 to 3"},
        {1, "", 0, "begin as NumPy's"},
        {1, "{'descr': '|O', 'fortran_order': False, 'shape': (1,)}", 8, "its type is |O"},
        {1, "{'descr': '<U5', 'fortran_order': False, 'shape': (1,)}", 20, "its type is <U5"},
        {1, "{'descr': '|u0', 'fortran_order': False, 'shape': (1,)}", 0, "its type is |u0"},
        {1, "{'descr': '|u1x', 'fortran_order': False, 'shape': (1,)}", 1, "its type is |u1x"},
        {1, "{'descr': '|\x1bu', 'fortran_order': False, 'shape': (1,)}", 1, "its type is |?u"},
        {1, "{'descr': [('a', '<i4')], 'fortran_order': False, 'shape': (1,)}", 4, "plain numbers"},
        {1, "{'descr': '|u1', 'fortran_order': 0, 'shape': (1,)}", 1, "header is damaged"},
        {1, "{'descr': '|u1', 'fortran_order': False, 'shape': (1)}", 1, "header is damaged"},
        {1, "{'descr': '|u1', 'fortran_order': False, 'shape': (-1,)}", 1, "header is damaged"},
        {1, "{'descr': '|u1', 'fortran_order': False, 'shape': 1}", 1, "header is damaged"},
        {1, "{'descr': '|u1', 'fortran_order': False}", 1, "header is damaged"},
        {1, "{'descr': '|u1', 'descr': '|u1', 'fortran_order': False, 'shape': (1,)}", 1,
         "damaged"},
        {1, "{'descr': '|u1', 'fortran_order': False, 'shape': (1,)} x", 1, "header is damaged"},
        {1, "{'descr': '|u1', 'fortran_order': False, 'shape': (1,), 'x': 1}", 1, "damaged"},
        {1, "{'descr': '|u1', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1)}", 1, "damaged"},
        {1, "{'descr': '|u1', 'fortran_order': False, 'shape': (18446744073709551616,)}", 0,
         "damaged"},
        {1, "{'descr': '|u1', 'fortran_order': False, 'shape': (4294967296, 4294967296)}", 0,
         "claims (4294967296, 4294967296) of |u1, but 0 bytes"},
        {1, "{'descr': '<i8', 'fortran_order': False, 'shape': (2305843009213693952,)}", 0,
         "but 0 bytes"},
        {1, "{'descr': '|u1', 'fortran_order': False, 'shape': (5,)}", 6, "but 6 bytes follow it"},
        {1, "{'descr': '|u1', 'fortran_order': False, 'shape': (5,)}", 4, "but 4 bytes follow it"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct npy npy;
        char why[256];
        enum status status = parse(cases[i].version, cases[i].text, cases[i].bytes, &npy, why);
        if (status == STATUS_OK || strstr(why, cases[i].why) == NULL) {
            fail_msg("%s: %s, \"%s\"", cases[i].text, status_text(status), why);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_versions_are_read),
        cmocka_unit_test(shapes_and_types_are_those_of_the_header),
        cmocka_unit_test(what_is_no_array_of_numbers_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
