/* Tests of means and deviations of bytes: known figures, many threads, nothing to divide by. */
#include "tests/support/common/captured_log.h"
#include "worker/data/byte_images.h"
#include "worker/data/statistics.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h> // needs the four above
// clang-format on
#include <string.h>

#define ROWS    3
#define COLUMNS 100
#define PLANE   ((size_t)ROWS * COLUMNS)
#define SAMPLES 1000

static const struct dataset_ops byte_ops = {
    .read = byte_images_read,
    .describe = byte_images_describe,
    .read_bytes = byte_images_read_bytes,
    .convert = byte_images_convert,
    .close = byte_images_close,
};

/* Bytes that are all alike in channel 0, either 0 or 255 in turn in channel 1, anything in 2. */
static uint8_t byte_of(uint64_t sample, uint32_t c, uint32_t i)
{
    uint8_t some = (uint8_t)(sample * 31 + (uint64_t)i * 7 + i / 9);
    return c == 0 ? 51 : c == 1 ? (uint8_t)(255 * ((sample + i) % 2)) : some;
}

static struct dataset *open_records(uint32_t first_channel)
{
    static uint8_t bytes[PLANE * 2 * SAMPLES], labels[SAMPLES];
    const struct byte_format format = {
        .ops = &byte_ops,
        .sample = {.channels = 2, .rows = ROWS, .columns = COLUMNS},
        .class_count = 1,
        .deviation = {1, 1},
    };
    for (uint64_t s = 0; s < SAMPLES; s++) {
        for (size_t k = 0; k < 2 * PLANE; k++) {
            bytes[s * 2 * PLANE + k] =
                byte_of(s, first_channel + (uint32_t)(k / PLANE), (uint32_t)(k % PLANE));
        }
    }
    const struct byte_records all = {labels, bytes, 1, 2 * PLANE, SAMPLES};
    struct byte_images *images;
    char why[DATA_FILE_WHY_BYTES];
    assert_int_equal(byte_images_create(&format, &images), STATUS_OK);
    assert_int_equal(byte_images_add(images, &all, NULL, why, sizeof(why)), STATUS_OK);
    return byte_images_dataset(images);
}

static void sums_are_those_of_a_plain_loop(void **state)
{
    (void)state;
    struct dataset *dataset = open_records(1);
    const uint64_t counts[] = {1, 63, 64, 65, SAMPLES};
    for (size_t n = 0; n < sizeof(counts) / sizeof(counts[0]); n++) {
        struct statistics found, expected = {.pixels = counts[n] * PLANE};
        for (uint64_t s = 0; s < counts[n]; s++) {
            for (size_t k = 0; k < 2 * PLANE; k++) {
                uint64_t byte = byte_of(s, 1 + (uint32_t)(k / PLANE), (uint32_t)(k % PLANE));
                expected.sums[k / PLANE] += byte;
                expected.squares[k / PLANE] += byte * byte;
            }
        }
        assert_int_equal(statistics_count(dataset, counts[n], false, &found), STATUS_OK);
        assert_memory_equal(&found, &expected, sizeof(found));
    }
    dataset_close(dataset);
}

static void half_black_and_half_white_is_one_half(void **state)
{
    (void)state;
    struct dataset *dataset = open_records(1);
    struct statistics statistics;
    struct normalization figures;
    assert_int_equal(statistics_count(dataset, SAMPLES, false, &statistics), STATUS_OK);
    assert_int_equal(statistics_figures(&statistics, 2, &figures), STATUS_OK);
    assert_int_equal(figures.kind, NORMALIZATION_GIVEN);
    assert_int_equal(figures.channels, 2);
    assert_true(figures.mean[0] == 0.5F && figures.deviation[0] == 0.5F);
    dataset_close(dataset);
}

static void a_channel_that_never_changes_is_refused(void **state)
{
    (void)state;
    struct dataset *dataset = open_records(0);
    struct statistics statistics;
    struct normalization figures;
    assert_int_equal(statistics_count(dataset, SAMPLES, false, &statistics), STATUS_OK);
    captured_log_begin();
    assert_int_equal(statistics_figures(&statistics, 2, &figures), STATUS_INVALID);
    assert_non_null(strstr(captured_log_end(), "channel 0 has the same value in all images"));
    dataset_close(dataset);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_are_those_of_a_plain_loop),
        cmocka_unit_test(half_black_and_half_white_is_one_half),
        cmocka_unit_test(a_channel_that_never_changes_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
