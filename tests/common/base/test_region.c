/* Tests of regions: read through their key alone, and nothing else is. */
#include "common/base/region.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define REGION_BYTES 300000

static void a_region_is_seen_through_its_key_while_it_changes(void **state)
{
    (void)state;
    struct region region;
    struct region_view view;
    assert_int_equal(region_create(REGION_BYTES, &region), STATUS_OK);
    assert_int_equal((uintptr_t)region.bytes % 64, 0);
    unsigned char *bytes = region.bytes;
    assert_int_equal(bytes[0], 0);
    assert_int_equal(bytes[REGION_BYTES - 1], 0);
    memset(bytes, 3, REGION_BYTES);
    assert_int_equal(region_open(&region.key, REGION_READ, &view), STATUS_OK);
    assert_int_equal(view.size, REGION_BYTES);
    assert_ptr_not_equal(view.bytes, region.bytes);
    assert_memory_equal(view.bytes, bytes, REGION_BYTES);
    bytes[7] = 9;
    assert_int_equal(view.bytes[7], 9);
    region_close(&view);
    region_destroy(&region);
}

static void a_child_process_reads_the_region_of_its_parent(void **state)
{
    (void)state;
    struct region region;
    assert_int_equal(region_create(REGION_BYTES, &region), STATUS_OK);
    ((unsigned char *)region.bytes)[100] = 42;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        struct region_view view;
        bool is_seen =
            region_open(&region.key, REGION_READ, &view) == STATUS_OK && view.bytes[100] == 42;
        _exit(is_seen ? 0 : 1);
    }
    int result;
    assert_int_equal(waitpid(child, &result, 0), child);
    assert_int_equal(result, 0);
    region_destroy(&region);
}

static void a_view_outlives_its_region(void **state)
{
    (void)state;
    struct region region;
    struct region_view view;
    assert_int_equal(region_create(REGION_BYTES, &region), STATUS_OK);
    memset(region.bytes, 5, REGION_BYTES);
    assert_int_equal(region_open(&region.key, REGION_READ, &view), STATUS_OK);
    struct region_key key = region.key;
    region_destroy(&region);
    assert_int_equal(view.bytes[REGION_BYTES - 1], 5);
    struct region_view second;
    assert_int_equal(region_open(&key, REGION_READ, &second), STATUS_UNREACHABLE);
    region_close(&view);
}

static void who_opens_it_for_writing_writes_what_the_owner_reads(void **state)
{
    (void)state;
    struct region region;
    struct region_view view;
    assert_int_equal(region_create(REGION_BYTES, &region), STATUS_OK);
    assert_int_equal(region_open(&region.key, REGION_WRITE, &view), STATUS_OK);
    view.bytes[REGION_BYTES - 1] = 9;
    assert_int_equal(((unsigned char *)region.bytes)[REGION_BYTES - 1], 9);
    region_close(&view);
    region_destroy(&region);
}

static void a_key_that_differs_in_anything_opens_nothing(void **state)
{
    (void)state;
    struct region region;
    struct region_view view;
    assert_int_equal(region_create(REGION_BYTES, &region), STATUS_OK);
    for (int i = 0; i < 7; i++) {
        struct region_key key = region.key;
        key.process_id = i == 0 ? UINT64_MAX : i == 1 ? 1 : key.process_id;
        key.descriptor = i == 2 ? 1 : i == 3 ? UINT32_MAX : key.descriptor;
        key.size = i == 4 ? REGION_BYTES + (1 << 20) : i == 5 ? UINT64_MAX : key.size;
        key.nonce += i == 6;
        assert_int_equal(region_open(&key, REGION_READ, &view), STATUS_UNREACHABLE);
    }
    region_destroy(&region);
}

/* Such a file could be made shorter while it is read: that would be a SIGBUS. */
static void a_file_that_is_not_sealed_or_no_region_opens_nothing(void **state)
{
    (void)state;
    struct region_key key = {.process_id = (uint64_t)getpid(), .size = 4096};
    struct region_view view;
    int loose = memfd_create("ringside", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    assert_true(loose >= 0);
    assert_int_equal(ftruncate(loose, 1 << 20), 0);
    key.descriptor = (uint32_t)loose;
    assert_int_equal(region_open(&key, REGION_READ, &view), STATUS_UNREACHABLE);
    close(loose);
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    key.descriptor = (uint32_t)ends[0];
    assert_int_equal(region_open(&key, REGION_READ, &view), STATUS_UNREACHABLE);
    close(ends[0]);
    close(ends[1]);
}

static void more_memory_than_there_is_is_refused(void **state)
{
    (void)state;
    struct region region;
    assert_int_equal(region_create(SIZE_MAX, &region), STATUS_NO_MEMORY);
    assert_int_equal(region_create((size_t)1 << 60, &region), STATUS_NO_MEMORY);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_region_is_seen_through_its_key_while_it_changes),
        cmocka_unit_test(a_child_process_reads_the_region_of_its_parent),
        cmocka_unit_test(a_view_outlives_its_region),
        cmocka_unit_test(who_opens_it_for_writing_writes_what_the_owner_reads),
        cmocka_unit_test(a_key_that_differs_in_anything_opens_nothing),
        cmocka_unit_test(a_file_that_is_not_sealed_or_no_region_opens_nothing),
        cmocka_unit_test(more_memory_than_there_is_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
