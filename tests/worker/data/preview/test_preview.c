/* Tests of previews: the file has the images that workers train on, read back by our own decoder.
 */
#include "common/vector/layout.h"
#include "tests/support/common/captured_log.h"
#include "tests/support/common/file_limit.h"
#include "tests/support/common/temp_folder.h"
#include "worker/data/batches/batcher.h"
#include "worker/data/byte_images.h"
#include "worker/data/images/decoder.h"
#include "worker/data/preview/preview.h"
#include "worker/data/resized.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SAMPLES      150 // two sheets, and a part of one
#define SIDE         8
#define IMAGE_BYTES  ((size_t)3 * SIDE * SIDE)
#define RECORD_BYTES (1 + IMAGE_BYTES)
#define WORKERS      3
#define SHARE        2 // images of a worker in each step
#define SEED         11
#define SHEET_WIDTH  (SHEET_GAP + SHEET_ACROSS * (SIDE + SHEET_GAP))
#define SHEET_PLANE  ((size_t)SHEET_WIDTH * SHEET_WIDTH)
#define FILE_BYTES   (1 << 20)

static const struct dataset_ops ops = {
    .read = byte_images_read,
    .describe = byte_images_describe,
    .read_bytes = byte_images_read_bytes,
    .convert = byte_images_convert,
    .close = byte_images_close,
};

static const struct augmentation changes = {
    {[AUGMENT_FLIP] = 1, [AUGMENT_CROP] = 2, [AUGMENT_COLOUR] = 0.5, [AUGMENT_CUTOUT] = 3}};

struct preview_test {
    char *folder;
    char path[512], part[520];
    struct dataset *dataset;
    uint8_t records[SAMPLES * RECORD_BYTES];
    uint8_t planes[3 * SHEET_PLANE]; // of the file
    atomic_int is_ended;
};

/* Images of one channel or three, whose labels are their numbers. */
static struct dataset *open_images(struct preview_test *test, uint32_t channels)
{
    const struct byte_format format = {
        .ops = &ops,
        .sample = {.channels = channels, .rows = SIDE, .columns = SIDE},
        .class_count = SAMPLES,
        .mean = {0.5f, 0.4f, 0.3f},
        .deviation = {0.2f, 0.3f, 0.4f},
    };
    struct byte_images *images;
    char why[DATA_FILE_WHY_BYTES];
    const struct byte_records all = {test->records, test->records + 1, RECORD_BYTES, RECORD_BYTES,
                                     SAMPLES};
    for (uint32_t i = 0; i < SAMPLES; i++) {
        test->records[i * RECORD_BYTES] = (uint8_t)i;
        for (uint32_t k = 0; k < IMAGE_BYTES; k++) {
            test->records[i * RECORD_BYTES + 1 + k] = (uint8_t)(i * 91 + k * k * 53 + k / 8);
        }
    }
    assert_int_equal(byte_images_create(&format, &images), STATUS_OK);
    assert_int_equal(byte_images_add(images, &all, NULL, why, sizeof(why)), STATUS_OK);
    return byte_images_dataset(images);
}

static int set_up(void **state)
{
    struct preview_test *test = calloc(1, sizeof(*test));
    assert_non_null(test);
    test->folder = temp_folder_create();
    snprintf(test->path, sizeof(test->path), "%s/a.png", test->folder);
    snprintf(test->part, sizeof(test->part), "%s.part", test->path);
    test->dataset = open_images(test, 3);
    *state = test;
    return 0;
}

static int tear_down(void **state)
{
    struct preview_test *test = *state;
    dataset_close(test->dataset);
    temp_folder_destroy(test->folder);
    free(test);
    return 0;
}

static struct preview_order order_of(const struct preview_test *test, uint64_t epoch,
                                     uint64_t sheet)
{
    return (struct preview_order){.seed = SEED,
                                  .augmentation = changes,
                                  .epoch = epoch,
                                  .sheet = sheet,
                                  .zoom = 1,
                                  .is_ended = &test->is_ended};
}

static enum status draw(const struct preview_test *test, const struct preview_order *order,
                        const struct dataset *dataset, struct preview_account *ret_account)
{
    struct draft draft;
    enum status status = preview_open(&draft, test->path);
    if (status == STATUS_OK) {
        status = preview_write(order, dataset, &draft, ret_account);
    }
    return draft_finish(&draft, status);
}

/* The file's pixels, in planes. */
static void read_sheet(struct preview_test *test)
{
    static uint8_t bytes[FILE_BYTES];
    char why[DECODER_WHY_BYTES];
    struct decoder *decoder;
    FILE *file = fopen(test->path, "rb");
    assert_non_null(file);
    size_t size = fread(bytes, 1, sizeof(bytes), file);
    fclose(file);
    assert_int_equal(decoder_create(SHEET_WIDTH, &decoder), STATUS_OK);
    assert_int_equal(decoder_run(decoder, bytes, size, test->planes, why, sizeof(why)), STATUS_OK);
    decoder_destroy(decoder);
}

