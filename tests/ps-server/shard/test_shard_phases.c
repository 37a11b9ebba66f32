/* Tests of a shard at the ends of its phase: what it begins with, and what it hands over. */
#include "common/optimizer/optimizer.h"
#include "ps-server/shard/shard.h"
#include "tests/support/common/choices.h"
#include "tests/support/common/float_envelope.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <string.h>

#define VALUES 6

static const struct span buckets[2] = {{4, 2}, {0, 4}};

/* The last answer of each bucket. */
struct answers {
    unsigned count;
    uint32_t vector;
    float values[VALUES];
};

static void take(void *context, uint32_t rank, const struct message *message)
{
    struct answers *answers = context;
    (void)rank;
    assert_int_equal(message->kind, MESSAGE_PARAMS);
    answers->count++;
    answers->vector = message->vector;
    memcpy(answers->values + message->span.offset, message->values,
           message->span.count * sizeof(float));
}

/* One worker, the second phase of a job with Adam: two steps from step 10 on. */
static struct shard *open_shard(const char *mode, bool tells_states)
{
    struct shard_config config = {
        .shard_count = 1,
        .workers = 1,
        .layout = {.value_count = VALUES, .bucket_count = 2},
        .schedule = {.base_rate = 0.5, .start_rate = 0.5},
        .optimizer = OPTIMIZER_ADAM,
        .settings = {.beta1 = 0.9, .beta2 = 0.999},
        .marks = {.first = 10, .end = 12, .period = 100},
        .updates_before = 10,
        .seeds_states = true,
        .tells_states = tells_states,
    };
    struct shard *shard;
    memcpy(config.layout.buckets, buckets, sizeof(buckets));
    assert_int_equal(consistency_find(mode_of(mode), &config.consistency), STATUS_OK);
    assert_int_equal(shard_create(&config, &shard), STATUS_OK);
    return shard;
}

/* What the worker says of a bucket; all values are alike. */
struct event {
    enum message_kind kind;
    uint32_t bucket;
    uint64_t step;
    uint32_t vector;
    float value;
};

static enum status give(struct shard *shard, struct answers *answers, struct event event)
{
    float values[VALUES];
    for (size_t i = 0; i < VALUES; i++) {
        values[i] = event.value;
    }
    struct message message = {
        .kind = event.kind,
        .step = event.step,
        .bucket = event.bucket,
        .vector = event.vector,
        .span = buckets[event.bucket],
    };
    struct envelope envelope;
    assert_int_equal(float_envelope_make(values, message.span.count, &envelope), STATUS_OK);
    message.values = event.kind == MESSAGE_PULL ? NULL : envelope.payload;
    enum status status = shard_receive(shard, &message, &envelope, take, answers);
    envelope_release(&envelope);
    return status;
}

/* The same for both buckets. */
static void give_all(struct shard *shard, struct answers *answers, enum message_kind kind,
                     uint64_t step, uint32_t vector, float value)
{
    for (uint32_t bucket = 0; bucket < 2; bucket++) {
        assert_int_equal(give(shard, answers, (struct event){kind, bucket, step, vector, value}),
                         STATUS_OK);
    }
}

/* What the optimizer makes of ones, from the same parameters and states. */
static void expect_steps(unsigned steps, float ret_params[VALUES], float ret_mean[VALUES])
{
    const struct optimizer_settings settings = {.beta1 = 0.9, .beta2 = 0.999};
    struct optimizer *optimizer;
    float grads[VALUES];
    assert_int_equal(optimizer_create(OPTIMIZER_ADAM, &settings, VALUES, &optimizer), STATUS_OK);
    for (size_t i = 0; i < VALUES; i++) {
        ret_params[i] = 3;
        optimizer_state(optimizer, 0)[i] = 0.25f;
        optimizer_state(optimizer, 1)[i] = 0.5f;
        grads[i] = 1;
    }
    for (unsigned step = 0; step < steps; step++) {
        optimizer_apply(optimizer, (struct span){0, VALUES}, ret_params, grads, 11 + step, 0.5);
    }
    memcpy(ret_mean, optimizer_state(optimizer, 0), VALUES * sizeof(float));
    optimizer_destroy(optimizer);
}

