/* All-reduces by messages, by the product's plans: ring_plan, halving_plan. Of the direct one the
 * two hops are those of chunk_direct.c. */
#include "common/plan/halving_plan.h"
#include "deploy/predict/course.h"
#include "worker/exchange/chunks/ring_plan.h"

#include <stdlib.h>

enum { HOP_VALUES = 1, HOP_MEAN = 2 };

struct held {
    struct packet packet;
    struct held *next;
};

struct ring_bucket {
    enum all_reduce algorithm;
    uint32_t segments; // of the longest chunk
};

struct ring_place {      // of a worker and a bucket
    struct held *held;   // owned: came before backward had completed it, or out of turn
    uint64_t ready_step; // steps in which backward has completed it
    uint32_t hop;        // halving: that is awaited
    uint32_t *positions; // direct: of each segment of the own chunk, the sums so far; owned
};

struct ring {
    struct ring_bucket *buckets;
    struct ring_place *places; // (workers, buckets)
};

static struct ring_place *place_of(struct course *course, uint32_t worker, uint32_t bucket)
{
    struct ring *ring = course->exchange;
    return &ring->places[(size_t)worker * course->layout.bucket_count + bucket];
}

static struct span chunk_of(const struct course *course, uint32_t bucket, uint32_t chunk)
{
    return span_part(course->layout.buckets[bucket], course->job->workers, chunk);
}

static struct span segment_of(const struct course *course, const struct packet *packet)
{
    return ring_segment(chunk_of(course, packet->bucket, packet->chunk), SEGMENT_FLOATS,
                        packet->segment);
}

/* Of a worker that stands for all: what it would send, it gets in the same moment from the one that
 * is as far behind it. */
static void turn(const struct course *course, struct packet *packet)
{
    const struct ring *ring = course->exchange;
    const struct reduction *reduction = &course->reduction;
    uint32_t world = course->job->workers, distance = packet->to;
    enum all_reduce algorithm = ring->buckets[packet->bucket].algorithm;
    packet->from = world - distance;
    packet->to = 0;
    packet->chunk = (packet->chunk + world - distance) % world;
    packet->bytes *= algorithm == ALL_REDUCE_RING      ? reduction->ring_stretch
                     : algorithm == ALL_REDUCE_HALVING ? reduction->halving_stretch[packet->from]
                                                       : reduction->direct_stretch;
}

static void send(struct course *course, const struct packet *packet, uint64_t floats)
{
    struct packet copy = *packet;
    copy.bytes = 4.0 * (double)floats;
    if (course->simulated < course->job->workers) {
        turn(course, &copy);
    }
    engine_send(course->engine, &copy);
}

/* Sends all segments of a chunk. */
static void send_chunk(struct course *course, struct packet packet)
{
    uint32_t count =
        ring_segment_count(chunk_of(course, packet.bucket, packet.chunk), SEGMENT_FLOATS);
    for (packet.segment = 0; packet.segment < count; packet.segment++) {
        send(course, &packet, segment_of(course, &packet).count);
    }
}

static void take_ring(struct course *course, const struct packet *packet)
{
    const struct carriers carriers = {.ranks = course->job->workers,
                                      .processes = course->job->workers};
    const struct ring_path path = ring_path_of(carriers, packet->chunk);
    const struct ring_hop hop = ring_hop_at(&path, packet->hop);
    struct packet next = *packet;
    if (hop.goes_on) {
        next.from = packet->to;
        next.hop++;
        next.to = ring_receiver(carriers, &path, next.hop);
        send(course, &next, segment_of(course, packet).count);
    }
    if (hop.is_final) {
        course_final(course, packet->to, packet->bucket, segment_of(course, packet).count);
    }
}

/* One more rank is in the sum of a segment. */
static void add_direct(struct course *course, const struct packet *packet)
{
    uint32_t *position = &place_of(course, packet->to, packet->bucket)->positions[packet->segment];
    struct packet mean = *packet;
    if (++*position < course->job->workers) {
        return;
    }
    *position = 0;
    mean.from = packet->to;
    mean.hop = HOP_MEAN;
    for (uint32_t i = 1; i < course->job->workers; i++) {
        mean.to = (mean.from + i) % course->job->workers;
        send(course, &mean, segment_of(course, packet).count);
    }
    course_final(course, mean.from, packet->bucket, segment_of(course, packet).count);
}

static void send_halving(struct course *course, uint32_t worker, uint32_t bucket, uint32_t number)
{
    uint32_t world = course->job->workers;
    const struct halving_hop hop = halving_hop_at(world, number);
    const struct packet packet = {.from = worker,
                                  .to = (worker + world - hop.distance) % world,
                                  .bucket = bucket,
                                  .hop = number,
                                  // The worker may have gone on to the next one.
                                  .step = place_of(course, worker, bucket)->ready_step - 1};
    send(course, &packet, hop.count * chunk_of(course, bucket, 0).count);
}

static void take_halving(struct course *course, const struct packet *packet)
{
    struct ring_place *place = place_of(course, packet->to, packet->bucket);
    place->hop++;
    if (halving_hop_at(course->job->workers, packet->hop).goes_on) {
        send_halving(course, packet->to, packet->bucket, place->hop);
    } else {
        course_final(course, packet->to, packet->bucket,
                     course->layout.buckets[packet->bucket].count);
    }
}

/* Whether a packet has come too early. */
static bool is_early(struct course *course, const struct packet *packet)
{
    const struct ring_place *place = place_of(course, packet->to, packet->bucket);
    const struct ring *ring = course->exchange;
    return packet->step >= place->ready_step ||
           (ring->buckets[packet->bucket].algorithm == ALL_REDUCE_HALVING &&
            packet->hop != place->hop);
}