/* A row of a tile, in a plane of the file. */
static const uint8_t *tile_row(const struct preview_test *test, uint32_t tile, uint32_t channel,
                               uint32_t row)
{
    size_t x = SHEET_GAP + (size_t)(tile % SHEET_ACROSS) * (SIDE + SHEET_GAP);
    size_t y = SHEET_GAP + (size_t)(tile / SHEET_ACROSS) * (SIDE + SHEET_GAP) + row;
    return test->planes + channel * SHEET_PLANE + y * SHEET_WIDTH + x;
}

static void check_tile(const struct preview_test *test, uint32_t tile, const uint8_t *bytes)
{
    for (uint32_t c = 0; c < 3; c++) {
        for (uint32_t row = 0; row < SIDE; row++) {
            assert_memory_equal(tile_row(test, tile, c, row),
                                bytes + ((size_t)c * SIDE + row) * SIDE, SIDE);
        }
    }
}

/* The batches of a worker of a job, as bytes, read ahead. */
static struct batcher *open_worker(const struct preview_test *test, uint32_t rank, uint64_t epoch)
{
    const struct batcher_options options = {
        .batch_size = SHARE,
        .global_batch = WORKERS * SHARE,
        .rank = rank,
        .world = WORKERS,
        .seed = SEED,
        .is_training = true,
        .reads_bytes = true,
        .augmentation = changes,
        .depth = 2,
    };
    struct batcher *batcher;
    assert_int_equal(batcher_create(&options, test->dataset, &batcher), STATUS_OK);
    assert_int_equal(batcher_seek(batcher, epoch, 0), STATUS_OK);
    return batcher;
}

/* Checks the tiles of a sheet that a worker trains on, by what it has in its batches. */
static void check_worker(const struct preview_test *test, const struct preview_account *account,
                         uint32_t rank, uint64_t epoch)
{
    struct batcher *batcher = open_worker(test, rank, epoch);
    for (uint64_t step = 0; step < SAMPLES / (WORKERS * SHARE); step++) {
        struct batch batch = {0};
        assert_int_equal(batcher_next(batcher, &batch), STATUS_OK);
        for (uint32_t i = 0; i < SHARE; i++) {
            uint64_t image = (step * WORKERS + rank) * SHARE + i;
            if (image < account->first || image - account->first >= account->count) {
                continue;
            }
            uint32_t tile = (uint32_t)(image - account->first);
            assert_int_equal(account->labels[tile], batch.labels[i]);
            check_tile(test, tile, batch.bytes + i * IMAGE_BYTES);
        }
    }
    batcher_destroy(batcher);
}

static void tiles_are_the_images_that_workers_train_on(void **state)
{
    struct preview_test *test = *state;
    for (uint64_t epoch = 0; epoch < 2; epoch++) {
        for (uint64_t sheet = 0; sheet < 3; sheet++) {
            struct preview_order order = order_of(test, epoch, sheet);
            struct preview_account account = {0};
            assert_int_equal(draw(test, &order, test->dataset, &account), STATUS_OK);
            assert_int_equal(account.first, sheet * SHEET_TILES);
            assert_int_equal(account.count, sheet < 2 ? SHEET_TILES : SAMPLES % SHEET_TILES);
            read_sheet(test);
            for (uint32_t rank = 0; rank < WORKERS; rank++) {
                check_worker(test, &account, rank, epoch);
            }
        }
    }
}

static void the_account_has_the_figures_of_the_pixels(void **state)
{
    struct preview_test *test = *state;
    struct preview_order order = order_of(test, 0, 2);
    struct preview_account account = {0};
    double sum = 0, squares = 0, lowest = (double)INFINITY, highest = -(double)INFINITY;
    order.augmentation = (struct augmentation){{0}};
    assert_int_equal(draw(test, &order, test->dataset, &account), STATUS_OK);
    for (uint32_t i = 0; i < account.count; i++) {
        float pixels[IMAGE_BYTES];
        uint32_t label;
        assert_int_equal(dataset_read(test->dataset, account.labels[i], pixels, &label), STATUS_OK);
        for (size_t k = 0; k < IMAGE_BYTES; k++) {
            sum += (double)pixels[k];
            squares += (double)pixels[k] * (double)pixels[k];
            lowest = fmin(lowest, (double)pixels[k]);
            highest = fmax(highest, (double)pixels[k]);
        }
    }
    double count = (double)(account.count * IMAGE_BYTES), mean = sum / count;
    assert_true(account.lowest == lowest && account.highest == highest);
    assert_true(fabs(account.mean - mean) < 1e-9);
    assert_true(fabs(account.deviation - sqrt(squares / count - mean * mean)) < 1e-9);
}

