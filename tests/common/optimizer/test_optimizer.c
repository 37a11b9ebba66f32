/* Tests of the optimizers: against PyTorch, against closed forms, and bit for bit against
 * themselves. */
#include "common/base/random.h"
#include "common/optimizer/optimizer.h"
#include "common/optimizer/optimizer_rules.h"
#include "common/options/names.h"
#include "common/vector/variants.h"
#include "tests/golden/optimizers.h"
#include "tests/support/common/choices.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *const names[] = {
#define X(identifier, kind, name, rate, summary) name,
    OPTIMIZER_MAP(X)
#undef X
};
#define NAME_COUNT (sizeof(names) / sizeof(names[0]))

static const struct optimizer_settings defaults = {.momentum = 0.9, .beta1 = 0.9, .beta2 = 0.999};

static enum optimizer_kind kind_of(const char *name)
{
    return (enum optimizer_kind)choice_of(names_optimizers, name);
}

static struct optimizer *create(const char *name, const struct optimizer_settings *settings,
                                uint64_t value_count)
{
    struct optimizer *optimizer;
    assert_int_equal(optimizer_create(kind_of(name), settings, value_count, &optimizer), STATUS_OK);
    return optimizer;
}

static void check_near(double value, double wanted, double tolerance, const char *name)
{
    if (!(fabs(value - wanted) <= tolerance * fabs(wanted))) {
        fail_msg("%s: %.9g, wanted %.9g", name, value, wanted);
    }
}

/* Those of record_optimizers.py. */
static float golden_first_param(unsigned index)
{
    return (float)((int)(index * 29 % 64) - 32) / 32;
}

static float golden_gradient(unsigned step, unsigned index)
{
    return (float)((int)((index * 7919 + step * 104729 + index * step * 31) % 1024) - 511) / 512;
}

static void twenty_steps_end_where_those_of_pytorch_end(void **state)
{
    (void)state;
    for (size_t row = 0; row < sizeof(golden_optimizers) / sizeof(golden_optimizers[0]); row++) {
        const struct golden_optimizer *golden = &golden_optimizers[row];
        struct optimizer_settings settings = defaults;
        settings.momentum = GOLDEN_MOMENTUM;
        settings.weight_decay = golden->weight_decay;
        struct optimizer *optimizer = create(golden->name, &settings, GOLDEN_PARAMS);
        float params[GOLDEN_PARAMS], grads[GOLDEN_PARAMS];
        for (unsigned i = 0; i < GOLDEN_PARAMS; i++) {
            params[i] = golden_first_param(i);
        }
        for (unsigned step = 0; step < GOLDEN_STEPS; step++) {
            for (unsigned i = 0; i < GOLDEN_PARAMS; i++) {
                grads[i] = golden_gradient(step, i);
            }
            optimizer_apply(optimizer, (struct span){0, GOLDEN_PARAMS}, params, grads, step + 1,
                            golden->rate);
        }
        for (unsigned i = 0; i < GOLDEN_PARAMS; i++) {
            check_near((double)params[i], (double)golden->params[i], 1e-5, golden->name);
        }
        optimizer_destroy(optimizer);
    }
}

static void pytorch_was_asked_about_every_optimizer(void **state)
{
    (void)state;
    for (size_t i = 0; i < NAME_COUNT; i++) {
        unsigned count = 0;
        for (size_t row = 0; row < sizeof(golden_optimizers) / sizeof(golden_optimizers[0]);
             row++) {
            count += strcmp(golden_optimizers[row].name, names[i]) == 0;
        }
        assert_int_equal(count, 2);
    }
}

/* The parameter, at first 0, after `steps` steps with the same gradient. */
static double after_constant_gradient(const char *name, const struct optimizer_settings *settings,
                                      float grad, unsigned steps, double rate)
{
    struct optimizer *optimizer = create(name, settings, 1);
    float param = 0;
    for (unsigned step = 1; step <= steps; step++) {
        optimizer_apply(optimizer, (struct span){0, 1}, &param, &grad, step, rate);
    }
    optimizer_destroy(optimizer);
    return (double)param;
}

