/* Tests of batches of changed images. */
#include "common/base/random.h"
#include "common/vector/layout.h"
#include "tests/support/common/captured_log.h"
#include "worker/data/augment/augment.h"
#include "worker/data/augment/resized_crop.h"
#include "worker/data/batches/batcher.h"
#include "worker/data/byte_images.h"
#include "worker/data/resized.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <stdlib.h>
#include <string.h>

#define SAMPLES      24
#define SIDE         8
#define IMAGE_BYTES  ((size_t)3 * SIDE * SIDE)
#define LARGE_PIXELS (4 * IMAGE_BYTES) // of twice the size
#define RECORD_BYTES (1 + IMAGE_BYTES)
#define GLOBAL_BATCH 12
#define SEED         11
#define EPOCHS       3

static const struct dataset_ops ops = {
    .read = byte_images_read,
    .describe = byte_images_describe,
    .read_bytes = byte_images_read_bytes,
    .convert = byte_images_convert,
    .close = byte_images_close,
};

static const struct byte_format format = {
    .ops = &ops,
    .sample = {.channels = 3, .rows = SIDE, .columns = SIDE},
    .class_count = SAMPLES,
    .mean = {0.5f, 0.4f, 0.3f},
    .deviation = {0.2f, 0.3f, 0.4f},
};

static const struct augmentation augmentation = {{
    [AUGMENT_FLIP] = 1,
    [AUGMENT_CROP] = 2,
    [AUGMENT_COLOUR] = 0.5,
}};

/* The same, of parts of images, each mixed with another. */
static const struct augmentation mixed_augmentation = {{
    [AUGMENT_FLIP] = 1,
    [AUGMENT_CROP] = 2,
    [AUGMENT_COLOUR] = 0.5,
    [AUGMENT_RESIZED_CROP] = 0.2,
    [AUGMENT_CROP_MOST] = 0.9,
    [AUGMENT_MIXUP] = 0.4,
}};

static uint8_t records[SAMPLES * RECORD_BYTES];

static struct dataset *open_images(void)
{
    for (uint32_t i = 0; i < SAMPLES; i++) {
        records[i * RECORD_BYTES] = (uint8_t)i;
        for (uint32_t k = 0; k < IMAGE_BYTES; k++) {
            records[i * RECORD_BYTES + 1 + k] = (uint8_t)(i * 91 + k * 53);
        }
    }
    struct byte_images *images;
    char why[DATA_FILE_WHY_BYTES];
    const struct byte_records all = {records, records + 1, RECORD_BYTES, RECORD_BYTES, SAMPLES};
    assert_int_equal(byte_images_create(&format, &images), STATUS_OK);
    assert_int_equal(byte_images_add(images, &all, NULL, why, sizeof(why)), STATUS_OK);
    return byte_images_dataset(images);
}

static struct batcher *create_with(const struct augmentation *changes,
                                   const struct dataset *dataset, uint32_t world, uint32_t rank,
                                   uint32_t depth, bool reads_bytes)
{
    const struct batcher_options options = {
        .batch_size = (uint32_t)span_part((struct span){0, GLOBAL_BATCH}, world, rank).count,
        .global_batch = GLOBAL_BATCH,
        .rank = rank,
        .world = world,
        .seed = SEED,
        .is_training = true,
        .reads_bytes = reads_bytes,
        .augmentation = *changes,
        .depth = depth,
    };
    struct batcher *batcher;
    assert_int_equal(batcher_create(&options, dataset, &batcher), STATUS_OK);
    return batcher;
}

static struct batcher *create(const struct dataset *dataset, uint32_t world, uint32_t rank,
                              uint32_t depth, bool reads_bytes)
{
    return create_with(&augmentation, dataset, world, rank, depth, reads_bytes);
}

/* What a sample of an epoch has to be, from the definition. The label says which sample it is. */
static void expect(const struct dataset *dataset, uint64_t epoch, uint32_t sample,
                   uint8_t *ret_bytes)
{
    struct pixels_source source;
    uint8_t spare[IMAGE_BYTES];
    assert_true(dataset_describe(dataset, &source));
    struct augment_image image = augment_image_of(&source);
    memcpy(ret_bytes, records + sample * RECORD_BYTES + 1, IMAGE_BYTES);
    augment_apply(&augmentation, &image, random_key(SEED, RANDOM_AUGMENT, epoch, sample), ret_bytes,
                  spare);
}

