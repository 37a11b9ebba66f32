/* Modes with servers: pushes to shards, and their replies. A worker's window and the order of its
 * pushes are those of exchange_ps.c, what a shard does with a push and whom it answers when is as
 * in policy_sync.c, policy_races.c, policy_backup.c and shard_on_push.c.
 *
 * Within a host a push is read where it is, and parameters are copied. Codes: a push is decoded as
 * it comes, and what ps-sync answers is encoded once for all workers (answer_encoder.c). */
#include "deploy/predict/course.h"
#include "deploy/predict/exchange/servers.h"
#include "deploy/predict/exchange/values.h"

#include <math.h>
#include <stdlib.h>

#define WINDOW_BYTES 1048576.0

enum { PACKET_PUSH, PACKET_TAKEN, PACKET_REPLY, PACKET_PULL, PACKET_PULL_AHEAD };

static struct pair *pair_of(struct course *course, uint32_t worker, uint32_t shard)
{
    return &((struct servers *)course->exchange)->pairs[(size_t)worker * course->shards + shard];
}

static struct span part_of(const struct course *course, uint32_t bucket, uint32_t shard)
{
    return span_part(course->layout.buckets[bucket], course->parts, shard);
}

/* Servers that one of them stands for. */
static double servers_each(const struct course *course)
{
    return (double)course->parts / course->shards;
}

static void push_on(struct course *course, uint32_t worker, uint32_t shard)
{
    const bool *is_paced = course->network->pacing.is_paced;
    struct pair *pair = pair_of(course, worker, shard);
    uint32_t server = course->job->workers + shard;
    while (pair->waiting_count > 0 && pair->travelling <= pair->window) {
        uint32_t bucket = course->layout.bucket_count;
        do {
            bucket--;
        } while (!pair->waits[bucket]);
        uint64_t floats = part_of(course, bucket, shard).count;
        pair->waits[bucket] = false;
        pair->waiting_count--;
        pair->travelling += values_bytes(floats);
        engine_occupy(course->engine, worker,
                      servers_each(course) * values_encode_s(course, (double)floats));
        const struct packet push = {.from = worker,
                                    .to = server,
                                    .bytes = values_encoded_bytes(course, floats),
                                    .is_lent = course_lends(course, worker, server),
                                    .is_paced = is_paced[NETWORK_WAY_PUSHES],
                                    .kind = PACKET_PUSH,
                                    .bucket = bucket,
                                    .step = course->clocks.steps[worker]};
        engine_send(course->engine, &push);
        if (engine_shares_cores(course->engine, worker)) { // a pull does nothing but take its time
            struct packet pull = push;
            pull.kind = PACKET_PULL_AHEAD;
            engine_send_small(course->engine, &pull);
        }
    }
}

static void servers_ready(struct course *course, uint32_t worker, uint32_t bucket)
{
    for (uint32_t shard = 0; shard < course->shards; shard++) {
        if (part_of(course, bucket, shard).count > 0) {
            struct pair *pair = pair_of(course, worker, shard);
            pair->waits[bucket] = true;
            pair->waiting_count++;
            push_on(course, worker, shard);
        }
    }
}

/* Whether each part has an update of its own, from all gradients. Then answers are in codes: what
 * has changed since the last one, which all workers know. */
static bool is_in_step(const struct course *course)
{
    const struct servers *servers = course->exchange;
    return servers->consistency.update != UPDATE_ON_PUSH && !course_has_backup(course);
}

static void reply(struct course *course, uint32_t shard, uint32_t worker, uint32_t bucket)
{
    uint64_t floats = part_of(course, bucket, shard).count;
    const struct packet packet = {
        .from = course->job->workers + shard,
        .to = worker,
        .bytes = is_in_step(course) ? values_encoded_bytes(course, floats) : values_bytes(floats),
        .is_copied = course_lends(course, course->job->workers + shard, worker),
        .is_paced = course->network->pacing.is_paced[NETWORK_WAY_ANSWERS],
        .kind = PACKET_REPLY,
        .bucket = bucket,
        .step = pair_of(course, worker, shard)->read_version};
    engine_send(course->engine, &packet);
}

/* With local SGD the mean change is added. */
static double update_s(const struct course *course, uint64_t floats)
{
    if (course->round_steps > 1) {
        return values_sum_s(course, (double)floats);
    }
    return costs_server_optimizer_s(course->costs) * (double)floats /
           (double)course->layout.value_count;
}

/* ps-sync: an update of a bucket from the gradients of all. */
static void take_for_all(struct course *course, uint32_t shard, uint32_t bucket)
{
    struct servers *servers = course->exchange;
    uint32_t *count = &servers->counts[(size_t)shard * course->layout.bucket_count + bucket];
    uint64_t floats = part_of(course, bucket, shard).count;
    if (++*count == course->job->workers) {
        *count = 0;
        // What the workers will have is decoded, too.
        engine_occupy(course->engine, course->job->workers + shard,
                      update_s(course, floats) + values_encode_s(course, (double)floats) +
                          values_decode_s(course, (double)floats));
        for (uint32_t w = 0; w < course->job->workers; w++) {
            reply(course, shard, w, bucket);
        }
    }
}

