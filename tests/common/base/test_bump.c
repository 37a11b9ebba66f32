/* Tests of the allocator that frees nothing. */
#include "common/base/bump.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <stdint.h>

static _Alignas(16) unsigned char block[64];

static void pieces_are_aligned_and_apart(void **state)
{
    (void)state;
    struct bump bump = {.bytes = block, .size = sizeof(block)};
    assert_ptr_equal(bump_alloc(&bump, 1), block);
    assert_ptr_equal(bump_alloc(&bump, 17), block + 16);
    assert_ptr_equal(bump_alloc(&bump, 16), block + 48);
    bump_free(&bump, block);
    assert_null(bump_alloc(&bump, 1));
}

static void what_is_too_large_gets_nothing_and_takes_nothing(void **state)
{
    (void)state;
    struct bump bump = {.bytes = block, .size = sizeof(block)};
    assert_non_null(bump_alloc(&bump, 60));
    assert_null(bump_alloc(&bump, 1)); // only the end of the last piece's room is left
    bump = (struct bump){.bytes = block, .size = sizeof(block)};
    assert_null(bump_alloc(&bump, sizeof(block) + 1));
    assert_null(bump_alloc(&bump, SIZE_MAX));
    assert_ptr_equal(bump_alloc(&bump, sizeof(block)), block);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces_are_aligned_and_apart),
        cmocka_unit_test(what_is_too_large_gets_nothing_and_takes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