static void sgd_steps_by_rate_times_gradient(void **state)
{
    (void)state;
    // All of it is exact in floats.
    assert_true(after_constant_gradient("sgd", &defaults, 3, 10, 0.125) == -0.125 * 3 * 10);
}

static void momentum_gathers_a_geometric_series(void **state)
{
    (void)state;
    double sum = 0, velocity = 0;
    for (unsigned step = 1; step <= 30; step++) {
        velocity = (1 - pow(0.9, step)) / (1 - 0.9);
        sum += velocity;
        double wanted = -0.01 * 2 * sum;
        check_near(after_constant_gradient("momentum", &defaults, 2, step, 0.01), wanted, 1e-5,
                   "momentum");
    }
}

static void nesterov_is_one_velocity_ahead(void **state)
{
    (void)state;
    double sum = 0;
    for (unsigned step = 1; step <= 30; step++) {
        sum += 1 + 0.9 * (1 - pow(0.9, step)) / (1 - 0.9);
        check_near(after_constant_gradient("nesterov", &defaults, 2, step, 0.01), -0.01 * 2 * sum,
                   1e-5, "nesterov");
    }
}

static void momentum_0_is_sgd_to_the_bit(void **state)
{
    (void)state;
    struct optimizer_settings settings = {.momentum = 0, .weight_decay = 0.1};
    double wanted = after_constant_gradient("sgd", &settings, 0.3F, 50, 0.01);
    assert_true(after_constant_gradient("momentum", &settings, 0.3F, 50, 0.01) == wanted);
    assert_true(after_constant_gradient("nesterov", &settings, 0.3F, 50, 0.01) == wanted);
}

static void adam_steps_by_the_rate_whatever_the_gradient(void **state)
{
    (void)state;
    const float grads[] = {1e-3F, 1, -1e3F};
    for (unsigned i = 0; i < 3; i++) {
        double wanted = grads[i] > 0 ? -0.001 * 200 : 0.001 * 200;
        check_near(after_constant_gradient("adam", &defaults, grads[i], 200, 0.001), wanted, 2e-5,
                   "adam");
        check_near(after_constant_gradient("adamw", &defaults, grads[i], 200, 0.001), wanted, 2e-5,
                   "adamw");
    }
}

static void adamw_shrinks_parameters_without_a_gradient(void **state)
{
    (void)state;
    struct optimizer_settings settings = defaults;
    settings.weight_decay = 0.1;
    struct optimizer *optimizer = create("adamw", &settings, 1);
    float param = 2, grad = 0;
    for (unsigned step = 1; step <= 50; step++) {
        optimizer_apply(optimizer, (struct span){0, 1}, &param, &grad, step, 0.05);
    }
    check_near((double)param, 2 * pow(1 - 0.05 * 0.1, 50), 1e-5, "adamw");
    optimizer_destroy(optimizer);
}

static void adagrad_steps_shrink_with_the_root_of_their_number(void **state)
{
    (void)state;
    double sum = 0;
    for (unsigned step = 1; step <= 30; step++) {
        sum += 1 / sqrt(step);
        check_near(after_constant_gradient("adagrad", &defaults, 5, step, 0.01), -0.01 * sum, 1e-5,
                   "adagrad");
    }
}

static void rmsprop_divides_by_the_root_of_a_moving_average(void **state)
{
    (void)state;
    struct optimizer_settings settings = {.decay = 0.5, .epsilon = 1e-9};
    double sum = 0;
    for (unsigned step = 1; step <= 30; step++) {
        sum += 1 / sqrt(1 - pow(0.5, step));
        check_near(after_constant_gradient("rmsprop", &settings, 5, step, 0.01), -0.01 * sum, 1e-5,
                   "rmsprop");
    }
}