static void take(struct course *course, const struct packet *packet)
{
    const struct ring *ring = course->exchange;
    enum all_reduce algorithm = ring->buckets[packet->bucket].algorithm;
    if (algorithm == ALL_REDUCE_HALVING) {
        take_halving(course, packet);
    } else if (algorithm == ALL_REDUCE_RING) {
        take_ring(course, packet);
    } else if (packet->hop == HOP_VALUES) {
        add_direct(course, packet);
    } else {
        course_final(course, packet->to, packet->bucket, segment_of(course, packet).count);
    }
}

/* Takes what is held and has its turn now. */
static void take_held(struct course *course, uint32_t worker, uint32_t bucket)
{
    struct held **at = &place_of(course, worker, bucket)->held;
    while (*at != NULL) {
        struct held *held = *at;
        if (is_early(course, &held->packet)) {
            at = &held->next;
            continue;
        }
        *at = held->next;
        take(course, &held->packet);
        free(held);
        at = &place_of(course, worker, bucket)->held; // it may be the turn of an earlier one
    }
}

static void ring_deliver(void *owner, const struct packet *packet)
{
    struct course *course = owner;
    if (!is_early(course, packet)) {
        take(course, packet);
        take_held(course, packet->to, packet->bucket);
        return;
    }
    struct held **end = &place_of(course, packet->to, packet->bucket)->held;
    struct held *held = malloc(sizeof(*held));
    if (held == NULL) {
        course->is_out_of_memory = true;
        return;
    }
    while (*end != NULL) {
        end = &(*end)->next;
    }
    *held = (struct held){.packet = *packet};
    *end = held;
}

static void ring_ready(struct course *course, uint32_t worker, uint32_t bucket)
{
    const struct ring *ring = course->exchange;
    struct ring_place *place = place_of(course, worker, bucket);
    uint32_t world = course->job->workers;
    struct packet packet = {
        .from = worker, .bucket = bucket, .hop = 1, .step = course->clocks.steps[worker]};
    place->ready_step = packet.step + 1;
    place->hop = 1;
    if (ring->buckets[bucket].algorithm == ALL_REDUCE_HALVING) {
        send_halving(course, worker, bucket, 1);
    } else if (ring->buckets[bucket].algorithm == ALL_REDUCE_RING) {
        packet.to = (worker + 1) % world;
        packet.chunk = worker;
        send_chunk(course, packet);
    } else {
        for (uint32_t i = 1; i < world; i++) {
            packet.to = packet.chunk = (worker + i) % world;
            send_chunk(course, packet);
        }
        packet.to = packet.chunk = worker;
        uint32_t count = ring_segment_count(chunk_of(course, bucket, worker), SEGMENT_FLOATS);
        for (packet.segment = 0; packet.segment < count; packet.segment++) {
            add_direct(course, &packet);
        }
    }
    take_held(course, worker, bucket);
}

/* Of what has values in it, until they are a mean. */
static double ring_work_s(void *owner, const struct packet *packet)
{
    struct course *course = owner;
    const struct ring *ring = course->exchange;
    uint32_t world = course->job->workers;
    enum all_reduce algorithm = ring->buckets[packet->bucket].algorithm;
    // halving: the owner of a chunk adds up what came by way of others
    bool adds = algorithm == ALL_REDUCE_HALVING
                    ? packet->hop == halving_hop_count(world) / 2
                    : packet->hop < (algorithm == ALL_REDUCE_RING ? world : HOP_MEAN);
    double floats =
        algorithm == ALL_REDUCE_HALVING
            ? (double)(world - 1) * (double)chunk_of(course, packet->bucket, packet->to).count
            : (double)segment_of(course, packet).count;
    double bandwidth = course->costs->sum_bandwidth;
    return adds && bandwidth > 0 ? 4 * floats / bandwidth : 0;
}

static void ring_destroy(struct course *course)
{
    struct ring *ring = course->exchange;
    size_t count = (size_t)course->simulated * course->layout.bucket_count;
    for (size_t i = 0; ring != NULL && ring->places != NULL && i < count; i++) {
        for (struct held *held = ring->places[i].held, *next; held != NULL; held = next) {
            next = held->next;
            free(held);
        }
        free(ring->places[i].positions);
    }
    if (ring != NULL) {
        free(ring->places);
        free(ring->buckets);
    }
    free(ring);
}

static enum status ring_create(struct course *course)
{
    uint32_t bucket_count = course->layout.bucket_count;
    struct ring *ring = calloc(1, sizeof(*ring));
    course->exchange = ring;
    if (ring == NULL) {
        return STATUS_NO_MEMORY;
    }
    ring->buckets = calloc(bucket_count, sizeof(*ring->buckets));
    ring->places = calloc((size_t)course->simulated * bucket_count, sizeof(*ring->places));
    if (ring->buckets == NULL || ring->places == NULL) {
        return STATUS_NO_MEMORY;
    }
    for (uint32_t b = 0; b < bucket_count; b++) {
        ring->buckets[b].algorithm = course->algorithms[b];
        ring->buckets[b].segments = ring_segment_count(chunk_of(course, b, 0), SEGMENT_FLOATS);
        for (uint32_t w = 0; w < course->simulated; w++) {
            struct ring_place *place = place_of(course, w, b);
            place->positions = calloc(ring->buckets[b].segments + 1, sizeof(uint32_t));
            if (place->positions == NULL) {
                return STATUS_NO_MEMORY;
            }
        }
    }
    return STATUS_OK;
}

const struct course_exchange course_ring = {ring_create, ring_destroy, ring_ready, ring_work_s,
                                            ring_deliver};
