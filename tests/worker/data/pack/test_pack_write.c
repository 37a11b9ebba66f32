/* Tests of what writes packs: the images of a folder are in it, and a failure leaves nothing. */
#include "tests/support/common/captured_log.h"
#include "tests/support/common/temp_folder.h"
#include "tests/support/data/image_folder.h"
#include "tests/support/data/jpeg_maker.h"
#include "worker/data/dataset.h"
#include "worker/data/pack/pack_write.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SIZE  16
#define IMAGE ((size_t)3 * SIZE * SIZE)
#define MANY  150 // images: more than are decoded at once

struct write_test {
    char *folder;
    char data[512], path[512], packed[520];
    atomic_int is_ended;
};

static int set_up(void **state)
{
    struct write_test *test = calloc(1, sizeof(*test));
    assert_non_null(test);
    test->folder = temp_folder_create();
    snprintf(test->data, sizeof(test->data), "images:%s/in", test->folder);
    snprintf(test->path, sizeof(test->path), "%s/a.rpk", test->folder);
    snprintf(test->packed, sizeof(test->packed), "pack:%s", test->path);
    for (int i = 0; i < MANY; i++) {
        char name[64];
        snprintf(name, sizeof(name), "in/train/%s/%03d.jpg", i % 3 == 0 ? "cat" : "dog", i);
        image_folder_put_grey(test->folder, name, (uint8_t)i);
    }
    image_folder_put_grey(test->folder, "in/val/dog/1.jpg", 200);
    *state = test;
    return 0;
}

static int tear_down(void **state)
{
    struct write_test *test = *state;
    temp_folder_destroy(test->folder);
    free(test);
    return 0;
}

static struct pack_order order_of(const struct write_test *test, uint32_t quality)
{
    return (struct pack_order){.data = test->data,
                               .path = test->path,
                               .size = SIZE,
                               .quality = quality,
                               .seed = 1,
                               .is_ended = &test->is_ended};
}

static struct dataset *open_split(const char *data, enum dataset_split split)
{
    struct dataset *dataset = NULL;
    const struct dataset_options options = {
        .seed = 1, .split = split, .image_size = SIZE, .skips_bad = true};
    assert_int_equal(dataset_open(data, &options, &dataset), STATUS_OK);
    return dataset;
}

/* Whether both have the same images in the same order, each byte to `tolerance`. */
static void compare(const struct write_test *test, int tolerance)
{
    for (int split = 0; split < 2; split++) {
        struct dataset *first = open_split(test->data, (enum dataset_split)split);
        struct dataset *second = open_split(test->packed, (enum dataset_split)split);
        assert_int_equal(first->sample_count, second->sample_count);
        assert_string_equal(first->class_text, second->class_text);
        for (uint64_t i = 0; i < first->sample_count; i++) {
            uint8_t bytes[2][IMAGE];
            uint32_t labels[2];
            assert_int_equal(dataset_read_bytes(first, i, bytes[0], &labels[0]), STATUS_OK);
            assert_int_equal(dataset_read_bytes(second, i, bytes[1], &labels[1]), STATUS_OK);
            assert_int_equal(labels[0], labels[1]);
            for (size_t k = 0; k < IMAGE; k++) {
                assert_true(abs(bytes[0][k] - bytes[1][k]) <= tolerance);
            }
        }
        dataset_close(second);
        dataset_close(first);
    }
}

static void raw_images_are_those_of_the_folder(void **state)
{
    const struct write_test *test = *state;
    struct pack_order order = order_of(test, 0);
    struct pack_account account;
    struct stat facts;
    assert_int_equal(pack_write(&order, &account), STATUS_OK);
    assert_int_equal(account.train_count, MANY);
    assert_int_equal(account.val_count, 1);
    assert_int_equal(account.class_count, 2);
    assert_int_equal(account.copied, 0);
    assert_int_equal(stat(test->path, &facts), 0);
    assert_int_equal(facts.st_size, account.bytes);
    compare(test, 0);
}

/* Whether these bytes are somewhere in the pack. */
static void check_has(const struct write_test *test, const uint8_t *bytes, size_t size)
{
    static uint8_t content[1 << 20];
    FILE *file = fopen(test->path, "rb");
    assert_non_null(file);
    size_t used = fread(content, 1, sizeof(content), file);
    fclose(file);
    assert_non_null(memmem(content, used, bytes, size));
}