static void adadelta_begins_with_a_step_of_the_root_of_epsilon(void **state)
{
    (void)state;
    struct optimizer_settings settings = {.decay = 0.75, .epsilon = 0.01};
    double wanted = -0.5 * sqrt(0.01) / sqrt(0.25 * 9 + 0.01) * 3;
    check_near(after_constant_gradient("adadelta", &settings, 3, 1, 0.5), wanted, 1e-6, "adadelta");
}

static void epsilon_and_decay_0_stand_for_the_defaults_of_pytorch(void **state)
{
    (void)state;
    const struct {
        const char *name;
        double epsilon, decay;
    } cases[] = {{"adam", 1e-8, 0},
                 {"adamw", 1e-8, 0},
                 {"adagrad", 1e-10, 0},
                 {"adadelta", 1e-6, 0.9},
                 {"rmsprop", 1e-8, 0.99}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct optimizer_settings settings = defaults;
        settings.epsilon = cases[i].epsilon;
        settings.decay = cases[i].decay;
        double by_default = after_constant_gradient(cases[i].name, &defaults, 1e-3F, 5, 0.1);
        assert_true(by_default == after_constant_gradient(cases[i].name, &settings, 1e-3F, 5, 0.1));
        settings.epsilon *= 100;
        assert_true(by_default != after_constant_gradient(cases[i].name, &settings, 1e-3F, 5, 0.1));
    }
}

// A length that leaves a remainder in every variant.
#define BITS_COUNT 1037
#define BITS_STEPS 4

/* Values over many magnitudes, zeros and denormals among them. */
static void fill(float values[BITS_COUNT], uint64_t seed)
{
    struct random_sequence sequence = {seed};
    for (size_t i = 0; i < BITS_COUNT; i++) {
        int exponent = (int)random_below(&sequence, 48) - 40;
        values[i] = ldexpf(random_unit_float((uint32_t)random_next(&sequence)) - 0.5F, exponent);
        if (i % 37 == 0) {
            values[i] = i % 2 == 0 ? 0 : 1e-41F;
        }
    }
}

struct outcome {
    float params[BITS_COUNT];
    float states[OPTIMIZER_STATES_MAX][BITS_COUNT];
};

/* Some steps in spans of `span_count` values. */
static void train(const char *name, double weight_decay, enum variant variant, size_t span_count,
                  struct outcome *ret_outcome)
{
    struct optimizer_settings settings = defaults;
    settings.weight_decay = weight_decay;
    struct optimizer *optimizer;
    assert_int_equal(
        optimizer_create_variant(kind_of(name), &settings, BITS_COUNT, variant, &optimizer),
        STATUS_OK);
    memset(ret_outcome, 0, sizeof(*ret_outcome));
    fill(ret_outcome->params, 1);
    for (uint64_t step = 1; step <= BITS_STEPS; step++) {
        float grads[BITS_COUNT];
        fill(grads, 1 + step);
        for (size_t i = 0; i < BITS_COUNT; i += span_count) {
            size_t count = BITS_COUNT - i < span_count ? BITS_COUNT - i : span_count;
            optimizer_apply(optimizer, (struct span){i, count}, ret_outcome->params + i, grads + i,
                            step, 0.01);
        }
    }
    for (uint32_t i = 0; i < optimizer_state_count(optimizer); i++) {
        memcpy(ret_outcome->states[i], optimizer_state(optimizer, i), sizeof(float[BITS_COUNT]));
    }
    optimizer_destroy(optimizer);
}

static void check_bits(enum variant variant, size_t span_count)
{
    for (size_t i = 0; i < 2 * NAME_COUNT; i++) {
        double weight_decay = i < NAME_COUNT ? 0 : 0.01;
        struct outcome wanted, outcome;
        train(names[i % NAME_COUNT], weight_decay, VARIANT_PORTABLE, BITS_COUNT, &wanted);
        train(names[i % NAME_COUNT], weight_decay, variant, span_count, &outcome);
        assert_memory_equal(&outcome, &wanted, sizeof(wanted));
    }
}

