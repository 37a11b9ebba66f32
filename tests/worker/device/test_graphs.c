/* Programs that branch, on each backend against ref: results that several operations read, sums in
 * all places, and small ones of what the ResNets are made of. */
#include "tests/support/model/program_compare.h"
#include "tests/support/model/program_fixture.h"
#include "tests/support/model/tested_backends.h"

#include <string.h>

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on

#define TOLERANCE 1e-4
#define CLASSES   5

/* A normalisation, with or without a relu. */
static uint32_t norm(struct layers *layers, uint32_t input, bool has_relu)
{
    uint32_t x = layers_add(layers, input, (struct layer){OP_BATCH_NORM, .epsilon = 1e-3f});
    return has_relu ? layers_add(layers, x, (struct layer){OP_RELU}) : x;
}

static uint32_t conv(struct layers *layers, uint32_t input, uint32_t channels, uint32_t window)
{
    const struct layer layer = {
        OP_CONV2D,   .channels = channels,  .window = window,
        .stride = 1, .padding = window / 2, .has_no_bias = channels % 2 == 0};
    return layers_add(layers, input, layer);
}

static uint32_t add(struct layers *layers, uint32_t a, uint32_t b, bool has_relu)
{
    uint32_t x = layers_add(layers, a, (struct layer){OP_ADD, .other = b});
    return has_relu ? layers_add(layers, x, (struct layer){OP_RELU}) : x;
}

static uint32_t subsample(struct layers *layers, uint32_t input, uint32_t channels)
{
    const struct layer layer = {OP_SUBSAMPLE, .channels = channels, .stride = 2};
    return layers_add(layers, input, layer);
}

static void finish(struct layers *layers, uint32_t input)
{
    uint32_t x = layers_add(layers, input, (struct layer){OP_GLOBAL_POOL});
    layers_add(layers, x, (struct layer){OP_LINEAR, .channels = CLASSES});
}

static void plain_norms(struct layers *layers)
{
    uint32_t x = norm(layers, conv(layers, DEVICE_INPUT_PIXELS, 6, 3), false);
    finish(layers, norm(layers, conv(layers, x, 7, 3), true));
}

static void norm_of_pixels(struct layers *layers)
{
    finish(layers, conv(layers, norm(layers, DEVICE_INPUT_PIXELS, true), 7, 3));
}

static void block_with_relu_behind_the_sum(struct layers *layers)
{
    uint32_t x = norm(layers, conv(layers, DEVICE_INPUT_PIXELS, 16, 3), true);
    uint32_t y = norm(layers, conv(layers, x, 16, 3), true);
    x = add(layers, norm(layers, conv(layers, y, 16, 3), false), x, true);
    y = norm(layers, conv(layers, x, 16, 3), true);
    finish(layers, add(layers, x, norm(layers, conv(layers, y, 16, 3), false), true));
}

static void block_that_narrows(struct layers *layers)
{
    uint32_t x = norm(layers, conv(layers, DEVICE_INPUT_PIXELS, 5, 3), true);
    const struct layer strided = {OP_CONV2D,   .channels = 40, .window = 3,
                                  .stride = 2, .padding = 1,   .has_no_bias = true};
    uint32_t y = norm(
        layers, conv(layers, norm(layers, layers_add(layers, x, strided), true), 40, 3), false);
    finish(layers, add(layers, y, subsample(layers, x, 40), true));
}

static void blocks_with_pre_activation(struct layers *layers)
{
    uint32_t x = conv(layers, DEVICE_INPUT_PIXELS, 8, 3);
    uint32_t normed = norm(layers, x, true);
    uint32_t shortcut = conv(layers, normed, 24, 1);
    x = add(layers, conv(layers, norm(layers, conv(layers, normed, 8, 1), true), 24, 3), shortcut,
            false);
    for (uint32_t i = 0; i < 3; i++) {
        normed = norm(layers, x, true);
        x = add(layers, conv(layers, norm(layers, conv(layers, normed, 9, 3), true), 24, 1), x,
                false);
    }
    normed = norm(layers, x, true);
    shortcut = subsample(layers, x, 24);
    const struct layer strided = {OP_CONV2D, .channels = 24, .window = 3, .stride = 2,
                                  .padding = 1};
    x = add(layers, layers_add(layers, normed, strided), shortcut, false);
    finish(layers, norm(layers, x, true));
}