static void jpeg_images_are_nearly_those_and_files_that_fit_are_copied(void **state)
{
    const struct write_test *test = *state;
    struct pack_order order = order_of(test, 95);
    struct pack_account account;
    size_t size;
    uint8_t *jpeg = jpeg_maker_flat((const uint8_t[3]){250, 10, 90}, SIZE, SIZE, &size);
    image_folder_put(test->folder, "in/train/cat/fit.jpg", jpeg, size);
    assert_int_equal(pack_write(&order, &account), STATUS_OK);
    assert_int_equal(account.copied, 1);
    compare(test, 3);
    check_has(test, jpeg, size);
    free(jpeg);
}

static bool is_there(const char *path)
{
    return access(path, F_OK) == 0;
}

/* Writing fails with the status and the text, and leaves no draft. */
static void refuse(const struct write_test *test, const struct pack_order *order,
                   enum status status, const char *text)
{
    struct pack_account account;
    char draft[600];
    captured_log_begin();
    enum status found = pack_write(order, &account);
    const char *log = captured_log_end();
    assert_int_equal(found, status);
    if (strstr(log, text) == NULL) {
        fail_msg("\"%s\" is not in: %s", text, log);
    }
    snprintf(draft, sizeof(draft), "%s.part", test->path);
    assert_false(is_there(draft));
}

static void bad_images_end_it_or_are_left_out(void **state)
{
    const struct write_test *test = *state;
    struct pack_order order = order_of(test, 0);
    struct pack_account account;
    image_folder_put(test->folder, "in/train/dog/bad.jpg", "text", 4);
    refuse(test, &order, STATUS_MALFORMED, "train/dog/bad.jpg cannot be used");
    assert_false(is_there(test->path));
    order.skips_bad = true;
    assert_int_equal(pack_write(&order, &account), STATUS_OK);
    assert_int_equal(account.train_count, MANY);
    compare(test, 0);
}

/* One that only shows when it is decoded, after images that could be. */
static void an_image_broken_in_its_middle_leaves_no_file(void **state)
{
    const struct write_test *test = *state;
    struct pack_order order = order_of(test, 0);
    struct pack_account account;
    size_t size;
    uint8_t *jpeg = jpeg_maker_flat((const uint8_t[3]){1, 2, 3}, 64, 64, &size);
    memset(jpeg + size - 12, 0xFF, 8);
    jpeg[size - 6] = 0xC4;
    image_folder_put(test->folder, "in/train/dog/z.jpg", jpeg, size);
    free(jpeg);
    refuse(test, &order, STATUS_MALFORMED, "train/dog/z.jpg cannot be used");
    assert_false(is_there(test->path));
    order.skips_bad = true;
    assert_int_equal(pack_write(&order, &account), STATUS_OK);
    assert_int_equal(account.train_count, MANY + 1); // the next one takes its place
}

static void a_failure_leaves_the_pack_that_was_there(void **state)
{
    struct write_test *test = *state;
    struct pack_order order = order_of(test, 0);
    struct pack_account account;
    assert_int_equal(pack_write(&order, &account), STATUS_OK);
    atomic_store(&test->is_ended, 1);
    refuse(test, &order, STATUS_INTERRUPTED, "");
    compare(test, 0);
    atomic_store(&test->is_ended, 0);
    order.quality = 50;
    assert_int_equal(pack_write(&order, &account), STATUS_OK);
    compare(test, 8);
}

static void what_cannot_be_packed_is_said(void **state)
{
    const struct write_test *test = *state;
    struct pack_order order = order_of(test, 0);
    order.data = "cifar10:/data";
    refuse(test, &order, STATUS_INVALID, "cifar10:/data cannot be packed");
    order = order_of(test, 0);
    order.path = test->folder;
    refuse(test, &order, STATUS_INVALID, "is there, and is no file: choose another name");
    order.path = "/nowhere/a.rpk";
    refuse(test, &order, STATUS_IO, "cannot write /nowhere/a.rpk.part");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(raw_images_are_those_of_the_folder),
        TEST(jpeg_images_are_nearly_those_and_files_that_fit_are_copied),
        TEST(bad_images_end_it_or_are_left_out),
        TEST(an_image_broken_in_its_middle_leaves_no_file),
        TEST(a_failure_leaves_the_pack_that_was_there),
        TEST(what_cannot_be_packed_is_said),
    };
    setenv("RINGSIDE_CACHE", "", 1); // NOLINT(concurrency-mt-unsafe): there is one thread
    return cmocka_run_group_tests(tests, NULL, NULL);
}