static void all_variants_agree_in_every_bit(void **state)
{
    (void)state;
    for (unsigned variant = 0; variant < VARIANT_COUNT; variant++) {
        if (variant_is_supported(variant)) {
            check_bits(variant, BITS_COUNT);
        } else {
            print_message("not on this machine: variant %u\n", variant);
        }
    }
}

static void all_cuts_into_spans_agree_in_every_bit(void **state)
{
    (void)state;
    const size_t span_counts[] = {1, 3, 16, 17, 100, 519, 1036};
    for (size_t i = 0; i < sizeof(span_counts) / sizeof(span_counts[0]); i++) {
        check_bits(variant_best(), span_counts[i]);
    }
}

static void states_carried_over_go_on_in_the_same_bits(void **state)
{
    (void)state;
    for (size_t i = 0; i < NAME_COUNT; i++) {
        struct optimizer *first = create(names[i], &defaults, BITS_COUNT);
        struct optimizer *second = create(names[i], &defaults, BITS_COUNT);
        float params[BITS_COUNT], copy[BITS_COUNT], grads[BITS_COUNT];
        fill(params, 1);
        fill(grads, 2);
        optimizer_apply(first, (struct span){0, BITS_COUNT}, params, grads, 1, 0.1);
        memcpy(copy, params, sizeof(copy));
        for (uint32_t j = 0; j < optimizer_state_count(first); j++) {
            memcpy(optimizer_state(second, j), optimizer_state(first, j), sizeof(params));
        }
        optimizer_apply(first, (struct span){0, BITS_COUNT}, params, grads, 2, 0.1);
        optimizer_apply(second, (struct span){0, BITS_COUNT}, copy, grads, 2, 0.1);
        assert_memory_equal(copy, params, sizeof(params));
        optimizer_destroy(second);
        optimizer_destroy(first);
    }
}

static void states_begin_at_0_and_are_as_many_as_the_rule_keeps(void **state)
{
    (void)state;
    const struct {
        const char *name;
        uint32_t state_count;
    } cases[] = {{"sgd", 0},   {"momentum", 1}, {"nesterov", 1}, {"adam", 2},
                 {"adamw", 2}, {"adagrad", 1},  {"adadelta", 2}, {"rmsprop", 1}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct optimizer *optimizer = create(cases[i].name, &defaults, 100);
        assert_int_equal(optimizer_state_count(optimizer), cases[i].state_count);
        assert_int_equal(optimizer_states_of((enum optimizer_kind)i), cases[i].state_count);
        for (uint32_t j = 0; j < cases[i].state_count; j++) {
            for (unsigned k = 0; k < 100; k++) {
                assert_true(optimizer_state(optimizer, j)[k] == 0);
            }
        }
        optimizer_destroy(optimizer);
    }
}

static void parameters_outside_the_span_are_left_alone(void **state)
{
    (void)state;
    for (size_t i = 0; i < NAME_COUNT; i++) {
        struct optimizer *optimizer = create(names[i], &defaults, 100);
        float params[12], grads[10];
        for (unsigned j = 0; j < 12; j++) {
            params[j] = 7;
        }
        for (unsigned j = 0; j < 10; j++) {
            grads[j] = 1;
        }
        optimizer_apply(optimizer, (struct span){90, 10}, params + 1, grads, 1, 0.1);
        optimizer_apply(optimizer, (struct span){100, 0}, params, grads, 1, 0.1);
        assert_true(params[0] == 7 && params[11] == 7);
        assert_true(params[1] < 7 && params[10] == params[1]);
        for (uint32_t j = 0; j < optimizer_state_count(optimizer); j++) {
            assert_true(optimizer_state(optimizer, j)[89] == 0);
            assert_true(optimizer_state(optimizer, j)[90] > 0);
        }
        optimizer_destroy(optimizer);
    }
}

static void more_values_than_memory_are_refused_and_write_nothing(void **state)
{
    (void)state;
    struct optimizer *optimizer = NULL;
    const uint64_t counts[] = {UINT64_MAX, UINT64_MAX / 4, UINT64_MAX / 4 + 1, UINT64_C(1) << 61};
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
        assert_int_equal(optimizer_create(OPTIMIZER_ADAM, &defaults, counts[i], &optimizer),
                         STATUS_NO_MEMORY);
    }
    assert_null(optimizer);
}