static bool may_read(const struct course *course, const struct server *server,
                     const struct pair *pair, uint32_t worker)
{
    const struct servers *servers = course->exchange;
    return course_has_backup(course)
               ? !pair->is_held && server->version >= pair->wanted_version
               : consistency_may_read(&servers->consistency, server->clocks.slowest,
                                      server->clocks.steps[worker]);
}

/* Answers a worker that waits with all buckets, if it may read. */
static void answer(struct course *course, uint32_t shard, uint32_t worker)
{
    struct servers *servers = course->exchange;
    const struct server *server = &servers->servers[shard];
    struct pair *pair = pair_of(course, worker, shard);
    if (!pair->is_pulled || !may_read(course, server, pair, worker)) {
        return;
    }
    pair->is_pulled = false;
    pair->read_version = server->version;
    for (uint32_t b = 0; b < course->layout.bucket_count; b++) {
        if (part_of(course, b, shard).count > 0) {
            reply(course, shard, worker, b);
        }
    }
}

/* Of a worker that stands for several: each of the others has pushed one more gradient meanwhile.
 */
static uint64_t staleness_of(const struct course *course, uint64_t updates)
{
    double each = course->sample.workers_each;
    return (uint64_t)llround((double)updates * each +
                             (each - 1) / course->job->gradients_per_update);
}

/* ps-ssp, ps-async: a gradient that is whole is applied, alone or as one of several of an update.
 */
static void take_alone(struct course *course, uint32_t shard, uint32_t worker)
{
    struct servers *servers = course->exchange;
    struct server *server = &servers->servers[shard];
    struct pair *pair = pair_of(course, worker, shard);
    if (++pair->taken_count < server->part_count) {
        return;
    }
    pair->taken_count = 0;
    pair->is_pulled = true;
    staleness_add(&course->staleness, staleness_of(course, server->version - pair->read_version));
    if (++server->summed == course->job->gradients_per_update) {
        server->summed = 0;
        server->version++;
    }
    if (!clocks_advance(&server->clocks, worker)) {
        answer(course, shard, worker);
        return;
    }
    for (uint32_t w = 0; w < course->job->workers; w++) {
        answer(course, shard, w);
    }
}

/* Gradients that the next update has to have. */
static uint32_t wanted_gradients(const struct course *course)
{
    return course->job->workers - course->job->backup;
}

/* Whether a push makes a gradient whole with which there are enough of this version. */
static bool completes_update(struct course *course, uint32_t shard, uint32_t worker)
{
    const struct server *server = &((struct servers *)course->exchange)->servers[shard];
    const struct pair *pair = pair_of(course, worker, shard);
    return pair->taken_count + 1 == server->part_count && pair->read_version == server->version &&
           server->summed + 1 == wanted_gradients(course);
}

/* --backup: the first gradients of a version make the update. One of an older version is dropped.
 */
static void take_first(struct course *course, uint32_t shard, uint32_t worker)
{
    struct servers *servers = course->exchange;
    struct server *server = &servers->servers[shard];
    struct pair *pair = pair_of(course, worker, shard);
    bool is_update = completes_update(course, shard, worker);
    if (++pair->taken_count < server->part_count) {
        return;
    }
    pair->taken_count = 0;
    pair->is_pulled = true;
    pair->is_held = pair->read_version == server->version;
    pair->wanted_version = 0;
    server->summed += pair->is_held;
    course->late += !pair->is_held;
    if (!is_update) {
        answer(course, shard, worker);
        return;
    }
    server->summed = 0;
    server->version++;
    course->updates++;
    for (uint32_t w = 0; w < course->job->workers; w++) {
        pair_of(course, w, shard)->is_held = false;
        answer(course, shard, w);
    }
}

/* Tells workers that pushes were taken, behind the answers to these. */
static void credit(struct course *course, const struct packet *push, struct server *server)
{
    struct packet taken = {.from = push->to,
                           .to = push->from,
                           .kind = PACKET_TAKEN,
                           .bucket = push->bucket,
                           .is_in_turn = true};
    if (!is_in_step(course)) {
        engine_send_small(course->engine, &taken);
        return;
    }
    credits_seen_add(&server->credits, push->from, push->bucket, server->part_bytes[push->bucket]);
    while (credits_seen_take(&server->credits, server->part_bytes, &taken.to, &taken.bucket)) {
        engine_send_small(course->engine, &taken);
    }
}

