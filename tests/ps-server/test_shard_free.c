/* Properties of a shard where every push is an update, over thousands of interleavings.
 *
 * A cluster in memory: workers behave as the trainer does, and a random number says whose next
 * message is delivered. Every gradient is 1 everywhere and the optimizer takes it as it is, so a
 * parameter says how many updates it has had: -version, in every element of one answer. */
#include "common/random.h"
#include "ps-server/shard.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define VALUES      23
#define BUCKETS     3
#define WORKERS_MAX 6
#define QUEUE_MAX   32

static const struct span buckets[BUCKETS] = {{12, 11}, {2, 10}, {0, 2}};

struct delivery {
    enum message_kind kind;
    uint64_t step, epoch;
    uint32_t bucket;
};

enum phase { PULLS_FIRST, STEPS, PULLS_EPOCH, PULLS_NEXT, PULLS_LAST, DONE };

struct worker {
    enum phase phase;
    struct delivery queue[QUEUE_MAX]; // in flight to the shard, in order
    uint32_t head, count;
    uint64_t step, epochs_closed, epochs_passed;
    float params[VALUES];
    uint32_t params_count; // of the answer that is coming
    uint64_t read_version; // of the last answer to go on with
    bool has_notice;       // that answer was given beyond the bound, to say that an epoch has ended
};

struct cluster {
    uint64_t seed;
    struct shard_config config;
    struct shard *shard;
    struct worker workers[WORKERS_MAX];
    uint64_t applied[WORKERS_MAX]; // steps of each worker, as far as they were pushed whole
    uint64_t staleness_counts[STALENESS_BINS]; // what the histogram must be
    uint64_t whole_pushes;
    bool has_groups; // versions are not gradients: nothing is expected of them
};

/* A pull of every bucket, each before the push of the step that it follows, if there is one. */
static void add_messages(struct worker *worker, bool has_push, uint64_t epoch)
{
    for (uint32_t bucket = 0; bucket < BUCKETS; bucket++) {
        for (unsigned is_push = 0; is_push < (has_push ? 2 : 1); is_push++) {
            assert_true(worker->count < QUEUE_MAX);
            worker->queue[(worker->head + worker->count++) % QUEUE_MAX] = (struct delivery){
                .kind = is_push != 0 ? MESSAGE_PUSH : MESSAGE_PULL,
                .step = worker->step + (has_push && is_push == 0),
                .epoch = epoch,
                .bucket = bucket,
            };
        }
    }
    worker->step += has_push;
}

static uint64_t epoch_count(const struct cluster *cluster)
{
    uint64_t total = cluster->config.gradient_total, each = cluster->config.epoch_gradients;
    return (total + each - 1) / each;
}

/* The next thing that a worker does, as in trainer.c. */
static void go_on(struct cluster *cluster, struct worker *worker)
{
    bool is_behind = worker->epochs_closed < worker->epochs_passed;
    bool may_look = worker->phase == STEPS || worker->phase == PULLS_NEXT;
    if (may_look && is_behind && cluster->config.keeps_epochs) {
        worker->phase = PULLS_EPOCH;
        add_messages(worker, false, worker->epochs_closed + 1);
    } else if (may_look && worker->epochs_passed == epoch_count(cluster)) {
        worker->phase = PULLS_LAST;
        add_messages(worker, false, epoch_count(cluster));
    } else {
        worker->phase = STEPS;
        add_messages(worker, true, 0);
    }
}

