/* Workers that behave, and a random number. */
#include "tests/support/shard_cluster.h"

#include "common/random.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <string.h>

static const struct span buckets[CLUSTER_BUCKETS] = {{12, 11}, {2, 10}, {0, 2}};

/* A pull of every bucket, each before the push of the step that it follows, if there is one. */
static void add_messages(struct worker *worker, bool has_push, uint64_t epoch)
{
    for (uint32_t bucket = 0; bucket < CLUSTER_BUCKETS; bucket++) {
        for (unsigned is_push = 0; is_push < (has_push ? 2 : 1); is_push++) {
            assert_true(worker->count < CLUSTER_QUEUE_MAX);
            worker->queue[(worker->head + worker->count++) % CLUSTER_QUEUE_MAX] = (struct delivery){
                .kind = is_push != 0 ? MESSAGE_PUSH : MESSAGE_PULL,
                .step = worker->step + (has_push && is_push == 0),
                .epoch = epoch,
                .bucket = bucket,
            };
        }
    }
    worker->step += has_push;
}

uint64_t cluster_mark_count(const struct cluster *cluster)
{
    return marks_count(&cluster->config.marks);
}

uint64_t cluster_gradient_total(const struct shard_config *config)
{
    return config->workers * config->marks.end;
}

/* The next thing that a worker does, as in trainer.c. */
static void go_on(struct cluster *cluster, struct worker *worker)
{
    bool is_behind = worker->epochs_closed < worker->epochs_passed;
    bool may_look = worker->activity == STEPS || worker->activity == PULLS_NEXT;
    if (may_look && is_behind && cluster->config.keeps_epochs) {
        worker->activity = PULLS_EPOCH;
        add_messages(worker, false, worker->epochs_closed + 1);
    } else if (may_look && worker->epochs_passed == cluster_mark_count(cluster)) {
        worker->activity = PULLS_LAST;
        add_messages(worker, false, cluster_mark_count(cluster));
    } else {
        worker->activity = STEPS;
        add_messages(worker, true, 0);
    }
}

static void check_answer(const struct cluster *cluster, uint32_t rank, uint64_t step)
{
    const struct worker *worker = &cluster->workers[rank];
    uint64_t version = (uint64_t)-worker->params[0],
             slack = cluster->config.consistency.slack_steps;
    for (uint32_t i = 1; i < CLUSTER_VALUES; i++) {
        if (worker->params[i] != worker->params[0]) {
            fail_msg("seed %llu: torn read", (unsigned long long)cluster->seed);
        }
    }
    if (cluster->check != NULL) {
        cluster->check(cluster, rank, step);
    }
    if (cluster->has_groups || cluster->check != NULL) {
        return;
    }
    if (worker->activity == PULLS_EPOCH || worker->activity == PULLS_LAST) {
        uint64_t epoch = worker->activity == PULLS_LAST ? cluster_mark_count(cluster)
                                                        : worker->epochs_closed + 1;
        uint64_t expected = cluster->config.workers * marks_step(&cluster->config.marks, epoch);
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
    if (worker->params_count < CLUSTER_VALUES) {
        return;
    }
    worker->params_count = 0;
    bool is_epoch = worker->activity == PULLS_EPOCH || worker->activity == PULLS_LAST;
    worker->has_notice = !is_epoch && message->epoch > worker->epochs_closed;
    check_answer(cluster, rank, message->step);
    if (!is_epoch) {
        worker->read_version = (uint64_t)-worker->params[0];
        worker->epochs_passed = message->epoch;
        go_on(cluster, worker);
        return;
    }
    worker->epochs_closed++;
    if (worker->activity == PULLS_LAST || worker->epochs_closed == cluster_mark_count(cluster)) {
        worker->activity = DONE;
        return;
    }
    worker->activity = PULLS_NEXT;
    add_messages(worker, false, 0);
}

void cluster_deliver(struct cluster *cluster, uint32_t rank)
{
    struct worker *worker = &cluster->workers[rank];
    struct delivery delivery = worker->queue[worker->head];
    worker->head = (worker->head + 1) % CLUSTER_QUEUE_MAX;
    worker->count--;
    float values[CLUSTER_VALUES];
    for (uint32_t i = 0; i < CLUSTER_VALUES; i++) {
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
    bool is_whole = delivery.kind == MESSAGE_PUSH && delivery.bucket == CLUSTER_BUCKETS - 1;
    if (is_whole) {
        cluster->applied[rank]++;
        uint64_t staleness = cluster->whole_pushes - worker->read_version;
        // Only without epochs and orders is a push applied as soon as it is whole.
        if (cluster->whole_pushes++ < cluster_gradient_total(&cluster->config) &&
            !cluster->has_groups && cluster->check == NULL) {
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

struct shard_config cluster_config(const char *mode, const char *order, uint32_t workers)
{
    struct shard_config config = {
        .shard_count = 1,
        .workers = workers,
        .layout = {.value_count = CLUSTER_VALUES, .bucket_count = CLUSTER_BUCKETS},
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

void cluster_open(struct cluster *cluster, const struct shard_config *config, uint64_t seed)
{
    *cluster = (struct cluster){.seed = seed, .config = *config};
    assert_int_equal(shard_create(config, &cluster->shard), STATUS_OK);
    for (uint32_t bucket = 0; bucket < CLUSTER_BUCKETS; bucket++) {
        struct worker *first = &cluster->workers[0];
        first->queue[first->count++] = (struct delivery){.kind = MESSAGE_SEED, .bucket = bucket};
    }
    for (uint32_t i = 0; i < config->workers; i++) {
        cluster->workers[i].activity = PULLS_FIRST;
        add_messages(&cluster->workers[i], false, 0);
    }
}

void cluster_run(struct cluster *cluster)
{
    struct random_sequence random = {.state = cluster->seed};
    uint32_t favourite = (uint32_t)random_below(&random, cluster->config.workers);
    for (;;) {
        uint32_t ready[CLUSTER_WORKERS_MAX] = {0}, count = 0, done = 0;
        for (uint32_t i = 0; i < cluster->config.workers; i++) {
            done += cluster->workers[i].activity == DONE;
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
        cluster_deliver(cluster, rank);
    }
}