static void take_push(struct course *course, const struct packet *push)
{
    struct servers *servers = course->exchange;
    uint32_t shard = push->to - course->job->workers;
    if (servers->consistency.update == UPDATE_ON_PUSH) {
        take_alone(course, shard, push->from);
    } else if (course_has_backup(course)) {
        take_first(course, shard, push->from);
    } else {
        take_for_all(course, shard, push->bucket);
    }
    credit(course, push, &servers->servers[shard]);
}

/* What a part of a bucket stands for: where one server stands for all, for the whole. */
static uint64_t floats_for(const struct course *course, uint32_t bucket, uint32_t shard)
{
    return course->shards < course->parts ? course->layout.buckets[bucket].count
                                          : part_of(course, bucket, shard).count;
}

/* --backup: asks shards that are behind the newest one again. Whether there is one. */
static bool asks_again(struct course *course, uint32_t worker)
{
    struct servers *servers = course->exchange;
    uint64_t newest = 0;
    servers->awaited[worker] = 0;
    for (uint32_t k = 0; k < course->shards; k++) {
        uint64_t version = pair_of(course, worker, k)->seen_version;
        newest = version > newest ? version : newest;
    }
    for (uint32_t k = 0; k < course->shards && course_has_backup(course); k++) {
        bool is_behind = pair_of(course, worker, k)->seen_version < newest;
        if (is_behind && servers->servers[k].part_count > 0) {
            const struct packet pull = {.from = worker,
                                        .to = course->job->workers + k,
                                        .kind = PACKET_PULL,
                                        .step = newest};
            engine_send_small(course->engine, &pull);
            servers->awaited[worker] += servers->servers[k].part_count;
        }
    }
    return servers->awaited[worker] > 0;
}

static void take_pull(struct course *course, const struct packet *pull)
{
    uint32_t shard = pull->to - course->job->workers;
    struct pair *pair = pair_of(course, pull->from, shard);
    pair->is_pulled = true;
    pair->wanted_version = pull->step;
    answer(course, shard, pull->from);
}

/* A worker that gets its parts at once goes on when it has those of all shards. */
static void take_reply(struct course *course, const struct packet *packet)
{
    struct servers *servers = course->exchange;
    uint32_t shard = packet->from - course->job->workers;
    if (is_in_step(course)) {
        course_final(course, packet->to, packet->bucket, floats_for(course, packet->bucket, shard));
        return;
    }
    pair_of(course, packet->to, shard)->seen_version = packet->step;
    if (++servers->replies[packet->to] < servers->awaited[packet->to]) {
        return;
    }
    servers->replies[packet->to] = 0;
    if (asks_again(course, packet->to)) {
        return;
    }
    servers->awaited[packet->to] = servers->part_count;
    for (uint32_t b = course->layout.bucket_count; b-- > 0;) {
        course_final(course, packet->to, b, course->layout.buckets[b].count);
    }
}

static void servers_deliver(void *owner, const struct packet *packet)
{
    struct course *course = owner;
    if (packet->kind == PACKET_PUSH) {
        take_push(course, packet);
    } else if (packet->kind == PACKET_REPLY) {
        take_reply(course, packet);
    } else if (packet->kind == PACKET_PULL) {
        take_pull(course, packet);
    } else if (packet->kind == PACKET_TAKEN) {
        uint32_t shard = packet->from - course->job->workers;
        pair_of(course, packet->to, shard)->travelling -=
            values_bytes(part_of(course, packet->bucket, shard).count);
        push_on(course, packet->to, shard);
    }
}

/* The part that makes a gradient whole brings the work for all of it: the update, or the sum and,
 * with the last gradient of several, the update. */
static double work_alone_s(struct course *course, uint32_t shard, uint32_t worker)
{
    const struct servers *servers = course->exchange;
    const struct server *server = &servers->servers[shard];
    uint32_t wanted = course->job->gradients_per_update;
    if (course_has_backup(course)) {
        // Each of a sample brings the sums of several, but all have one update.
        return completes_update(course, shard, worker)
                   ? wanted_gradients(course) * values_sum_s(course, (double)server->floats) +
                         update_s(course, server->floats) / course->sample.workers_each
                   : 0;
    }
    if (pair_of(course, worker, shard)->taken_count + 1 < server->part_count) {
        return 0;
    }
    return (wanted > 1 ? values_sum_s(course, (double)server->floats) : 0) +
           (server->summed + 1 == wanted ? update_s(course, server->floats) : 0);
}

/* ps-sync keeps parts, and adds them up when the last one has come. */
static double work_for_all_s(const struct course *course, uint32_t shard, uint32_t bucket)
{
    const struct servers *servers = course->exchange;
    uint32_t workers = course->job->workers;
    bool is_last =
        servers->counts[(size_t)shard * course->layout.bucket_count + bucket] + 1 == workers;
    double floats = (double)part_of(course, bucket, shard).count;
    return is_last ? workers * values_sum_s(course, floats) : 0;
}