static void seed(struct shard *shard, struct answers *answers)
{
    give_all(shard, answers, MESSAGE_SEED, 0, 0, 3);
    give_all(shard, answers, MESSAGE_SEED, 0, 1, 0.25f);
    give_all(shard, answers, MESSAGE_SEED, 0, 2, 0.5f);
}

static void a_phase_goes_on_with_the_states_and_counts_of_the_one_before(void **state)
{
    (void)state;
    static const char *const modes[] = {"ps-sync", "ps-async"};
    for (size_t i = 0; i < 2; i++) {
        struct shard *shard = open_shard(modes[i], false);
        struct answers answers = {0};
        float params[VALUES], mean[VALUES];
        seed(shard, &answers);
        for (uint64_t step = 0; step < 2; step++) {
            give_all(shard, &answers, MESSAGE_PULL, step + 1, 0, 0);
            give_all(shard, &answers, MESSAGE_PUSH, step, 0, 1);
            expect_steps((unsigned)step + 1, params, mean);
            assert_memory_equal(answers.values, params, sizeof(params));
        }
        give_all(shard, &answers, MESSAGE_PULL, 2, 1, 0);
        assert_int_equal(answers.vector, 1);
        assert_memory_equal(answers.values, mean, sizeof(mean));
        shard_destroy(shard);
    }
}

static void nothing_is_answered_before_everything_is_seeded(void **state)
{
    (void)state;
    struct shard *shard = open_shard("ps-async", false);
    struct answers answers = {0};
    give_all(shard, &answers, MESSAGE_PULL, 0, 0, 0);
    give_all(shard, &answers, MESSAGE_SEED, 0, 0, 3);
    give_all(shard, &answers, MESSAGE_SEED, 0, 1, 0.25f);
    assert_int_equal(give(shard, &answers, (struct event){MESSAGE_SEED, 0, 0, 2, 0.5f}), STATUS_OK);
    assert_int_equal(answers.count, 0);
    assert_int_equal(give(shard, &answers, (struct event){MESSAGE_SEED, 1, 0, 2, 0.5f}), STATUS_OK);
    assert_int_equal(answers.count, 2);
    shard_destroy(shard);
}

static void what_does_not_fit_a_phase_is_refused(void **state)
{
    (void)state;
    struct shard *shard = open_shard("ps-sync", false);
    struct answers answers = {0};
    seed(shard, &answers);
    // Twice the same seed; a state that Adam does not have; states before the phase is over.
    assert_int_equal(give(shard, &answers, (struct event){MESSAGE_SEED, 0, 0, 1, 0}),
                     STATUS_MALFORMED);
    assert_int_equal(give(shard, &answers, (struct event){MESSAGE_SEED, 0, 0, 3, 0}),
                     STATUS_MALFORMED);
    assert_int_equal(give(shard, &answers, (struct event){MESSAGE_SEED, 0, 0, UINT32_MAX, 0}),
                     STATUS_MALFORMED);
    assert_int_equal(give(shard, &answers, (struct event){MESSAGE_PULL, 0, 0, 1, 0}),
                     STATUS_MALFORMED);
    for (uint64_t step = 0; step < 2; step++) {
        give_all(shard, &answers, MESSAGE_PULL, step + 1, 0, 0);
        give_all(shard, &answers, MESSAGE_PUSH, step, 0, 1);
    }
    assert_int_equal(give(shard, &answers, (struct event){MESSAGE_PULL, 0, 2, 3, 0}),
                     STATUS_MALFORMED);
    assert_int_equal(give(shard, &answers, (struct event){MESSAGE_PULL, 0, 2, UINT32_MAX, 0}),
                     STATUS_MALFORMED);
    assert_int_equal(give(shard, &answers, (struct event){MESSAGE_PULL, 0, 2, 2, 0}), STATUS_OK);
    shard_destroy(shard);
}

