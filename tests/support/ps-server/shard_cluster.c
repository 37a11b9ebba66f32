/* Workers that behave, and a random number. */
#include "tests/support/ps-server/shard_cluster.h"

#include "common/base/random.h"
#include "tests/support/common/choices.h"
#include "tests/support/common/float_envelope.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <string.h>

static const struct span buckets[CLUSTER_BUCKETS] = {{13, 10}, {3, 10}, {0, 3}};

static void add(struct deliveries *queue, const struct delivery *delivery)
{
    assert_true(queue->count < CLUSTER_QUEUE_MAX);
    queue->items[(queue->head + queue->count++) % CLUSTER_QUEUE_MAX] = *delivery;
}

/* Whose step a turn of a process is. */
static void name_turn(const struct worker *worker, uint64_t turn, struct delivery *delivery)
{
    delivery->rank = worker->ranks.first + (uint32_t)(turn % worker->ranks.count);
    delivery->step = turn / worker->ranks.count;
}

/* A pull of every bucket, each before the push of the turn that it follows, if there is one. */
static void add_messages(struct cluster *cluster, struct worker *worker, bool has_push,
                         uint64_t mark)
{
    for (uint32_t shard = 0; shard < cluster->config.shard_count; shard++) {
        struct delivery delivery = {.mark = mark};
        for (delivery.bucket = 0; delivery.bucket < CLUSTER_BUCKETS; delivery.bucket++) {
            delivery.kind = MESSAGE_PULL;
            name_turn(worker, worker->turn + has_push, &delivery);
            add(&worker->queues[shard], &delivery);
            if (has_push) {
                delivery.kind = MESSAGE_PUSH;
                name_turn(worker, worker->turn, &delivery);
                add(&worker->queues[shard], &delivery);
            }
        }
    }
    worker->turn += has_push;
}

static struct span part_of(const struct cluster *cluster, uint32_t bucket, uint32_t shard)
{
    return span_part(buckets[bucket], cluster->config.shard_count, shard);
}

/* Asks shards that are behind the newest again, as in exchange_ps.c. Whether there are any. */
static bool ask_again(struct cluster *cluster, struct worker *worker, const struct message *got)
{
    uint64_t newest = 0;
    for (uint32_t i = 0; i < cluster->config.shard_count; i++) {
        newest = worker->params_versions[i] > newest ? worker->params_versions[i] : newest;
    }
    for (uint32_t i = 0; i < cluster->config.shard_count; i++) {
        struct delivery pull = {
            .kind = MESSAGE_PULL, .rank = got->rank, .step = got->step, .params_version = newest};
        bool is_behind = worker->params_versions[i] < newest;
        for (pull.bucket = 0; is_behind && pull.bucket < CLUSTER_BUCKETS; pull.bucket++) {
            add(&worker->queues[i], &pull);
            worker->params_count -= (uint32_t)part_of(cluster, pull.bucket, i).count;
        }
    }
    return worker->params_count < CLUSTER_VALUES;
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
    bool is_behind = worker->marks_closed < worker->marks_passed;
    bool may_look = worker->activity == STEPS || worker->activity == PULLS_NEXT;
    if (may_look && is_behind && cluster->config.keeps_marks) {
        worker->activity = PULLS_MARK;
        add_messages(cluster, worker, false, worker->marks_closed + 1);
    } else if (may_look && worker->marks_passed == cluster_mark_count(cluster)) {
        worker->activity = PULLS_LAST;
        add_messages(cluster, worker, false, cluster_mark_count(cluster));
    } else {
        worker->activity = STEPS;
        add_messages(cluster, worker, true, 0);
    }
}

static const struct worker *worker_of(const struct cluster *cluster, uint32_t rank)
{
    const struct worker *worker = cluster->workers;
    while (!rank_block_has(worker->ranks, rank)) {
        worker++;
    }
    return worker;
}