static void sums_of_whatever(struct layers *layers)
{
    uint32_t a = conv(layers, DEVICE_INPUT_PIXELS, 7, 3);
    uint32_t b = layers_add(layers, a, (struct layer){OP_RELU});
    uint32_t c = add(layers, a, b, true);  // two that others read
    uint32_t d = add(layers, b, c, false); // again
    uint32_t e = conv(layers, c, 7, 3);
    e = layers_add(layers, e, (struct layer){OP_DROPOUT, .rate = 0.25f});
    uint32_t f = add(layers, e, d, false); // in the place of what dropout wrote
    uint32_t g = add(layers, f, a, true);
    uint32_t h = norm(layers, g, false);
    finish(layers, add(layers, h, norm(layers, f, false), false)); // two normalisations
}

static void sum_of_a_norm_and_what_it_reads(struct layers *layers)
{
    uint32_t x = conv(layers, DEVICE_INPUT_PIXELS, 6, 3);
    x = add(layers, norm(layers, x, false), x, true);
    uint32_t y = norm(layers, conv(layers, x, 7, 3), false);
    finish(layers, conv(layers, add(layers, y, norm(layers, y, false), false), 7, 3));
}

static void pools_of_what_others_read(struct layers *layers)
{
    uint32_t a =
        layers_add(layers, conv(layers, DEVICE_INPUT_PIXELS, 6, 3), (struct layer){OP_RELU});
    const struct layer pool = {OP_MAX_POOL, .window = 3, .stride = 2};
    uint32_t b =
        layers_add(layers, layers_add(layers, a, (struct layer){OP_PAD, .padding = 1}), pool);
    uint32_t c = layers_add(layers, a, (struct layer){OP_PAD, .padding = 1});
    c = layers_add(layers, conv(layers, c, 6, 1), pool);
    uint32_t d = add(layers, b, c, true);
    finish(layers,
           add(layers, layers_add(layers, d, (struct layer){OP_DROPOUT, .rate = 0.5f}), d, false));
}

static const struct graph {
    const char *name;
    void (*build)(struct layers *layers);
} graphs[] = {
    {"plain norms", plain_norms},
    {"norm of pixels", norm_of_pixels},
    {"block with relu behind the sum", block_with_relu_behind_the_sum},
    {"block that narrows", block_that_narrows},
    {"blocks with pre-activation", blocks_with_pre_activation},
    {"sums of whatever", sums_of_whatever},
    {"sum of a norm and what it reads", sum_of_a_norm_and_what_it_reads},
    {"pools of what others read", pools_of_what_others_read},
};

static void check_graph(const char *backend, const struct graph *graph)
{
    static struct layers layers;
    static struct network_plan plan;
    static struct program_difference difference;
    layers.count = 0;
    graph->build(&layers);
    program_fixture_plan_layers(&layers, (struct shape){3, 8, 10}, CLASSES, &plan);
    for (uint32_t i = 0; i < 8; i++) {
        const struct program_compare_options options = {
            .subject = backend,
            .reference = "ref",
            .threads = 1 + i % 2,
            .batch_size = 3 + i,
            .count = i % 4 == 3 ? 2 + i : 0,
            .seed = 17 * (uint64_t)i,
        };
        program_compare(&plan, &options, &difference);
        double statistics = difference.statistics;
        if (!(difference.loss < TOLERANCE && difference.grads < TOLERANCE &&
              statistics < TOLERANCE && difference.correct == 0)) {
            fail_msg("%s, %s, batch %u: loss %.1e, statistics %.1e, gradient of tensor %u %.1e",
                     backend, graph->name, options.batch_size, difference.loss, statistics,
                     difference.worst_tensor, difference.grads);
        }
    }
}