/* Decoding makes three equal channels of it. */
static void grey_images_make_a_grey_sheet(void **state)
{
    struct preview_test *test = *state;
    struct dataset *grey = open_images(test, 1);
    struct preview_order order = order_of(test, 0, 0);
    struct preview_account account = {0};
    order.augmentation = (struct augmentation){{0}};
    assert_int_equal(draw(test, &order, grey, &account), STATUS_OK);
    read_sheet(test);
    for (uint32_t tile = 0; tile < account.count; tile++) {
        const uint8_t *bytes = test->records + account.labels[tile] * RECORD_BYTES + 1;
        for (uint32_t row = 0; row < SIDE; row++) {
            assert_memory_equal(tile_row(test, tile, 0, row), bytes + (size_t)row * SIDE, SIDE);
            assert_memory_equal(tile_row(test, tile, 2, row), bytes + (size_t)row * SIDE, SIDE);
        }
    }
    dataset_close(grey);
}

/* A pixel of an image of half the size is the mean of four. */
static void scaled_images_are_as_large_as_the_model_sees_them(void **state)
{
    struct preview_test *test = *state;
    struct dataset *small;
    struct preview_order order = order_of(test, 0, 0);
    struct preview_account account = {0};
    order.augmentation = (struct augmentation){{0}};
    struct dataset *images = open_images(test, 3);
    assert_int_equal(dataset_resize(images, SIDE / 2, &small), STATUS_OK);
    order.zoom = 2; // so that the sheet has its usual size
    assert_int_equal(draw(test, &order, small, &account), STATUS_OK);
    read_sheet(test);
    for (uint32_t tile = 0; tile < account.count; tile++) {
        const uint8_t *bytes = test->records + account.labels[tile] * RECORD_BYTES + 1;
        for (uint32_t row = 0; row < SIDE; row++) {
            for (uint32_t column = 0; column < SIDE; column++) {
                const uint8_t *at = bytes + (size_t)(row - row % 2) * SIDE + (column - column % 2);
                double mean = (at[0] + at[1] + at[SIDE] + at[SIDE + 1]) / 4.0;
                assert_true(fabs(tile_row(test, tile, 0, row)[column] - mean) <= 0.51);
            }
        }
    }
    dataset_close(small);
}

/* Drawing fails with the status and the text, and leaves nothing. */
static void refuse(const struct preview_test *test, const struct preview_order *order,
                   enum status expected, const char *text)
{
    struct preview_account account = {0};
    captured_log_begin();
    enum status status = draw(test, order, test->dataset, &account);
    const char *log = captured_log_end();
    assert_int_equal(status, expected);
    if (strstr(log, text) == NULL) {
        fail_msg("\"%s\" is not in: %s", text, log);
    }
    assert_int_not_equal(access(test->path, F_OK), 0);
    assert_int_not_equal(access(test->part, F_OK), 0);
}

static void what_cannot_be_drawn_is_said_and_leaves_nothing(void **state)
{
    struct preview_test *test = *state;
    struct preview_order order = order_of(test, 0, 3);
    refuse(test, &order, STATUS_INVALID, "there is no sheet 4: an epoch of 150 images has 3");
    order = order_of(test, 0, 1);
    order.sample_count = SHEET_TILES;
    refuse(test, &order, STATUS_INVALID, "there is no sheet 2: an epoch of 64 images has 1");
    order = order_of(test, 0, 0);
    order.augmentation.amounts[AUGMENT_CROP] = SIDE;
    refuse(test, &order, STATUS_INVALID, "--augment: crop:8 does not fit images of 8x8");
    order = order_of(test, 0, 0);
    atomic_store(&test->is_ended, 1);
    refuse(test, &order, STATUS_INTERRUPTED, "");
}

static void a_full_disk_leaves_nothing(void **state)
{
    struct preview_test *test = *state;
    struct preview_order order = order_of(test, 0, 0);
    struct preview_account account = {0};
    captured_log_begin();
    file_limit_begin(1024);
    enum status status = draw(test, &order, test->dataset, &account);
    file_limit_end();
    const char *log = captured_log_end();
    assert_int_equal(status, STATUS_IO);
    assert_non_null(strstr(log, "cannot write "));
    assert_int_not_equal(access(test->path, F_OK), 0);
    assert_int_not_equal(access(test->part, F_OK), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(tiles_are_the_images_that_workers_train_on),
        TEST(the_account_has_the_figures_of_the_pixels),
        TEST(grey_images_make_a_grey_sheet),
        TEST(scaled_images_are_as_large_as_the_model_sees_them),
        TEST(what_cannot_be_drawn_is_said_and_leaves_nothing),
        TEST(a_full_disk_leaves_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
