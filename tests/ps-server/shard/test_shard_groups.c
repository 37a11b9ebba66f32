/* Tests of groups of parameters in shards: borders anywhere, and settings that come with pushes. */
#include "common/base/random.h"
#include "common/optimizer/groups.h"
#include "ps-server/shard/shard.h"
#include "tests/support/common/choices.h"
#include "tests/support/common/float_envelope.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define VALUES      9001 // with buckets and blocks (of 4096 floats) that borders fall into
#define BUCKETS     3
#define SHARDS_MAX  3
#define WORKERS_MAX 3
#define GROUPS      3
#define STEPS       4

static const struct span buckets[BUCKETS] = {{8000, 1001}, {17, 7983}, {0, 17}};

/* A job of one process for each rank, in memory. */
struct cluster {
    uint32_t workers, shard_count;
    enum optimizer_kind optimizer;
    const char *mode;
    struct schedule schedule;
    const struct optimizer_groups *groups;
    struct shard *shards[SHARDS_MAX];
    float params[VALUES]; // that rank 0 was sent last
    double rate;          // that its last gradient was applied with
};

static const struct optimizer_group rows[GROUPS] = {
    {1, {.momentum = 0.9, .beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-8}},
    {0.25, {.momentum = 0.5, .beta1 = 0.8, .beta2 = 0.99, .epsilon = 1e-6, .weight_decay = 0.1}},
    {0, {.momentum = 0, .beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-8}},
};

/* Runs that end at the values given. */
static struct optimizer_groups groups_of(const uint64_t *ends, const uint32_t *members,
                                         uint32_t count)
{
    return (struct optimizer_groups){.groups = rows,
                                     .group_count = GROUPS,
                                     .run_count = count,
                                     .run_ends = ends,
                                     .run_groups = members,
                                     .is_relative = true};
}

static float gradient_of(uint32_t rank, uint64_t step, uint64_t index)
{
    uint64_t key = random_key(11, RANDOM_SPLIT, rank, step);
    return random_unit_float(random_element(key, (uint32_t)index)) - 0.5f;
}

static void take_params(void *context, uint32_t rank, const struct message *message)
{
    struct cluster *cluster = context;
    if (rank == 0) {
        memcpy(cluster->params + message->span.offset, message->values,
               message->span.count * sizeof(float));
        cluster->rate = message->outcome != NULL ? message->outcome->rate : 0;
    }
}

static enum status give(struct cluster *cluster, struct message message, uint32_t shard)
{
    static float values[VALUES];
    message.span = span_part(buckets[message.bucket], cluster->shard_count, shard);
    for (uint64_t i = 0; i < message.span.count; i++) {
        uint64_t index = message.span.offset + i;
        values[i] = message.kind == MESSAGE_SEED ? (float)index / VALUES
                                                 : gradient_of(message.rank, message.step, index);
    }
    struct envelope envelope;
    assert_int_equal(float_envelope_make(values, message.span.count, &envelope), STATUS_OK);
    message.values = message.kind == MESSAGE_PULL ? NULL : envelope.payload;
    enum status status =
        shard_receive(cluster->shards[shard], &message, &envelope, take_params, cluster);
    envelope_release(&envelope);
    return status;
}

static void cluster_open(struct cluster *cluster)
{
    for (uint32_t k = 0; k < cluster->shard_count; k++) {
        struct shard_config config = {
            .index = k,
            .shard_count = cluster->shard_count,
            .workers = cluster->workers,
            .layout = {.value_count = VALUES, .bucket_count = BUCKETS},
            .schedule = cluster->schedule,
            .optimizer = cluster->optimizer,
            .settings = rows[0].settings,
            .groups = cluster->groups,
            .marks = {.end = 1000},
        };
        memcpy(config.layout.buckets, buckets, sizeof(buckets));
        assert_int_equal(consistency_find(mode_of(cluster->mode), &config.consistency), STATUS_OK);
        assert_int_equal(shard_create(&config, &cluster->shards[k]), STATUS_OK);
        for (uint32_t bucket = 0; bucket < BUCKETS; bucket++) {
            struct message seed = {.kind = MESSAGE_SEED, .bucket = bucket};
            assert_int_equal(give(cluster, seed, k), STATUS_OK);
        }
    }
}