static void check_answer(const struct cluster *cluster, uint32_t rank, uint64_t step)
{
    const struct worker *worker = &cluster->workers[rank];
    uint64_t version = (uint64_t)-worker->params[0],
             slack = cluster->config.consistency.slack_steps;
    for (uint32_t i = 1; i < VALUES; i++) {
        if (worker->params[i] != worker->params[0]) {
            fail_msg("seed %llu: torn read", (unsigned long long)cluster->seed);
        }
    }
    if (cluster->has_groups) {
        return;
    }
    if (worker->phase == PULLS_EPOCH || worker->phase == PULLS_LAST) {
        uint64_t epoch =
            worker->phase == PULLS_LAST ? epoch_count(cluster) : worker->epochs_closed + 1;
        uint64_t expected = epoch * cluster->config.epoch_gradients;
        expected =
            expected < cluster->config.gradient_total ? expected : cluster->config.gradient_total;
        assert_int_equal(version, expected);
        return;
    }
    bool is_bound = !worker->has_notice && cluster->config.order.kind == ORDER_FREE;
    for (uint32_t i = 0; is_bound && i < cluster->config.workers; i++) {
        if (step > slack && cluster->applied[i] < step - slack) {
            fail_msg("seed %llu: rank %u reads for step %llu while rank %u is at %llu",
                     (unsigned long long)cluster->seed, rank, (unsigned long long)step, i,
                     (unsigned long long)cluster->applied[i]);
        }
    }
}

static void take_params(void *context, uint32_t rank, const struct message *message)
{
    struct cluster *cluster = context;
    struct worker *worker = &cluster->workers[rank];
    memcpy(worker->params + message->span.offset, message->values,
           message->span.count * sizeof(float));
    worker->params_count += (uint32_t)message->span.count;
    if (worker->params_count < VALUES) {
        return;
    }
    worker->params_count = 0;
    bool is_epoch = worker->phase == PULLS_EPOCH || worker->phase == PULLS_LAST;
    worker->has_notice = !is_epoch && message->epoch > worker->epochs_closed;
    check_answer(cluster, rank, message->step);
    if (!is_epoch) {
        worker->read_version = (uint64_t)-worker->params[0];
        worker->epochs_passed = message->epoch;
        go_on(cluster, worker);
        return;
    }
    worker->epochs_closed++;
    if (worker->phase == PULLS_LAST || worker->epochs_closed == epoch_count(cluster)) {
        worker->phase = DONE;
        return;
    }
    worker->phase = PULLS_NEXT;
    add_messages(worker, false, 0);
}

static void deliver(struct cluster *cluster, uint32_t rank)
{
    struct worker *worker = &cluster->workers[rank];
    struct delivery delivery = worker->queue[worker->head];
    worker->head = (worker->head + 1) % QUEUE_MAX;
    worker->count--;
    float values[VALUES];
    for (uint32_t i = 0; i < VALUES; i++) {
        values[i] = delivery.kind == MESSAGE_SEED ? 0 : 1;
    }
    struct message message = {
        .kind = delivery.kind,
        .rank = rank,
        .step = delivery.step,
        .epoch = delivery.epoch,
        .bucket = delivery.bucket,
        .span = buckets[delivery.bucket],
    };
    struct envelope envelope;
    assert_int_equal(envelope_copy_floats(values, message.span.count, &envelope), STATUS_OK);
    message.values = delivery.kind == MESSAGE_PULL ? NULL : envelope.payload;
    bool is_whole = delivery.kind == MESSAGE_PUSH && delivery.bucket == BUCKETS - 1;
    if (is_whole) {
        cluster->applied[rank]++;
        uint64_t staleness = cluster->whole_pushes - worker->read_version;
        // Only without epochs and orders is a push applied as soon as it is whole.
        if (cluster->whole_pushes++ < cluster->config.gradient_total && !cluster->has_groups) {
            cluster->staleness_counts[staleness]++;
        }
    }
    enum status status = shard_receive(cluster->shard, &message, &envelope, take_params, cluster);
    envelope_release(&envelope);
    if (status != STATUS_OK) {
        fail_msg("seed %llu: a %s of rank %u, step %llu, is refused",
                 (unsigned long long)cluster->seed, message_kind_name(message.kind), rank,
                 (unsigned long long)message.step);
    }
}

static struct shard_config config_of(const char *mode, const char *order, uint32_t workers)
{
    struct shard_config config = {
        .shard_count = 1,
        .workers = workers,
        .layout = {.value_count = VALUES, .bucket_count = BUCKETS},
        .schedule = {.base_rate = 1, .start_rate = 1},
        .optimizer = "sgd",
        .seed = 5,
    };
    char why[256];
    memcpy(config.layout.buckets, buckets, sizeof(buckets));
    assert_int_equal(consistency_find(mode, &config.consistency), STATUS_OK);
    assert_int_equal(order_parse(order, &config.order, why, sizeof(why)), STATUS_OK);
    return config;
}

