/* Tests of a shard with backup workers: updates do not wait for the slowest, and count each
 * gradient of theirs once. */
#include "common/base/random.h"
#include "tests/support/common/float_envelope.h"
#include "tests/support/ps-server/shard_cluster.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <string.h>

static const struct span whole[1] = {{0, 3}};

/* Answers that came, by worker. */
struct answers {
    unsigned counts[3];
    float values[3];
    uint64_t versions[3];
};

static void take(void *context, uint32_t rank, const struct message *message)
{
    struct answers *answers = context;
    answers->counts[rank]++;
    answers->values[rank] = message->values[0];
    answers->versions[rank] = message->params_version;
}

static void give(struct shard *shard, struct answers *answers, enum message_kind kind,
                 uint32_t rank, uint64_t step, float value)
{
    const float values[3] = {value, value, value};
    struct message message = {.kind = kind, .rank = rank, .step = step, .span = whole[0]};
    struct envelope envelope;
    assert_int_equal(float_envelope_make(values, 3, &envelope), STATUS_OK);
    message.values = kind == MESSAGE_PULL ? NULL : envelope.payload;
    assert_int_equal(shard_receive(shard, &message, &envelope, take, answers), STATUS_OK);
    envelope_release(&envelope);
}

/* Three workers, one of them a backup, and ten steps. */
static struct shard *open_shard(struct answers *answers)
{
    struct shard_config config = cluster_config("ps-sync", "free", 3);
    struct shard *shard;
    config.layout = (struct layout){.value_count = 3, .bucket_count = 1, .buckets = {{0, 3}}};
    config.backup = 1;
    config.marks.end = config.marks.period = 10;
    *answers = (struct answers){{0}, {0}, {0}};
    assert_int_equal(shard_create(&config, &shard), STATUS_OK);
    give(shard, answers, MESSAGE_SEED, 0, 0, 100);
    for (uint32_t rank = 0; rank < 3; rank++) {
        give(shard, answers, MESSAGE_PULL, rank, 0, 0);
        assert_int_equal(answers->counts[rank], 1);
    }
    return shard;
}

static void an_update_is_the_mean_of_those_who_were_first(void **state)
{
    (void)state;
    struct answers answers;
    struct shard *shard = open_shard(&answers);
    give(shard, &answers, MESSAGE_PULL, 2, 1, 0);
    give(shard, &answers, MESSAGE_PUSH, 2, 0, 4);
    assert_int_equal(shard_version(shard), 0);
    give(shard, &answers, MESSAGE_PULL, 0, 1, 0);
    give(shard, &answers, MESSAGE_PUSH, 0, 0, 1);
    assert_int_equal(shard_version(shard), 1);
    assert_int_equal(answers.counts[0], 2);
    assert_int_equal(answers.counts[2], 2);
    assert_true(answers.values[0] == 100 - 2.5f && answers.values[2] == 100 - 2.5f);
    shard_destroy(shard);
}

static void what_comes_late_is_dropped_and_its_worker_goes_on_with_what_is_now(void **state)
{
    (void)state;
    struct answers answers;
    struct shard *shard = open_shard(&answers);
    for (uint64_t step = 0; step < 3; step++) {
        for (uint32_t rank = 0; rank < 2; rank++) {
            give(shard, &answers, MESSAGE_PULL, rank, step + 1, 0);
            give(shard, &answers, MESSAGE_PUSH, rank, step, 1);
        }
    }
    assert_int_equal(shard_version(shard), 3);
    assert_int_equal(answers.counts[2], 1);
    give(shard, &answers, MESSAGE_PULL, 2, 1, 0);
    assert_int_equal(answers.counts[2], 1);
    give(shard, &answers, MESSAGE_PUSH, 2, 0, 1000);
    assert_int_equal(shard_late_count(shard), 1);
    assert_int_equal(answers.counts[2], 2);
    assert_true(answers.values[2] == 97);
    // Now it is as fast as the others: its next one counts.
    give(shard, &answers, MESSAGE_PUSH, 2, 1, 3);
    give(shard, &answers, MESSAGE_PUSH, 1, 3, 1);
    assert_int_equal(shard_version(shard), 4);
    assert_int_equal(shard_late_count(shard), 1);
    assert_int_equal(shard_staleness(shard)->total, 8);
    shard_destroy(shard);
}

static void who_has_read_a_version_elsewhere_waits_for_it(void **state)
{
    (void)state;
    struct answers answers;
    struct shard *shard = open_shard(&answers);
    const struct message newer = {
        .kind = MESSAGE_PULL, .rank = 2, .params_version = 1, .span = whole[0]};
    struct envelope envelope = {0};
    assert_int_equal(shard_receive(shard, &newer, &envelope, take, &answers), STATUS_OK);
    assert_int_equal(answers.counts[2], 1);
    for (uint32_t rank = 0; rank < 2; rank++) {
        give(shard, &answers, MESSAGE_PUSH, rank, 0, 1);
    }
    assert_int_equal(answers.counts[2], 2);
    assert_true(answers.values[2] == 99 && answers.versions[2] == 1);
    shard_destroy(shard);
}

/* The mean of ones is one, however many they are: parameters count the updates. */
static void check_version(const struct cluster *cluster, uint32_t rank, uint64_t step)
{
    const struct worker *worker = &cluster->workers[rank];
    uint64_t version = (uint64_t)-worker->params[0];
    (void)step;
    if (worker->activity == PULLS_MARK || worker->activity == PULLS_LAST) {
        uint64_t mark =
            worker->activity == PULLS_LAST ? cluster_mark_count(cluster) : worker->marks_closed + 1;
        assert_int_equal(version, marks_step(&cluster->config.marks, mark));
    } else {
        assert_true(version >= worker->read_version);
    }
}

static void any_interleaving_makes_every_update_once_and_nobody_hangs(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 4000; seed++) {
        struct random_sequence random = {.state = random_key(seed, RANDOM_SPLIT, 4, 0)};
        struct cluster cluster;
        uint32_t workers = 2 + (uint32_t)random_below(&random, CLUSTER_WORKERS_MAX - 1);
        struct shard_config config = cluster_config("ps-sync", "free", workers);
        config.shard_count = 1 + (uint32_t)random_below(&random, CLUSTER_SHARDS_MAX);
        config.backup = 1 + (uint32_t)random_below(&random, workers - 1);
        config.keeps_marks = seed % 2 == 0;
        config.marks.end = 1 + random_below(&random, 12);
        config.marks.period = config.keeps_marks ? 1 + random_below(&random, 4) : config.marks.end;
        cluster_open(&cluster, &config, seed);
        cluster.check = check_version;
        cluster_run(&cluster);
        for (uint32_t i = 0; i < config.shard_count; i++) {
            uint64_t used = shard_staleness(cluster.shards[i])->total;
            assert_int_equal(shard_version(cluster.shards[i]), config.marks.end);
            assert_true(used >= config.marks.end * (workers - config.backup));
            assert_int_equal(used + shard_late_count(cluster.shards[i]), cluster.whole_pushes[i]);
            assert_int_equal(shard_staleness(cluster.shards[i])->max, 0);
        }
        cluster_close(&cluster);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_update_is_the_mean_of_those_who_were_first),
        cmocka_unit_test(what_comes_late_is_dropped_and_its_worker_goes_on_with_what_is_now),
        cmocka_unit_test(who_has_read_a_version_elsewhere_waits_for_it),
        cmocka_unit_test(any_interleaving_makes_every_update_once_and_nobody_hangs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
