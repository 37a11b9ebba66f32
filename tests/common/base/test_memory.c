/* Tests of large buffers and of the heap's settings. */
#include "common/base/memory.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <malloc.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define MIB ((size_t)1024 * 1024)

static const size_t sizes[] = {
    1, 4, 4095, 4096, 4097, 100000, 2 * MIB - 1, 2 * MIB, 2 * MIB + 1, 5 * MIB + 12345,
};

static void a_buffer_is_zeroed_and_can_be_written(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        unsigned char *bytes = memory_create_large(sizes[i]);
        assert_non_null(bytes);
        for (size_t j = 0; j < sizes[i]; j++) {
            assert_int_equal(bytes[j], 0);
            bytes[j] = 0xA5;
        }
        memory_destroy_large(bytes, sizes[i]);
    }
}

static void a_buffer_is_aligned_to_pages_and_a_large_one_to_huge_pages(void **state)
{
    (void)state;
    size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE);
    assert_int_equal(page_bytes % MEMORY_ALIGNMENT, 0);
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        void *buffer = memory_create_large(sizes[i]);
        size_t alignment = sizes[i] >= 2 * MIB ? 2 * MIB : page_bytes;
        assert_int_equal((uintptr_t)buffer % alignment, 0);
        memory_destroy_large(buffer, sizes[i]);
    }
}

static void all_pages_are_there_before_the_first_use(void **state)
{
    (void)state;
    size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE);
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        void *buffer = memory_create_large(sizes[i]);
        size_t page_count = (sizes[i] + page_bytes - 1) / page_bytes;
        unsigned char *is_resident = malloc(page_count);
        assert_int_equal(mincore(buffer, sizes[i], is_resident), 0);
        for (size_t j = 0; j < page_count; j++) {
            assert_int_equal(is_resident[j] & 1, 1);
        }
        free(is_resident);
        memory_destroy_large(buffer, sizes[i]);
    }
}

static void nothing_of_a_destroyed_buffer_stays_mapped(void **state)
{
    (void)state;
    size_t bytes = 5 * MIB + 12345;
    size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE);
    unsigned char *buffer = memory_create_large(bytes);
    memory_destroy_large(buffer, bytes);
    unsigned char is_resident;
    assert_int_equal(mincore(buffer, page_bytes, &is_resident), -1);
    assert_int_equal(mincore(buffer + 6 * MIB - page_bytes, page_bytes, &is_resident), -1);
}

static void an_empty_buffer_is_a_buffer(void **state)
{
    (void)state;
    void *buffer = memory_create_large(0);
    assert_non_null(buffer);
    memory_destroy_large(buffer, 0);
}

static void sizes_that_no_machine_has_are_refused(void **state)
{
    (void)state;
    assert_null(memory_create_large(SIZE_MAX));
    assert_null(memory_create_large(SIZE_MAX - 4095));
    assert_null(memory_create_large((size_t)PTRDIFF_MAX + 1));
    assert_null(memory_create_large(PTRDIFF_MAX));
    assert_null(memory_create_large(PTRDIFF_MAX - 4 * MIB));
    assert_null(memory_create_large((size_t)1 << 60));
}

static void destroying_null_does_nothing(void **state)
{
    (void)state;
    memory_destroy_large(NULL, 0);
    memory_destroy_large(NULL, 5 * MIB);
}

static void a_kept_heap_holds_bodies_of_messages_without_mapping_them(void **state)
{
    (void)state;
    memory_keep_heap();
    size_t mapped_before = mallinfo2().hblks;
    void *body = malloc(16 * MIB);
    assert_non_null(body);
    assert_int_equal(mallinfo2().hblks, mapped_before);
    size_t heap_bytes = mallinfo2().arena;
    free(body);
    assert_int_equal(mallinfo2().arena, heap_bytes);
}

static void what_is_available_is_less_than_there_is(void **state)
{
    (void)state;
    uint64_t all = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
    uint64_t bytes = memory_available();
    assert_true(bytes > 0 && bytes < all);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_buffer_is_zeroed_and_can_be_written),
        cmocka_unit_test(a_buffer_is_aligned_to_pages_and_a_large_one_to_huge_pages),
        cmocka_unit_test(all_pages_are_there_before_the_first_use),
        cmocka_unit_test(nothing_of_a_destroyed_buffer_stays_mapped),
        cmocka_unit_test(an_empty_buffer_is_a_buffer),
        cmocka_unit_test(sizes_that_no_machine_has_are_refused),
        cmocka_unit_test(destroying_null_does_nothing),
        cmocka_unit_test(a_kept_heap_holds_bodies_of_messages_without_mapping_them),
        cmocka_unit_test(what_is_available_is_less_than_there_is),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