static void check_batch(const struct dataset *dataset, const struct batch *batch)
{
    for (uint32_t i = 0; i < batch->count; i++) {
        uint8_t expected[IMAGE_BYTES];
        float pixels[IMAGE_BYTES];
        expect(dataset, batch->epoch, batch->labels[i], expected);
        dataset_convert(dataset, expected, pixels);
        if (batch->bytes != NULL) {
            assert_memory_equal(batch->bytes + (size_t)i * IMAGE_BYTES, expected, IMAGE_BYTES);
        } else {
            assert_memory_equal(batch->pixels + (size_t)i * IMAGE_BYTES, pixels, sizeof(pixels));
        }
    }
}

static void a_sample_is_the_same_whoever_reads_it_and_however(void **state)
{
    (void)state;
    struct dataset *dataset = open_images();
    for (uint32_t world = 1; world <= 3; world++) {
        for (uint32_t variant = 0; variant < 4; variant++) {
            for (uint32_t rank = 0; rank < world; rank++) {
                struct batcher *batcher =
                    create(dataset, world, rank, variant / 2 * 3, variant % 2 == 1);
                for (uint32_t step = 0; step < EPOCHS * SAMPLES / GLOBAL_BATCH; step++) {
                    struct batch batch;
                    assert_int_equal(batcher_next(batcher, &batch), STATUS_OK);
                    check_batch(dataset, &batch);
                }
                batcher_destroy(batcher);
            }
        }
    }
    dataset_close(dataset);
}

/* As expect, before it is mixed. */
static void expect_part(const struct dataset *dataset, uint64_t epoch, uint64_t sample,
                        uint8_t *ret_bytes)
{
    struct pixels_source source;
    uint8_t spare[IMAGE_BYTES];
    assert_true(dataset_describe(dataset, &source));
    struct augment_image image = augment_image_of(&source);
    void *scratch = malloc(resized_crop_scratch(&image));
    assert_non_null(scratch);
    uint64_t key = random_key(SEED, RANDOM_AUGMENT, epoch, sample);
    const struct crop_draw part = augment_part(&mixed_augmentation, key);
    memcpy(ret_bytes, records + sample * RECORD_BYTES + 1, IMAGE_BYTES);
    resized_crop(&image, &part, scratch, ret_bytes);
    augment_apply(&mixed_augmentation, &image, key, ret_bytes, spare);
    free(scratch);
}

/* One of the two is the image of the step, and it says which is the other; neither needs to know
 * whose batch this is. */
static bool is_mixed_of(const struct dataset *dataset, const struct batch *batch, uint32_t i,
                        uint32_t sample)
{
    uint8_t bytes[IMAGE_BYTES], other[IMAGE_BYTES];
    uint64_t key = random_key(SEED, RANDOM_AUGMENT, batch->epoch, sample);
    const struct mixup mixup = augment_mixup(&mixed_augmentation, key);
    uint64_t partner = mixup_partner(&mixup, SAMPLES);
    expect_part(dataset, batch->epoch, sample, bytes);
    expect_part(dataset, batch->epoch, partner, other);
    mixup_blend(&mixup, other, IMAGE_BYTES, bytes);
    bool is_first = batch->labels[i] == sample && batch->mixed[i].other == partner;
    bool is_second = batch->labels[i] == partner && batch->mixed[i].other == sample;
    double share = (double)mixup.share / MIXUP_ONE;
    double wanted = share < 0.5 ? 1 - share : share;
    return (is_first || is_second) && (double)batch->mixed[i].share == wanted &&
           memcmp(bytes, batch->bytes + i * IMAGE_BYTES, IMAGE_BYTES) == 0;
}

static void a_mixed_sample_is_the_same_whoever_reads_it(void **state)
{
    (void)state;
    struct dataset *dataset = open_images();
    for (uint32_t world = 1; world <= 3; world++) {
        for (uint32_t rank = 0; rank < world; rank++) {
            struct batcher *batcher =
                create_with(&mixed_augmentation, dataset, world, rank, rank, true);
            for (uint32_t step = 0; step < EPOCHS * SAMPLES / GLOBAL_BATCH; step++) {
                struct batch batch;
                assert_int_equal(batcher_next(batcher, &batch), STATUS_OK);
                assert_non_null(batch.mixed);
                for (uint32_t i = 0; i < batch.count; i++) {
                    assert_true(batch.mixed[i].share >= 0.5f && batch.mixed[i].share <= 1);
                    assert_true(is_mixed_of(dataset, &batch, i, batch.labels[i]) ||
                                is_mixed_of(dataset, &batch, i, batch.mixed[i].other));
                }
            }
            batcher_destroy(batcher);
        }
    }
    dataset_close(dataset);
}

