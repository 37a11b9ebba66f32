/* Tests of what a shard copies for a checkpoint, and that a restored shard goes on from there. */
#include "ps-server/shard/shard_checkpoint.h"
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

/* The last answer. */
static float answered[VALUES];

static void take(void *context, uint32_t rank, const struct message *message)
{
    (void)context;
    (void)rank;
    memcpy(answered + message->span.offset, message->values, message->span.count * sizeof(float));
}

static struct shard_config config_of(const char *mode, uint32_t index, uint32_t count)
{
    struct shard_config config = {
        .index = index,
        .shard_count = count,
        .workers = 1,
        .layout = {.value_count = VALUES, .bucket_count = 2},
        .schedule = {.base_rate = 0.5, .start_rate = 0.5},
        .optimizer = OPTIMIZER_ADAM,
        .settings = {.beta1 = 0.9, .beta2 = 0.999},
        .marks = {.first = 0, .end = 12, .period = 100},
    };
    memcpy(config.layout.buckets, buckets, sizeof(buckets));
    assert_int_equal(consistency_find(mode_of(mode), &config.consistency), STATUS_OK);
    return config;
}

static void give(struct shard *shard, enum message_kind kind, uint32_t bucket, uint64_t step,
                 float value)
{
    const struct shard_config *config = shard_config(shard);
    float values[VALUES];
    struct message message = {
        .kind = kind,
        .step = step,
        .bucket = bucket,
        .span = span_part(buckets[bucket], config->shard_count, config->index),
    };
    if (message.span.count == 0) {
        return;
    }
    for (size_t i = 0; i < VALUES; i++) {
        values[i] = value + (kind == MESSAGE_SEED ? 0.0f : 0.5f);
    }
    struct envelope envelope;
    assert_int_equal(float_envelope_make(values, message.span.count, &envelope), STATUS_OK);
    message.values = kind == MESSAGE_PULL ? NULL : envelope.payload;
    assert_int_equal(shard_receive(shard, &message, &envelope, take, NULL), STATUS_OK);
    envelope_release(&envelope);
}

static void seed(struct shard *shard)
{
    for (uint32_t bucket = 0; bucket < 2; bucket++) {
        give(shard, MESSAGE_SEED, bucket, 0, 3);
    }
}

static void make_step(struct shard *shard, uint64_t step, float gradient)
{
    for (uint32_t bucket = 0; bucket < 2; bucket++) {
        give(shard, MESSAGE_PULL, bucket, step + 1, 0);
        give(shard, MESSAGE_PUSH, bucket, step, gradient);
    }
}

/* Puts a snapshot's values into a restored shard, by the names of both. */
static void carry_over(struct snapshot *snapshot, struct shard *to)
{
    struct fetch fetch;
    for (uint32_t i = 0; shard_checkpoint_restore(to, i, &fetch); i++) {
        for (uint64_t at = 0; at < fetch.span.count; at++) {
            bool is_found = false;
            for (uint32_t k = 0; k < snapshot->entry_count; k++) {
                const struct snapshot_entry *entry = &snapshot->entries[k];
                uint64_t place = fetch.span.offset + at - entry->span.offset;
                if (strcmp(entry->vector, fetch.vector) == 0 && place < entry->span.count) {
                    fetch.target[at] = snapshot_values(snapshot, k)[place];
                    assert_int_equal(entry->total, fetch.total);
                    is_found = true;
                }
            }
            assert_true(is_found);
        }
    }
    shard_checkpoint_restored(to);
}

static void a_restored_shard_goes_on_with_the_bits_also_as_several(void **state)
{
    (void)state;
    static const char *const modes[] = {"ps-sync", "ps-async"};
    for (size_t m = 0; m < 2; m++) {
        struct shard_config config = config_of(modes[m], 0, 1);
        struct snapshot snapshot = {0};
        struct shard *shard;
        float expected[VALUES];
        assert_int_equal(shard_create(&config, &shard), STATUS_OK);
        assert_int_equal(shard_checkpoint_prepare(shard, &snapshot), STATUS_OK);
        shard_checkpoint_set_free(shard, true);
        shard_checkpoint_await(shard, &snapshot, shard_checkpoint_count(&config, 2));
        seed(shard);
        for (uint64_t step = 0; step < 4; step++) {
            make_step(shard, step, 1 + (float)step);
            assert_int_equal(shard_checkpoint_is_whole(shard), step >= 1);
        }
        memcpy(expected, answered, sizeof(expected));
        shard_destroy(shard);
        for (uint32_t index = 0; index < 2; index++) {
            struct shard_config half = config_of(modes[m], index, 2);
            half.marks.first = half.updates_before = 2;
            half.is_restored = true;
            assert_int_equal(shard_create(&half, &shard), STATUS_OK);
            carry_over(&snapshot, shard);
            memset(answered, 0, sizeof(answered));
            make_step(shard, 0, 3);
            make_step(shard, 1, 4);
            for (uint32_t bucket = 0; bucket < 2; bucket++) {
                struct span part = span_part(buckets[bucket], 2, index);
                assert_memory_equal(answered + part.offset, expected + part.offset,
                                    part.count * sizeof(float));
            }
            shard_destroy(shard);
        }
        snapshot_finish(&snapshot);
    }
}

