/* Batches of stored bytes, of which the device makes pixels, against the same batches of pixels
 * that the host has made: equal losses and gradients, bit by bit. */
#include "tests/support/model/program_fixture.h"
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

#define BATCH   3
#define SAMPLES 8
#define STEPS   5
#define SIZE    9 // of stored rows and columns
#define BYTES   ((size_t)3 * SIZE * SIZE)

static const struct dataset_ops ops = {
    .read = byte_images_read,
    .describe = byte_images_describe,
    .read_bytes = byte_images_read_bytes,
    .close = byte_images_close,
};

static const struct byte_format format = {
    .ops = &ops,
    .sample = {3, SIZE, SIZE},
    .class_count = 7,
    .mean = {0.49f, 0.48f, 0.45f},
    .deviation = {0.25f, 0.24f, 0.26f},
};

static struct dataset *create_images(uint32_t size)
{
    static uint8_t pixels[SAMPLES * BYTES], labels[SAMPLES];
    char why[DATA_FILE_WHY_BYTES];
    struct byte_images *images;
    struct dataset *dataset;
    for (size_t i = 0; i < sizeof(pixels); i++) {
        pixels[i] = (uint8_t)(i * 31 + i / 7 * 5);
    }
    for (uint32_t i = 0; i < SAMPLES; i++) {
        labels[i] = (uint8_t)(i % 7);
    }
    const struct byte_records records = {labels, pixels, 1, BYTES, SAMPLES};
    assert_int_equal(byte_images_create(&format, &images), STATUS_OK);
    assert_int_equal(byte_images_add(images, &records, NULL, why, sizeof(why)), STATUS_OK);
    assert_int_equal(dataset_resize(byte_images_dataset(images), size, &dataset), STATUS_OK);
    return dataset;
}

/* What some steps, and an evaluation with a batch that is not whole, come to. */
struct outcome {
    struct program_result results[STEPS + SAMPLES / BATCH + 1];
    uint32_t count;
    float grads[4096];
};

static struct program_input input_of(const struct batch *batch, bool is_training)
{
    return (struct program_input){
        .pixels = batch->pixels,
        .bytes = batch->bytes,
        .labels = batch->labels,
        .sample_keys = batch->sample_keys,
        .count = batch->count,
        .gradient_scale = 1.0f / BATCH,
        .is_training = is_training,
    };
}

static void train(struct program *program, struct batcher *batcher, uint32_t last_op,
                  struct outcome *outcome)
{
    for (uint32_t i = 0; i < STEPS; i++) {
        struct batch batch;
        assert_int_equal(batcher_next(batcher, &batch), STATUS_OK);
        assert_int_equal((batch.pixels != NULL) + (batch.bytes != NULL), 1);
        const struct program_input input = input_of(&batch, true);
        assert_int_equal(program_begin_forward(program, &input), STATUS_OK);
        assert_int_equal(program_backward(program, last_op, 0), STATUS_OK);
        assert_int_equal(program_await_result(program, &outcome->results[outcome->count++]),
                         STATUS_OK);
        assert_int_equal(program_await(program, 0), STATUS_OK);
    }
}

static void evaluate(struct program *program, struct batcher *batcher, struct outcome *outcome)
{
    struct batch batch;
    while (batcher_next(batcher, &batch) == STATUS_OK) {
        const struct program_input input = input_of(&batch, false);
        assert_int_equal(program_forward(program, &input, &outcome->results[outcome->count++]),
                         STATUS_OK);
    }
}

static struct batcher *open_batches(const struct dataset *dataset, bool is_training,
                                    bool reads_bytes)
{
    const struct batcher_options options = {
        .batch_size = BATCH,
        .global_batch = BATCH,
        .world = 1,
        .seed = 3,
        .is_training = is_training,
        .reads_bytes = reads_bytes,
        .depth = 2,
    };
    struct batcher *batcher;
    assert_int_equal(batcher_create(&options, dataset, &batcher), STATUS_OK);
    return batcher;
}

static void run(uint32_t size, enum precision precision, bool reads_bytes, struct outcome *outcome)
{
    static const struct layer layers[] = {
        {OP_CONV2D, .channels = 4, .window = 3, .stride = 2},
        {OP_RELU},
        {OP_LINEAR, .channels = 7},
    };
    static struct network_plan plan;
    const struct device_options device_options = {.threads = 1, .replays_launches = true};
    struct dataset *dataset = create_images(size);
    struct program_fixture fixture;
    struct pixels_source source;
    struct device *device;
    struct program *program;
    assert_true(dataset_describe(dataset, &source));
    program_fixture_plan(layers, sizeof(layers) / sizeof(layers[0]), dataset->sample, &plan);
    program_fixture_init(&fixture, &plan, BATCH, 5);
    assert_true(plan.value_count <= sizeof(outcome->grads) / sizeof(float));
    const struct program_options options = {
        .ops = plan.ops,
        .op_count = plan.op_count,
        .batch_size = BATCH,
        .params = fixture.params,
        .grads = fixture.grads,
        .statistics = fixture.statistics,
        .source = reads_bytes ? &source : NULL,
        .precision = precision,
    };
    assert_int_equal(device_open("cuda", &device_options, &device), STATUS_OK);
    assert_true(device->ops->takes_bytes);
    assert_int_equal(device_compile(device, &options, &program), STATUS_OK);
    struct batcher *training = open_batches(dataset, true, reads_bytes);
    struct batcher *evaluation = open_batches(dataset, false, reads_bytes);
    *outcome = (struct outcome){0};
    train(program, training, plan.op_count - 1, outcome);
    memcpy(outcome->grads, fixture.grads, plan.value_count * sizeof(float));
    evaluate(program, evaluation, outcome);
    batcher_destroy(training);
    batcher_destroy(evaluation);
    program_destroy(program);
    device_close(device);
    dataset_close(dataset);
    program_fixture_finish(&fixture);
}

static void a_device_makes_the_pixels_that_the_host_makes(void **state)
{
    (void)state;
    static const uint32_t sizes[] = {0, 5, 9, 20}; // as stored, smaller, as stored, larger
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        for (int precision = PRECISION_FP32; precision <= PRECISION_BF16; precision++) {
            static struct outcome pixels, bytes;
            run(sizes[i], (enum precision)precision, false, &pixels);
            run(sizes[i], (enum precision)precision, true, &bytes);
            assert_int_equal(pixels.count, STEPS + 3);
            assert_int_equal(bytes.count, pixels.count);
            for (uint32_t k = 0; k < pixels.count; k++) {
                assert_true(pixels.results[k].loss_sum == bytes.results[k].loss_sum);
                assert_true(pixels.results[k].loss_sum > 0);
            }
            assert_memory_equal(pixels.grads, bytes.grads, sizeof(pixels.grads));
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_device_makes_the_pixels_that_the_host_makes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
