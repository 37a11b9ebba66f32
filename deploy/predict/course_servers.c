/* ps-sync: pushes to shards, and their replies once the gradients of all workers have come. A
 * worker's window and the order of its pushes are those of exchange_ps.c. */
#include "deploy/predict/course.h"

#include <stdlib.h>

#define WINDOW_BYTES 1048576.0

enum { PACKET_PUSH, PACKET_TAKEN, PACKET_REPLY };

struct pair {                  // a worker and a shard
    double travelling, window; // bytes of values
    uint32_t waiting_count;    // pushes that wait
    bool *waits;               // (buckets), owned
};

struct servers {
    struct pair *pairs; // (workers, shards)
    uint32_t *counts;   // (shards, buckets) gradients of the update that is being made
};

static struct pair *pair_of(struct course *course, uint32_t worker, uint32_t shard)
{
    return &((struct servers *)course->exchange)->pairs[(size_t)worker * course->shards + shard];
}

static struct span part_of(const struct course *course, uint32_t bucket, uint32_t shard)
{
    return span_part(course->layout.buckets[bucket], course->shards, shard);
}

static void push_on(struct course *course, uint32_t worker, uint32_t shard)
{
    struct pair *pair = pair_of(course, worker, shard);
    while (pair->waiting_count > 0 && pair->travelling <= pair->window) {
        uint32_t bucket = course->layout.bucket_count;
        do {
            bucket--;
        } while (!pair->waits[bucket]);
        uint64_t floats = part_of(course, bucket, shard).count;
        pair->waits[bucket] = false;
        pair->waiting_count--;
        pair->travelling += 4.0 * (double)floats;
        const struct packet push = {.from = worker,
                                    .to = course->job->workers + shard,
                                    .bytes = 4.0 * (double)floats,
                                    .kind = PACKET_PUSH,
                                    .bucket = bucket,
                                    .step = course->workers[worker].step};
        engine_send(course->engine, &push);
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

static void reply(struct course *course, uint32_t shard, uint32_t worker, uint32_t bucket)
{
    const struct packet packet = {.from = course->job->workers + shard,
                                  .to = worker,
                                  .bytes = 4.0 * (double)part_of(course, bucket, shard).count,
                                  .kind = PACKET_REPLY,
                                  .bucket = bucket};
    engine_send(course->engine, &packet);
}

static double update_s(const struct course *course, uint32_t bucket, uint32_t shard)
{
    return course->costs->optimizer_s * (double)part_of(course, bucket, shard).count /
           (double)course->layout.value_count;
}

static void take_push(struct course *course, const struct packet *push)
{
    struct servers *servers = course->exchange;
    uint32_t shard = push->to - course->job->workers;
    struct packet taken = *push;
    taken.from = push->to;
    taken.to = push->from;
    taken.kind = PACKET_TAKEN;
    engine_send_small(course->engine, &taken);
    uint32_t *count = &servers->counts[(size_t)shard * course->layout.bucket_count + push->bucket];
    if (++*count == course->job->workers) {
        *count = 0;
        engine_occupy(course->engine, push->to, update_s(course, push->bucket, shard));
        for (uint32_t w = 0; w < course->job->workers; w++) {
            reply(course, shard, w, push->bucket);
        }
    }
}

static void servers_deliver(void *owner, const struct packet *packet)
{
    struct course *course = owner;
    if (packet->kind == PACKET_PUSH) {
        take_push(course, packet);
        return;
    }
    uint32_t shard = packet->from - course->job->workers;
    uint64_t floats = part_of(course, packet->bucket, shard).count;
    if (packet->kind == PACKET_REPLY) {
        course_final(course, packet->to, packet->bucket, floats);
    } else {
        pair_of(course, packet->to, shard)->travelling -= 4.0 * (double)floats;
        push_on(course, packet->to, shard);
    }
}

static double servers_work_s(void *owner, const struct packet *packet)
{
    struct course *course = owner;
    double bandwidth = course->costs->sum_bandwidth;
    if (packet->kind != PACKET_PUSH || bandwidth <= 0) {
        return 0;
    }
    uint32_t shard = packet->to - course->job->workers;
    return 4 * (double)part_of(course, packet->bucket, shard).count / bandwidth;
}

static void servers_destroy(struct course *course)
{
    struct servers *servers = course->exchange;
    size_t count = (size_t)course->job->workers * course->shards;
    for (size_t i = 0; servers != NULL && servers->pairs != NULL && i < count; i++) {
        free(servers->pairs[i].waits);
    }
    if (servers != NULL) {
        free(servers->pairs);
        free(servers->counts);
    }
    free(servers);
}

static enum status servers_create(struct course *course)
{
    uint32_t buckets = course->layout.bucket_count;
    struct servers *servers = calloc(1, sizeof(*servers));
    course->exchange = servers;
    if (servers == NULL) {
        return STATUS_NO_MEMORY;
    }
    servers->pairs = calloc((size_t)course->job->workers * course->shards, sizeof(struct pair));
    servers->counts = calloc((size_t)course->shards * buckets, sizeof(uint32_t));
    if (servers->pairs == NULL || servers->counts == NULL) {
        return STATUS_NO_MEMORY;
    }
    for (size_t i = 0; i < (size_t)course->job->workers * course->shards; i++) {
        struct pair *pair = &servers->pairs[i];
        pair->waits = calloc(buckets, sizeof(*pair->waits));
        if (pair->waits == NULL) {
            return STATUS_NO_MEMORY;
        }
        pair->window = WINDOW_BYTES;
        for (uint32_t b = 0; b < buckets; b++) {
            double bytes = 4.0 * (double)part_of(course, b, (uint32_t)(i % course->shards)).count;
            pair->window = bytes > pair->window ? bytes : pair->window;
        }
    }
    return STATUS_OK;
}

const struct course_exchange course_servers = {servers_create, servers_destroy, servers_ready,
                                               servers_work_s, servers_deliver};