static void parts_are_copied_each_when_it_gets_there(void **state)
{
    (void)state;
    struct shard_config config = config_of("ps-sync", 0, 1);
    struct snapshot snapshot = {0};
    struct shard *shard;
    assert_int_equal(shard_create(&config, &shard), STATUS_OK);
    assert_int_equal(shard_checkpoint_prepare(shard, &snapshot), STATUS_OK);
    shard_checkpoint_set_free(shard, true);
    shard_checkpoint_await(shard, &snapshot, 1);
    seed(shard);
    give(shard, MESSAGE_PUSH, 0, 0, 1);
    give(shard, MESSAGE_PUSH, 0, 1, 1); // one part is a step ahead
    assert_false(shard_checkpoint_is_whole(shard));
    assert_true(shard_checkpoint_is_late(shard, 1));
    assert_false(shard_checkpoint_is_late(shard, 3));
    assert_false(shard_checkpoint_is_reached(shard, 1));
    float kept[2];
    memcpy(kept, snapshot_values(&snapshot, 0), sizeof(kept));
    give(shard, MESSAGE_PUSH, 1, 0, 1);
    assert_true(shard_checkpoint_is_whole(shard));
    assert_true(shard_checkpoint_is_reached(shard, 1));
    assert_false(shard_checkpoint_is_reached(shard, 2));
    assert_false(shard_checkpoint_was_missed(shard));
    struct span span;
    assert_memory_equal(kept, snapshot_values(&snapshot, 0), sizeof(kept));
    assert_memory_not_equal(kept, shard_params(shard, 0, &span), sizeof(kept));
    shard_destroy(shard);
    snapshot_finish(&snapshot);
}

static void what_was_counted_is_kept_as_it_was_when_the_copy_was_taken(void **state)
{
    (void)state;
    struct shard_config config = config_of("ps-async", 0, 1);
    struct snapshot snapshot = {0};
    struct shard *shard;
    assert_int_equal(shard_create(&config, &shard), STATUS_OK);
    assert_int_equal(shard_checkpoint_prepare(shard, &snapshot), STATUS_OK);
    shard_checkpoint_set_free(shard, true);
    shard_checkpoint_await(shard, &snapshot, shard_checkpoint_count(&config, 2));
    seed(shard);
    for (uint64_t step = 0; step < 4; step++) {
        make_step(shard, step, 1);
    }
    assert_int_equal(shard_staleness(shard)->total, 4);
    assert_int_equal(shard_checkpoint_staleness(shard)->total, 2);
    shard_checkpoint_copy(shard); // after the last update
    assert_int_equal(shard_checkpoint_staleness(shard)->total, 4);
    assert_int_equal(shard_checkpoint_late_count(shard), 0);
    shard_destroy(shard);
    snapshot_finish(&snapshot);
}

static void a_snapshot_that_is_not_free_is_left_as_it_is(void **state)
{
    (void)state;
    struct shard_config config = config_of("ps-sync", 0, 1);
    struct snapshot snapshot = {0};
    struct shard *shard;
    assert_int_equal(shard_create(&config, &shard), STATUS_OK);
    assert_int_equal(shard_checkpoint_prepare(shard, &snapshot), STATUS_OK);
    shard_checkpoint_set_free(shard, false);
    shard_checkpoint_await(shard, &snapshot, 1);
    snapshot_values(&snapshot, 0)[0] = 77;
    seed(shard);
    make_step(shard, 0, 1);
    assert_true(shard_checkpoint_is_whole(shard));
    assert_true(shard_checkpoint_was_missed(shard));
    assert_true(snapshot_values(&snapshot, 0)[0] > 76);
    shard_checkpoint_copy(shard);
    struct span span;
    assert_memory_equal(snapshot_values(&snapshot, 0), shard_params(shard, 0, &span),
                        2 * sizeof(float));
    shard_destroy(shard);
    snapshot_finish(&snapshot);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_restored_shard_goes_on_with_the_bits_also_as_several),
        cmocka_unit_test(parts_are_copied_each_when_it_gets_there),
        cmocka_unit_test(what_was_counted_is_kept_as_it_was_when_the_copy_was_taken),
        cmocka_unit_test(a_snapshot_that_is_not_free_is_left_as_it_is),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