static void cluster_close(struct cluster *cluster)
{
    for (uint32_t k = 0; k < cluster->shard_count; k++) {
        shard_destroy(cluster->shards[k]);
    }
}

/* A message for every part of the model. */
static void give_all(struct cluster *cluster, struct message message)
{
    for (message.bucket = 0; message.bucket < BUCKETS; message.bucket++) {
        for (uint32_t shard = 0; shard < cluster->shard_count; shard++) {
            assert_int_equal(give(cluster, message, shard), STATUS_OK);
        }
    }
}

/* Everybody pushes a step, the last rank first, with the settings given; then rank 0 pulls. */
static void run_step(struct cluster *cluster, uint64_t step, const struct optimizer_groups *said)
{
    for (uint32_t rank = cluster->workers; rank-- > 0;) {
        give_all(cluster, (struct message){
                              .kind = MESSAGE_PUSH, .rank = rank, .step = step, .groups = said});
    }
    give_all(cluster, (struct message){.kind = MESSAGE_PULL, .step = step + 1});
}

static float mean_of(uint32_t workers, uint64_t step, uint64_t index)
{
    uint32_t bucket = index >= 8000 ? 0 : index >= 17 ? 1 : 2, chunk = 0;
    struct span span = span_part(buckets[bucket], workers, chunk);
    while (index >= span.offset + span.count) {
        span = span_part(buckets[bucket], workers, ++chunk);
    }
    float sum = gradient_of(chunk, step, index);
    for (uint32_t k = 1; k < workers; k++) {
        sum += gradient_of((chunk + k) % workers, step, index);
    }
    return workers > 1 ? sum * (1.0f / (float)workers) : sum;
}

static uint32_t group_at(const struct optimizer_groups *groups, uint64_t index)
{
    uint32_t run = 0;
    while (groups->run_count > 0 && groups->run_ends[run] <= index) {
        run++;
    }
    return groups->run_count > 0 ? groups->run_groups[run] : 0;
}

/* All values by the settings of one group. */
static void expected_of(const struct cluster *cluster, const struct optimizer_group *group,
                        float *values)
{
    static float means[VALUES];
    struct optimizer *optimizer;
    assert_int_equal(optimizer_create(cluster->optimizer, &group->settings, VALUES, &optimizer),
                     STATUS_OK);
    for (uint64_t i = 0; i < VALUES; i++) {
        values[i] = (float)i / VALUES;
    }
    for (uint64_t step = 0; step < STEPS; step++) {
        for (uint64_t i = 0; i < VALUES; i++) {
            means[i] = mean_of(cluster->workers, step, i);
        }
        optimizer_apply(optimizer, (struct span){0, VALUES}, values, means, step + 1,
                        schedule_rate(&cluster->schedule, step) * group->rate);
    }
    optimizer_destroy(optimizer);
}

static void check_values(const struct cluster *cluster, const struct optimizer_groups *groups,
                         uint32_t number)
{
    static float expected[GROUPS][VALUES];
    for (uint32_t g = 0; g < GROUPS; g++) {
        expected_of(cluster, &rows[g], expected[g]);
    }
    for (uint64_t i = 0; i < VALUES; i++) {
        float value = cluster->params[i], wanted = expected[group_at(groups, i)][i];
        if (memcmp(&value, &wanted, sizeof(value)) != 0) {
            fail_msg("case %u, value %llu: %.9g, expected %.9g", number, (unsigned long long)i,
                     (double)value, (double)wanted);
        }
    }
}