static double servers_work_s(void *owner, const struct packet *packet)
{
    struct course *course = owner;
    if (packet->kind == PACKET_REPLY) {
        uint32_t shard = packet->from - course->job->workers;
        double floats = (double)part_of(course, packet->bucket, shard).count;
        return is_in_step(course) ? servers_each(course) * values_decode_s(course, floats) : 0;
    }
    if (packet->kind != PACKET_PUSH) {
        return 0;
    }
    uint32_t shard = packet->to - course->job->workers;
    double decode_s = values_decode_s(course, (double)part_of(course, packet->bucket, shard).count);
    return decode_s + (is_in_step(course) ? work_for_all_s(course, shard, packet->bucket)
                                          : work_alone_s(course, shard, packet->from));
}

static void servers_destroy(struct course *course)
{
    struct servers *servers = course->exchange;
    size_t count = (size_t)course->job->workers * course->shards;
    for (size_t i = 0; servers != NULL && servers->pairs != NULL && i < count; i++) {
        free(servers->pairs[i].waits);
    }
    for (uint32_t k = 0; servers != NULL && servers->servers != NULL && k < course->shards; k++) {
        clocks_finish(&servers->servers[k].clocks);
        credits_seen_finish(&servers->servers[k].credits);
        free(servers->servers[k].part_bytes);
    }
    if (servers != NULL) {
        free(servers->servers);
        free(servers->replies);
        free(servers->awaited);
        free(servers->pairs);
        free(servers->counts);
    }
    free(servers);
}

static enum status create_pair(struct course *course, uint32_t worker, uint32_t shard)
{
    struct pair *pair = pair_of(course, worker, shard);
    pair->waits = calloc(course->layout.bucket_count, sizeof(*pair->waits));
    pair->window = WINDOW_BYTES;
    if (course->job->transport != TRANSPORT_TCP &&
        course->hosts[worker] == course->hosts[course->job->workers + shard]) {
        pair->window = (double)INFINITY; // nothing travels, or only from queue to queue
    }
    for (uint32_t b = 0; b < course->layout.bucket_count; b++) {
        double bytes = values_bytes(part_of(course, b, shard).count);
        pair->window = bytes > pair->window ? bytes : pair->window;
    }
    return pair->waits != NULL ? STATUS_OK : STATUS_NO_MEMORY;
}

static enum status create_server(struct course *course, uint32_t shard)
{
    struct servers *servers = course->exchange;
    struct server *server = &servers->servers[shard];
    uint32_t buckets = course->layout.bucket_count;
    server->part_bytes = calloc(buckets, sizeof(*server->part_bytes));
    enum status status = server->part_bytes != NULL &&
                                 clocks_init(&server->clocks, course->job->workers) &&
                                 credits_seen_init(&server->credits, course->job->workers, buckets)
                             ? STATUS_OK
                             : STATUS_NO_MEMORY;
    for (uint32_t b = 0; b < buckets && status == STATUS_OK; b++) {
        uint64_t floats = part_of(course, b, shard).count;
        server->floats += floats;
        server->part_count += floats > 0;
        server->part_bytes[b] = values_bytes(floats);
    }
    servers->part_count += server->part_count;
    for (uint32_t w = 0; w < course->job->workers && status == STATUS_OK; w++) {
        status = create_pair(course, w, shard);
    }
    return status;
}

static enum status servers_create(struct course *course)
{
    size_t workers = course->job->workers;
    struct servers *servers = calloc(1, sizeof(*servers));
    course->exchange = servers;
    if (servers == NULL) {
        return STATUS_NO_MEMORY;
    }
    servers->pairs = calloc(workers * course->shards, sizeof(*servers->pairs));
    servers->counts =
        calloc((size_t)course->shards * course->layout.bucket_count, sizeof(*servers->counts));
    servers->servers = calloc(course->shards, sizeof(*servers->servers));
    servers->replies = calloc(workers, sizeof(*servers->replies));
    servers->awaited = calloc(workers, sizeof(*servers->awaited));
    if (servers->pairs == NULL || servers->counts == NULL || servers->servers == NULL ||
        servers->replies == NULL || servers->awaited == NULL) {
        return STATUS_NO_MEMORY;
    }
    enum status status = consistency_find(course->job->mode, &servers->consistency);
    for (uint32_t k = 0; k < course->shards && status == STATUS_OK; k++) {
        status = create_server(course, k);
    }
    for (uint32_t w = 0; w < workers; w++) {
        servers->awaited[w] = servers->part_count;
    }
    return status;
}

const struct course_exchange course_by_servers = {.create = servers_create,
                                                  .destroy = servers_destroy,
                                                  .ready = servers_ready,
                                                  .work_s = servers_work_s,
                                                  .deliver = servers_deliver};