static void epochs_differ_and_a_seek_repeats_them(void **state)
{
    (void)state;
    struct dataset *dataset = open_images();
    uint8_t first[IMAGE_BYTES], second[IMAGE_BYTES];
    uint32_t different = 0;
    for (uint32_t sample = 0; sample < SAMPLES; sample++) {
        expect(dataset, 0, sample, first);
        expect(dataset, 1, sample, second);
        different += memcmp(first, second, IMAGE_BYTES) != 0;
    }
    assert_true(different > SAMPLES * 3 / 4);
    struct batcher *batcher = create(dataset, 1, 0, 2, false);
    struct batch batch;
    for (uint32_t turn = 0; turn < 2; turn++) {
        assert_int_equal(batcher_seek(batcher, 1, 1), STATUS_OK);
        assert_int_equal(batcher_next(batcher, &batch), STATUS_OK);
        assert_int_equal(batch.epoch, 1);
        check_batch(dataset, &batch);
    }
    batcher_destroy(batcher);
    dataset_close(dataset);
}

static void images_of_an_evaluation_stay_as_they_are(void **state)
{
    (void)state;
    struct dataset *dataset = open_images();
    const struct batcher_options options = {
        .batch_size = SAMPLES, .world = 1, .augmentation = augmentation, .reads_bytes = true};
    struct batcher *batcher;
    struct batch batch;
    assert_int_equal(batcher_create(&options, dataset, &batcher), STATUS_OK);
    assert_int_equal(batcher_next(batcher, &batch), STATUS_OK);
    for (uint32_t i = 0; i < SAMPLES; i++) {
        assert_memory_equal(batch.bytes + (size_t)i * IMAGE_BYTES, records + i * RECORD_BYTES + 1,
                            IMAGE_BYTES);
    }
    batcher_destroy(batcher);
    dataset_close(dataset);
}

/* The change comes first, as on a GPU, which gets the stored bytes. */
static void scaled_images_are_changed_before_they_are_scaled(void **state)
{
    (void)state;
    struct dataset *stored = open_images(), *scaled;
    assert_int_equal(dataset_resize(open_images(), 2 * SIDE, &scaled), STATUS_OK);
    struct batcher *batcher = create(scaled, 1, 0, 0, false);
    struct batch batch;
    assert_int_equal(batcher_next(batcher, &batch), STATUS_OK);
    for (uint32_t i = 0; i < batch.count; i++) {
        uint8_t bytes[IMAGE_BYTES];
        float expected[LARGE_PIXELS];
        expect(stored, 0, batch.labels[i], bytes);
        dataset_convert(scaled, bytes, expected);
        assert_memory_equal(batch.pixels + (size_t)i * LARGE_PIXELS, expected, sizeof(expected));
    }
    batcher_destroy(batcher);
    dataset_close(scaled);
    dataset_close(stored);
}

static void check_refused(const struct dataset *dataset, struct augmentation wanted,
                          const char *reason)
{
    const struct batcher_options options = {.batch_size = GLOBAL_BATCH,
                                            .global_batch = GLOBAL_BATCH,
                                            .world = 1,
                                            .is_training = true,
                                            .augmentation = wanted};
    struct batcher *batcher;
    captured_log_begin();
    enum status status = batcher_create(&options, dataset, &batcher);
    const char *log = captured_log_end();
    assert_int_equal(status, STATUS_INVALID);
    assert_non_null(strstr(log, reason));
}

static void what_cannot_be_changed_is_refused(void **state)
{
    (void)state;
    struct dataset *stored = open_images(), *drawn;
    check_refused(stored, (struct augmentation){{[AUGMENT_CUTOUT] = SIDE}},
                  "--augment: cutout:8 does not fit images of 8x8");
    assert_int_equal(dataset_open("shapes",
                                  &(struct dataset_options){.seed = SEED, .split = DATASET_TRAIN},
                                  &drawn),
                     STATUS_OK);
    check_refused(drawn, augmentation, "--augment needs images that are stored");
    dataset_close(drawn);
    dataset_close(stored);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_sample_is_the_same_whoever_reads_it_and_however),
        cmocka_unit_test(a_mixed_sample_is_the_same_whoever_reads_it),
        cmocka_unit_test(epochs_differ_and_a_seek_repeats_them),
        cmocka_unit_test(images_of_an_evaluation_stay_as_they_are),
        cmocka_unit_test(scaled_images_are_changed_before_they_are_scaled),
        cmocka_unit_test(what_cannot_be_changed_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