static void each_value_has_the_settings_of_its_group_wherever_borders_are(void **state)
{
    (void)state;
    static const enum optimizer_kind kinds[] = {OPTIMIZER_SGD, OPTIMIZER_MOMENTUM, OPTIMIZER_ADAM,
                                                OPTIMIZER_ADAMW};
    static const uint64_t ends[] = {1, 16, 17, 18, 2000, 4113, 4114, 7999, 8001, 8500, VALUES};
    static const uint32_t members[] = {0, 1, 0, 2, 1, 0, 1, 2, 0, 1, 2};
    const struct optimizer_groups groups = groups_of(ends, members, 11);
    for (uint32_t i = 0; i < 4 * SHARDS_MAX * WORKERS_MAX; i++) {
        struct cluster cluster = {
            .workers = 1 + i % WORKERS_MAX,
            .shard_count = 1 + i / WORKERS_MAX % SHARDS_MAX,
            .optimizer = kinds[i / (WORKERS_MAX * SHARDS_MAX)],
            .mode = "ps-sync",
            .schedule = {.base_rate = 0.1, .start_rate = 0.1},
            .groups = &groups,
        };
        cluster_open(&cluster);
        for (uint64_t step = 0; step < STEPS; step++) {
            run_step(&cluster, step, NULL);
        }
        check_values(&cluster, &groups, i);
        cluster_close(&cluster);
    }
}

/* What pushes say of one step holds for its update alone, at the rates that they say. */
static void a_push_says_the_settings_of_its_own_update(void **state)
{
    (void)state;
    const char *const modes[] = {"ps-sync", "ps-ssp:1", "ps-async"};
    const struct optimizer_group still = {0, {0}}, twice = {0.2, {0}};
    struct optimizer_groups said = {.groups = &still, .group_count = 1};
    for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
        struct cluster cluster = {.workers = 1,
                                  .shard_count = 2,
                                  .mode = modes[i],
                                  .optimizer = OPTIMIZER_SGD,
                                  .schedule = {.base_rate = 0.1, .start_rate = 0.1}};
        cluster_open(&cluster);
        said.groups = &still;
        run_step(&cluster, 0, &said);
        assert_true(cluster.params[5] == 5.0f / VALUES);
        said.groups = &twice;
        run_step(&cluster, 1, &said);
        float after_twice = fmaf(-0.2f, gradient_of(0, 1, 5), 5.0f / VALUES);
        assert_true(cluster.params[5] == after_twice);
        assert_true(cluster.rate == (i > 0 ? 0.2 : 0));
        run_step(&cluster, 2, NULL);
        assert_true(cluster.params[5] == fmaf(-0.1f, gradient_of(0, 2, 5), after_twice));
        cluster_close(&cluster);
    }
}

/* In a job with a schedule rates that are relative follow it. */
static void relative_rates_follow_the_schedule(void **state)
{
    (void)state;
    const struct optimizer_group half = {0.5, {0}};
    const struct optimizer_groups said = {.groups = &half, .group_count = 1, .is_relative = true};
    struct cluster cluster = {
        .workers = 1,
        .shard_count = 1,
        .mode = "ps-sync",
        .optimizer = OPTIMIZER_SGD,
        .schedule = {.kind = SCHEDULE_STEP, .base_rate = 0.4, .period_steps = 1, .gamma = 0.5}};
    cluster_open(&cluster);
    run_step(&cluster, 0, &said);
    run_step(&cluster, 1, &said);
    float value = fmaf(-0.2f, gradient_of(0, 0, 5), 5.0f / VALUES);
    assert_true(cluster.params[5] == fmaf(-0.1f, gradient_of(0, 1, 5), value));
    cluster_close(&cluster);
}

static struct message push_of(uint32_t rank, const struct optimizer_groups *said)
{
    return (struct message){.kind = MESSAGE_PUSH, .rank = rank, .groups = said};
}

/* Three workers and a shard, with the rate 0.1. */
static void open_three(struct cluster *ret_cluster)
{
    *ret_cluster = (struct cluster){.workers = 3,
                                    .shard_count = 1,
                                    .mode = "ps-sync",
                                    .optimizer = OPTIMIZER_SGD,
                                    .schedule = {.base_rate = 0.1, .start_rate = 0.1}};
    cluster_open(ret_cluster);
}