static void settings_out_of_range_are_refused_where_they_are_used(void **state)
{
    (void)state;
    const struct {
        const char *user, *other;
        struct optimizer_settings settings;
    } cases[] = {
        {"momentum", "sgd", {.momentum = 1}},
        {"nesterov", "adagrad", {.momentum = -0.1}},
        {"momentum", "adam", {.momentum = (double)NAN}},
        {"adam", "sgd", {.beta1 = 1}},
        {"adamw", "momentum", {.beta2 = 1.5}},
        {"adam", "rmsprop", {.beta2 = (double)NAN}},
        {"rmsprop", "adam", {.decay = 1}},
        {"adadelta", "sgd", {.decay = -1}},
        {"adagrad", "sgd", {.epsilon = -1e-8}},
        {"rmsprop", "momentum", {.epsilon = 1e-50}}, // 0 as a float
        {"adam", "nesterov", {.epsilon = 1e50}},
        {"adam", "sgd", {.epsilon = (double)NAN}},
        {"sgd", NULL, {.weight_decay = -1}},
        {"adamw", NULL, {.weight_decay = (double)INFINITY}},
        {"adam", NULL, {.weight_decay = (double)NAN}},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct optimizer *optimizer = NULL;
        assert_int_equal(
            optimizer_create(kind_of(cases[i].user), &cases[i].settings, 10, &optimizer),
            STATUS_INVALID);
        assert_null(optimizer);
        if (cases[i].other != NULL) {
            optimizer_destroy(create(cases[i].other, &cases[i].settings, 10));
        }
    }
}

static void each_optimizer_has_its_default_rate(void **state)
{
    (void)state;
    for (size_t i = 0; i < NAME_COUNT; i++) {
        assert_true(optimizer_default_rate(kind_of(names[i])) > 0);
    }
    assert_true(optimizer_default_rate(OPTIMIZER_SGD) == 0.05);
    assert_true(optimizer_default_rate(OPTIMIZER_ADADELTA) == 1.0);
}

static void destroying_null_does_nothing(void **state)
{
    (void)state;
    optimizer_destroy(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(twenty_steps_end_where_those_of_pytorch_end),
        cmocka_unit_test(pytorch_was_asked_about_every_optimizer),
        cmocka_unit_test(sgd_steps_by_rate_times_gradient),
        cmocka_unit_test(momentum_gathers_a_geometric_series),
        cmocka_unit_test(nesterov_is_one_velocity_ahead),
        cmocka_unit_test(momentum_0_is_sgd_to_the_bit),
        cmocka_unit_test(adam_steps_by_the_rate_whatever_the_gradient),
        cmocka_unit_test(adamw_shrinks_parameters_without_a_gradient),
        cmocka_unit_test(adagrad_steps_shrink_with_the_root_of_their_number),
        cmocka_unit_test(rmsprop_divides_by_the_root_of_a_moving_average),
        cmocka_unit_test(adadelta_begins_with_a_step_of_the_root_of_epsilon),
        cmocka_unit_test(epsilon_and_decay_0_stand_for_the_defaults_of_pytorch),
        cmocka_unit_test(all_variants_agree_in_every_bit),
        cmocka_unit_test(all_cuts_into_spans_agree_in_every_bit),
        cmocka_unit_test(states_carried_over_go_on_in_the_same_bits),
        cmocka_unit_test(states_begin_at_0_and_are_as_many_as_the_rule_keeps),
        cmocka_unit_test(parameters_outside_the_span_are_left_alone),
        cmocka_unit_test(more_values_than_memory_are_refused_and_write_nothing),
        cmocka_unit_test(settings_out_of_range_are_refused_where_they_are_used),
        cmocka_unit_test(each_optimizer_has_its_default_rate),
        cmocka_unit_test(destroying_null_does_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