static void cluster_open(struct cluster *cluster, const struct shard_config *config, uint64_t seed)
{
    *cluster = (struct cluster){.seed = seed, .config = *config};
    assert_int_equal(shard_create(config, &cluster->shard), STATUS_OK);
    for (uint32_t bucket = 0; bucket < BUCKETS; bucket++) {
        struct worker *first = &cluster->workers[0];
        first->queue[first->count++] = (struct delivery){.kind = MESSAGE_SEED, .bucket = bucket};
    }
    for (uint32_t i = 0; i < config->workers; i++) {
        cluster->workers[i].phase = PULLS_FIRST;
        add_messages(&cluster->workers[i], false, 0);
    }
}

/* Delivers until everybody is done. Fails if nothing is in flight before. */
static void cluster_run(struct cluster *cluster)
{
    struct random_sequence random = {.state = cluster->seed};
    uint32_t favourite = (uint32_t)random_below(&random, cluster->config.workers);
    for (;;) {
        uint32_t ready[WORKERS_MAX] = {0}, count = 0, done = 0;
        for (uint32_t i = 0; i < cluster->config.workers; i++) {
            done += cluster->workers[i].phase == DONE;
            if (cluster->workers[i].count > 0) {
                ready[count++] = i;
            }
        }
        if (done == cluster->config.workers) {
            return;
        }
        if (count == 0) {
            fail_msg("seed %llu: everybody waits", (unsigned long long)cluster->seed);
        }
        // Workers of very different speed: one of them is asked first, half of the time.
        uint32_t rank = ready[random_below(&random, count)];
        if (cluster->workers[favourite].count > 0 && random_below(&random, 2) == 0) {
            rank = favourite;
        }
        deliver(cluster, rank);
    }
}

/* Every update was made once: the parameters say so, and the histogram. */
static void check_end(const struct cluster *cluster)
{
    uint64_t total = cluster->config.gradient_total;
    struct span span;
    assert_int_equal(shard_version(cluster->shard), total);
    assert_true(shard_params(cluster->shard, 0, &span)[0] == -(float)total);
    assert_int_equal(shard_staleness(cluster->shard)->total, total);
    assert_int_equal(total + shard_late_count(cluster->shard), cluster->whole_pushes);
}

static void any_interleaving_loses_no_push_and_tears_no_read(void **state)
{
    (void)state;
    static const char *const modes[] = {"ps-async", "ps-ssp:0", "ps-ssp:1", "ps-ssp:3"};
    for (uint64_t seed = 0; seed < 4000; seed++) {
        struct random_sequence random = {.state = random_key(seed, RANDOM_SPLIT, 0, 0)};
        struct cluster cluster;
        uint32_t workers = 1 + (uint32_t)random_below(&random, WORKERS_MAX);
        struct shard_config config = config_of(modes[seed % 4], "free", workers);
        config.gradient_total = (uint64_t)workers * (1 + random_below(&random, 12));
        config.epoch_gradients = config.gradient_total;
        cluster_open(&cluster, &config, seed);
        cluster_run(&cluster);
        check_end(&cluster);
        assert_memory_equal(shard_staleness(cluster.shard)->counts, cluster.staleness_counts,
                            sizeof(cluster.staleness_counts));
        shard_destroy(cluster.shard);
    }
}

/* The bound is kept in check_answer; here: who is within it is answered at once. */
static void nobody_waits_within_the_bound(void **state)
{
    (void)state;
    for (uint64_t slack = 0; slack < 4; slack++) {
        char mode[16];
        snprintf(mode, sizeof(mode), "ps-ssp:%llu", (unsigned long long)slack);
        struct shard_config config = config_of(mode, "free", 2);
        config.gradient_total = config.epoch_gradients = 100;
        struct cluster cluster;
        cluster_open(&cluster, &config, slack);
        for (uint32_t i = 0; i < BUCKETS; i++) {
            deliver(&cluster, 0); // the seeds
        }
        // Rank 1 never pushes: rank 0 gets so far ahead as it may, and no farther.
        while (cluster.workers[0].count > 0) {
            deliver(&cluster, 0);
        }
        assert_int_equal(cluster.applied[0], slack + 1);
        shard_destroy(cluster.shard);
    }
}