static void workers_that_differ_are_named_with_both_values(void **state)
{
    (void)state;
    const struct optimizer_group slow = {0.1, {0}}, fast = {0.3, {0}},
                                 near = {0.1 * (1 + 1e-9), {0}};
    const struct optimizer_groups first = {.groups = &slow, .group_count = 1};
    const struct optimizer_groups second = {.groups = &fast, .group_count = 1};
    const struct optimizer_groups rounded = {.groups = &near, .group_count = 1};
    struct cluster cluster;
    open_three(&cluster);
    assert_int_equal(give(&cluster, push_of(2, &first), 0), STATUS_OK);
    assert_int_equal(give(&cluster, push_of(0, &rounded), 0), STATUS_OK);
    assert_null(shard_dispute(cluster.shards[0]));
    assert_int_equal(give(&cluster, push_of(1, &second), 0), STATUS_MALFORMED);
    assert_int_equal(shard_fault(cluster.shards[0]), STATUS_MISMATCH);
    const struct shard_dispute *dispute = shard_dispute(cluster.shards[0]);
    assert_int_equal(dispute->rank, 1);
    assert_int_equal(dispute->other, 0); // whose values count, as rank 0's do in every order
    assert_string_equal(dispute->differs.name, "lr");
    assert_true(dispute->differs.value == 0.3);
    assert_true(fabs(dispute->differs.other - 0.1) < 1e-8);
    cluster_close(&cluster);
}

/* Who says nothing has the settings of the start: the same ones do not differ. */
static void silence_is_the_settings_of_the_start(void **state)
{
    (void)state;
    const struct optimizer_group same = {0.1, {0}}, other = {0.2, {0}};
    const struct optimizer_groups said = {.groups = &same, .group_count = 1};
    const struct optimizer_groups differs = {.groups = &other, .group_count = 1};
    struct cluster cluster;
    open_three(&cluster);
    assert_int_equal(give(&cluster, push_of(0, NULL), 0), STATUS_OK);
    assert_int_equal(give(&cluster, push_of(1, &said), 0), STATUS_OK);
    assert_int_equal(give(&cluster, push_of(2, &differs), 0), STATUS_MALFORMED);
    assert_int_equal(shard_fault(cluster.shards[0]), STATUS_MISMATCH);
    cluster_close(&cluster);
}

static void settings_that_cannot_be_are_dropped_and_change_nothing(void **state)
{
    (void)state;
    const struct optimizer_group bad[] = {
        {-0.1, rows[0].settings},
        {1e60, rows[0].settings},
        {0.1, {.beta1 = 1, .beta2 = 0.9, .epsilon = 1e-8}},
        {0.1, {.beta1 = 0.9, .beta2 = -1, .epsilon = 1e-8}},
        {0.1, {.beta1 = 0.9, .beta2 = 0.9, .epsilon = 0}},
        {0.1, {.beta1 = 0.9, .beta2 = 0.9, .epsilon = 1e-8, .weight_decay = -1}}};
    const uint64_t end = VALUES;
    const uint32_t member = 0;
    struct cluster cluster = {.workers = 1,
                              .shard_count = 1,
                              .mode = "ps-sync",
                              .optimizer = OPTIMIZER_ADAM,
                              .schedule = {.base_rate = 0.1, .start_rate = 0.1}};
    cluster_open(&cluster);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        const struct optimizer_groups said = {.groups = &bad[i], .group_count = 1};
        assert_int_equal(give(&cluster, push_of(0, &said), 0), STATUS_MALFORMED);
    }
    const struct optimizer_groups many = {.groups = rows, .group_count = GROUPS};
    assert_int_equal(give(&cluster, push_of(0, &many), 0), STATUS_MALFORMED);
    const struct optimizer_groups with_runs = {
        .groups = rows, .group_count = 1, .run_count = 1, .run_ends = &end, .run_groups = &member};
    assert_int_equal(give(&cluster, push_of(0, &with_runs), 0), STATUS_MALFORMED);
    assert_int_equal(shard_fault(cluster.shards[0]), STATUS_OK);
    run_step(&cluster, 0, NULL);
    assert_int_equal(shard_version(cluster.shards[0]), 1);
    cluster_close(&cluster);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_value_has_the_settings_of_its_group_wherever_borders_are),
        cmocka_unit_test(a_push_says_the_settings_of_its_own_update),
        cmocka_unit_test(relative_rates_follow_the_schedule),
        cmocka_unit_test(workers_that_differ_are_named_with_both_values),
        cmocka_unit_test(silence_is_the_settings_of_the_start),
        cmocka_unit_test(settings_that_cannot_be_are_dropped_and_change_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