static void check_answer(const struct cluster *cluster, uint32_t rank, uint64_t step)
{
    const struct worker *worker = worker_of(cluster, rank);
    uint64_t version = (uint64_t)-worker->params[0],
             slack = cluster->config.consistency.slack_steps;
    if (cluster->is_apart) {
        return;
    }
    for (uint32_t i = 1; i < CLUSTER_VALUES; i++) {
        if (worker->params[i] != worker->params[0]) {
            fail_msg("seed %llu: torn read", (unsigned long long)cluster->seed);
        }
    }
    if (cluster->check != NULL) {
        cluster->check(cluster, rank, step);
    }
    if (cluster->has_sums || cluster->check != NULL) {
        return;
    }
    if (worker->activity == PULLS_MARK || worker->activity == PULLS_LAST) {
        uint64_t mark =
            worker->activity == PULLS_LAST ? cluster_mark_count(cluster) : worker->marks_closed + 1;
        uint64_t expected = cluster->config.workers * marks_step(&cluster->config.marks, mark);
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
    struct worker *worker = &cluster->workers[worker_of(cluster, rank) - cluster->workers];
    memcpy(worker->params + message->span.offset, message->values,
           message->span.count * sizeof(float));
    worker->params_count += (uint32_t)message->span.count;
    worker->params_versions[cluster->shard_now] = message->params_version;
    if (worker->params_count < CLUSTER_VALUES || ask_again(cluster, worker, message)) {
        return;
    }
    worker->params_count = 0;
    bool is_mark = worker->activity == PULLS_MARK || worker->activity == PULLS_LAST;
    worker->has_notice = !is_mark && message->mark > worker->marks_closed;
    check_answer(cluster, rank, message->step);
    if (!is_mark) {
        worker->read_version = (uint64_t)-worker->params[0];
        worker->marks_passed = message->mark;
        go_on(cluster, worker);
        return;
    }
    worker->marks_closed++;
    if (worker->activity == PULLS_LAST || worker->marks_closed == cluster_mark_count(cluster)) {
        worker->activity = DONE;
        return;
    }
    worker->activity = PULLS_NEXT;
    add_messages(cluster, worker, false, 0);
}

void cluster_deliver(struct cluster *cluster, uint32_t index, uint32_t shard)
{
    struct worker *worker = &cluster->workers[index];
    struct deliveries *queue = &worker->queues[shard];
    struct delivery delivery = queue->items[queue->head];
    queue->head = (queue->head + 1) % CLUSTER_QUEUE_MAX;
    queue->count--;
    float values[CLUSTER_VALUES];
    for (uint32_t i = 0; i < CLUSTER_VALUES; i++) {
        values[i] = delivery.kind == MESSAGE_SEED ? 0 : 1;
    }
    struct message message = {
        .kind = delivery.kind,
        .rank = delivery.rank,
        .step = delivery.step,
        .mark = delivery.mark,
        .params_version = delivery.params_version,
        .bucket = delivery.bucket,
        .span = part_of(cluster, delivery.bucket, shard),
    };
    struct envelope envelope;
    assert_int_equal(float_envelope_make(values, message.span.count, &envelope), STATUS_OK);
    message.values = delivery.kind == MESSAGE_PULL ? NULL : envelope.payload;
    bool is_whole = delivery.kind == MESSAGE_PUSH && delivery.bucket == CLUSTER_BUCKETS - 1;
    if (is_whole) {
        cluster->applied[delivery.rank]++;
        uint64_t staleness = cluster->whole_pushes[shard] - worker->read_version;
        // Only without marks and orders is a push applied as soon as it is whole.
        if (cluster->whole_pushes[shard]++ < cluster_gradient_total(&cluster->config) &&
            !cluster->has_sums && !cluster->is_apart && cluster->check == NULL) {
            cluster->staleness_counts[staleness]++;
        }
    }
    cluster->shard_now = shard;
    enum status status =
        shard_receive(cluster->shards[shard], &message, &envelope, take_params, cluster);
    envelope_release(&envelope);
    if (status != STATUS_OK) {
        fail_msg("seed %llu: a %s of rank %u, step %llu, is refused",
                 (unsigned long long)cluster->seed, message_kind_name(message.kind), message.rank,
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
        .optimizer = OPTIMIZER_SGD,
        .seed = 5,
    };
    char why[256];
    memcpy(config.layout.buckets, buckets, sizeof(buckets));
    assert_int_equal(consistency_find(mode_of(mode), &config.consistency), STATUS_OK);
    assert_int_equal(order_parse(order, &config.order, why, sizeof(why)), STATUS_OK);
    return config;
}

static void open_workers(struct cluster *cluster)
{
    const struct shard_config *config = &cluster->config;
    cluster->worker_count = config->processes > 0 ? config->processes : config->workers;
    const struct carriers carriers = {config->workers, cluster->worker_count};
    for (uint32_t i = 0; i < cluster->worker_count; i++) {
        cluster->workers[i].ranks = carriers_block(carriers, i);
        cluster->workers[i].activity = PULLS_FIRST;
        add_messages(cluster, &cluster->workers[i], false, 0);
    }
}

void cluster_open(struct cluster *cluster, const struct shard_config *config, uint64_t seed)
{
    *cluster = (struct cluster){.seed = seed, .config = *config};
    for (uint32_t shard = 0; shard < config->shard_count; shard++) {
        struct delivery seed_of_part = {.kind = MESSAGE_SEED};
        cluster->config.index = shard;
        assert_int_equal(shard_create(&cluster->config, &cluster->shards[shard]), STATUS_OK);
        for (; seed_of_part.bucket < CLUSTER_BUCKETS; seed_of_part.bucket++) {
            add(&cluster->workers[0].queues[shard], &seed_of_part);
        }
    }
    open_workers(cluster);
}

void cluster_open_in_place(struct cluster *cluster, const struct shard_config *config,
                           uint64_t seed, struct kept_shard *kept)
{
    *cluster = (struct cluster){.seed = seed, .config = *config, .is_apart = true};
    cluster->config.is_restored = true;
    for (uint32_t shard = 0; shard < config->shard_count; shard++) {
        cluster->config.index = shard;
        assert_int_equal(kept_shard_ahead(&kept[shard], config->marks.first, config->workers,
                                          &cluster->config.gradients_ahead),
                         STATUS_OK);
        assert_int_equal(shard_create(&cluster->config, &cluster->shards[shard]), STATUS_OK);
        assert_int_equal(kept_shard_restore(&kept[shard], cluster->shards[shard]), STATUS_OK);
    }
    open_workers(cluster);
}

void cluster_close(struct cluster *cluster)
{
    for (uint32_t shard = 0; shard < cluster->config.shard_count; shard++) {
        shard_destroy(cluster->shards[shard]);
    }
}

/* A message in flight from some of the workers, at random. False if there is none. */
static bool pick(const struct cluster *cluster, struct random_sequence *random, struct span workers,
                 uint32_t *ret_worker, uint32_t *ret_shard)
{
    uint32_t count = 0;
    for (uint64_t i = workers.offset; i < workers.offset + workers.count; i++) {
        for (uint32_t shard = 0; shard < cluster->config.shard_count; shard++) {
            bool is_it =
                cluster->workers[i].queues[shard].count > 0 && random_below(random, ++count) == 0;
            *ret_worker = is_it ? (uint32_t)i : *ret_worker;
            *ret_shard = is_it ? shard : *ret_shard;
        }
    }
    return count > 0;
}

static bool everybody_is_done(const struct cluster *cluster)
{
    uint32_t done = 0;
    for (uint32_t i = 0; i < cluster->worker_count; i++) {
        done += cluster->workers[i].activity == DONE;
    }
    return done == cluster->worker_count;
}

void cluster_run(struct cluster *cluster)
{
    cluster_run_for(cluster, UINT64_MAX);
}

void cluster_run_for(struct cluster *cluster, uint64_t count)
{
    struct random_sequence random = {.state = cluster->seed};
    const struct span all = {0, cluster->worker_count},
                      favourite = {random_below(&random, cluster->worker_count), 1};
    for (uint64_t i = 0; i < count && !everybody_is_done(cluster); i++) {
        // Workers of very different speed: one of them is asked first, half of the time.
        uint32_t worker = 0, shard = 0;
        bool is_picked =
            (random_below(&random, 2) == 0 && pick(cluster, &random, favourite, &worker, &shard)) ||
            pick(cluster, &random, all, &worker, &shard);
        if (!is_picked) {
            fail_msg("seed %llu: everybody waits", (unsigned long long)cluster->seed);
        }
        cluster_deliver(cluster, worker, shard);
    }
}