static void epochs_are_kept_for_every_worker_and_nobody_hangs(void **state)
{
    (void)state;
    static const char *const modes[] = {"ps-async", "ps-ssp:0", "ps-ssp:2"};
    static const char *const orders[] = {"free", "seeded:uniform:0..5", "seeded:round-robin"};
    for (uint64_t seed = 0; seed < 3000; seed++) {
        struct random_sequence random = {.state = random_key(seed, RANDOM_SPLIT, 1, 0)};
        struct cluster cluster;
        uint32_t workers = 1 + (uint32_t)random_below(&random, WORKERS_MAX);
        struct shard_config config = config_of(modes[seed % 3], orders[seed / 3 % 3], workers);
        config.keeps_epochs = true;
        config.gradient_total = (uint64_t)workers * (1 + random_below(&random, 12));
        config.epoch_gradients = (uint64_t)workers * (1 + random_below(&random, 4));
        cluster_open(&cluster, &config, seed);
        cluster_run(&cluster);
        check_end(&cluster);
        shard_destroy(cluster.shard);
    }
}

static void a_seeded_order_has_the_staleness_that_was_drawn(void **state)
{
    (void)state;
    static const char *const orders[] = {"seeded:constant:0", "seeded:constant:7",
                                         "seeded:uniform:1..6", "seeded:geometric:0.3",
                                         "seeded:round-robin"};
    for (uint64_t seed = 0; seed < 1000; seed++) {
        struct cluster cluster;
        struct random_sequence random = {.state = random_key(seed, RANDOM_SPLIT, 2, 0)};
        uint32_t workers = 1 + (uint32_t)random_below(&random, WORKERS_MAX);
        struct shard_config config = config_of("ps-async", orders[seed % 5], workers);
        config.gradient_total = (uint64_t)workers * 12;
        config.epoch_gradients = (uint64_t)workers * 5;
        config.keeps_epochs = seed % 2 == 0;
        uint64_t expected[STALENESS_BINS] = {0};
        for (uint64_t t = 1; t <= config.gradient_total; t++) {
            expected[t - 1 - order_version(&config.order, config.seed, workers, t)]++;
        }
        cluster_open(&cluster, &config, seed);
        cluster_run(&cluster);
        check_end(&cluster);
        assert_int_equal(shard_late_count(cluster.shard), 0);
        assert_memory_equal(shard_staleness(cluster.shard)->counts, expected, sizeof(expected));
        shard_destroy(cluster.shard);
    }
}

/* With c gradients an update, an update moves parameters by their mean: 1 again. */
static void an_update_takes_so_many_gradients_and_the_last_one_what_is_left(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 500; seed++) {
        struct random_sequence random = {.state = random_key(seed, RANDOM_SPLIT, 3, 0)};
        struct cluster cluster;
        uint32_t workers = 1 + (uint32_t)random_below(&random, WORKERS_MAX);
        uint32_t each = 1 + (uint32_t)random_below(&random, workers);
        struct shard_config config = config_of("ps-async", "free", workers);
        config.gradients_per_update = each;
        config.gradient_total = (uint64_t)workers * (1 + random_below(&random, 12));
        config.epoch_gradients = config.gradient_total;
        cluster_open(&cluster, &config, seed);
        cluster.has_groups = true;
        cluster_run(&cluster);
        uint64_t updates = (config.gradient_total + each - 1) / each;
        assert_int_equal(shard_version(cluster.shard), updates);
        assert_int_equal(shard_staleness(cluster.shard)->total, config.gradient_total);
        shard_destroy(cluster.shard);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_interleaving_loses_no_push_and_tears_no_read),
        cmocka_unit_test(nobody_waits_within_the_bound),
        cmocka_unit_test(epochs_are_kept_for_every_worker_and_nobody_hangs),
        cmocka_unit_test(an_update_takes_so_many_gradients_and_the_last_one_what_is_left),
        cmocka_unit_test(a_seeded_order_has_the_staleness_that_was_drawn),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