/* For a program that commits: all have stopped, and then go on. */
static void states_are_told_whenever_no_gradient_is_under_way(void **state)
{
    (void)state;
    static const char *const modes[] = {"ps-sync", "ps-async"};
    for (size_t i = 0; i < 2; i++) {
        struct shard *shard = open_shard(modes[i], true);
        struct answers answers = {0};
        float params[VALUES], mean[VALUES];
        seed(shard, &answers);
        give_all(shard, &answers, MESSAGE_PULL, 0, 2, 0);
        assert_true(answers.values[VALUES - 1] == 0.5f);
        give_all(shard, &answers, MESSAGE_PULL, 1, 0, 0);
        give_all(shard, &answers, MESSAGE_PUSH, 0, 0, 1);
        give_all(shard, &answers, MESSAGE_PULL, 1, 1, 0);
        expect_steps(1, params, mean);
        assert_memory_equal(answers.values, mean, sizeof(mean));
        give_all(shard, &answers, MESSAGE_PULL, 2, 0, 0);
        give_all(shard, &answers, MESSAGE_PUSH, 1, 0, 1);
        expect_steps(2, params, mean);
        assert_memory_equal(answers.values, params, sizeof(params));
        shard_destroy(shard);
    }
}

/* Rank 0 seeds what another worker may already ask for: a program commits before its first step. */
static void a_state_that_is_asked_for_before_it_is_seeded_is_told_then(void **state)
{
    (void)state;
    static const char *const modes[] = {"ps-sync", "ps-async"};
    for (size_t i = 0; i < 2; i++) {
        struct shard *shard = open_shard(modes[i], true);
        struct answers answers = {0};
        const struct event none = {MESSAGE_PULL, 0, 0, 3, 0}, twice = {MESSAGE_PULL, 0, 0, 1, 0};
        assert_int_equal(give(shard, &answers, none), STATUS_MALFORMED);
        give_all(shard, &answers, MESSAGE_PULL, 0, 2, 0);
        assert_int_equal(give(shard, &answers, twice), STATUS_MALFORMED);
        assert_int_equal(answers.count, 0);
        seed(shard, &answers);
        assert_int_equal(answers.count, 2);
        assert_int_equal(answers.vector, 2);
        assert_true(answers.values[0] == 0.5f && answers.values[VALUES - 1] == 0.5f);
        give_all(shard, &answers, MESSAGE_PULL, 0, 1, 0);
        assert_int_equal(answers.count, 4);
        assert_true(answers.values[0] == 0.25f);
        shard_destroy(shard);
    }
}

static void a_state_that_a_gradient_is_about_to_change_is_not_told(void **state)
{
    (void)state;
    struct shard *shard = open_shard("ps-async", true);
    struct answers answers = {0};
    seed(shard, &answers);
    assert_int_equal(give(shard, &answers, (struct event){MESSAGE_PUSH, 0, 0, 0, 1}), STATUS_OK);
    assert_int_equal(give(shard, &answers, (struct event){MESSAGE_PULL, 0, 1, 1, 0}),
                     STATUS_MALFORMED);
    shard_destroy(shard);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_phase_goes_on_with_the_states_and_counts_of_the_one_before),
        cmocka_unit_test(nothing_is_answered_before_everything_is_seeded),
        cmocka_unit_test(what_does_not_fit_a_phase_is_refused),
        cmocka_unit_test(states_are_told_whenever_no_gradient_is_under_way),
        cmocka_unit_test(a_state_that_is_asked_for_before_it_is_seeded_is_told_then),
        cmocka_unit_test(a_state_that_a_gradient_is_about_to_change_is_not_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