static void branches_are_computed_as_ref_does(void **state)
{
    (void)state;
    for (const struct device_ops *const *ops = tested_backends(); *ops != NULL; ops++) {
        for (size_t i = 0; i < sizeof(graphs) / sizeof(graphs[0]); i++) {
            check_graph((*ops)->name, &graphs[i]);
        }
    }
}

/* What rounding to 8 bits does to a relu or a maximum near a tie is no error of a kernel: these
 * have none. */
static void smooth_layers(struct layers *layers)
{
    const struct layer strided = {OP_CONV2D, .channels = 40, .window = 3, .stride = 2,
                                  .padding = 1};
    uint32_t x = norm(layers, conv(layers, DEVICE_INPUT_PIXELS, 21, 3), false);
    uint32_t y = conv(layers, x, 21, 3);
    x = add(layers, y, x, false);
    x = layers_add(layers, x, (struct layer){OP_DROPOUT, .rate = 0.25f});
    y = norm(layers, layers_add(layers, x, strided), false);
    x = add(layers, y, subsample(layers, x, 40), false);
    x = layers_add(layers, x, (struct layer){OP_PAD, .padding = 1});
    finish(layers, conv(layers, x, 32, 3));
}

#define BF16_TOLERANCE 2e-2

static void bfloat16_is_within_its_rounding_of_ref(void **state)
{
    (void)state;
    static struct layers layers;
    static struct network_plan plan;
    static struct program_difference difference;
    layers.count = 0;
    smooth_layers(&layers);
    program_fixture_plan_layers(&layers, (struct shape){3, 8, 10}, CLASSES, &plan);
    for (const struct device_ops *const *ops = tested_backends(); *ops != NULL; ops++) {
        if (!program_fixture_has_bf16(*ops)) {
            continue;
        }
        for (uint32_t i = 0; i < 6; i++) {
            const struct program_compare_options options = {.subject = (*ops)->name,
                                                            .reference = "ref",
                                                            .threads = 1 + i % 2,
                                                            .precision = PRECISION_BF16,
                                                            .batch_size = 5 + i,
                                                            .count = i % 3 == 2 ? 3 + i : 0,
                                                            .seed = i};
            program_compare(&plan, &options, &difference);
            print_message("%s, bf16: loss %.1e, statistics %.1e, gradients %.1e\n", (*ops)->name,
                          difference.loss, difference.statistics, difference.grads);
            assert_true(difference.loss < BF16_TOLERANCE);
            assert_true(difference.statistics < BF16_TOLERANCE);
            assert_true(difference.grads < BF16_TOLERANCE);
        }
    }
}

static void evaluation_takes_the_statistics(void **state)
{
    (void)state;
    static struct layers layers;
    static struct network_plan plan;
    static struct program_difference difference;
    layers.count = 0;
    blocks_with_pre_activation(&layers);
    program_fixture_plan_layers(&layers, (struct shape){3, 8, 10}, CLASSES, &plan);
    for (const struct device_ops *const *ops = tested_backends(); *ops != NULL; ops++) {
        const struct program_compare_options options = {.subject = (*ops)->name,
                                                        .reference = "ref",
                                                        .batch_size = 4,
                                                        .seed = 5,
                                                        .is_evaluation = true};
        program_compare(&plan, &options, &difference);
        assert_true(difference.loss < TOLERANCE);
        assert_true(difference.statistics == 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(branches_are_computed_as_ref_does),
        cmocka_unit_test(bfloat16_is_within_its_rounding_of_ref),
        cmocka_unit_test(evaluation_takes_the_statistics),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
