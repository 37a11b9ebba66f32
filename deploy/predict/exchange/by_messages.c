/* All-reduces by messages, by the product's plans: ring_plan, halving_plan. Of the direct one the
 * two hops are those of chunk_direct.c.
 *
 * What is added up within a host is read where it is, but for pieces of halving and doubling, which
 * are copies. Codes: each worker encodes what it sends of its own, the ring every sum anew; a mean
 * is encoded once, and handed on as it came (encoder.c, chunk_*.c). */
#include "common/plan/halving_plan.h"
#include "deploy/predict/course.h"
#include "deploy/predict/exchange/values.h"
#include "deploy/predict/sample.h"
#include "deploy/predict/sample_direct.h"
#include "worker/exchange/chunks/ring_plan.h"

#include <assert.h>
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
    packet->counted_bytes = packet->bytes;
    packet->bytes *= algorithm == ALL_REDUCE_RING      ? reduction->ring_stretch
                     : algorithm == ALL_REDUCE_HALVING ? reduction->halving_stretch[packet->from]
                                                       : reduction->direct_stretch;
}

/* To the one of a sample that is in the place of the receiver. */
static void fold(const struct course *course, struct packet *packet)
{
    uint32_t world = course->job->workers, count = course->simulated;
    uint32_t distance = (packet->from + world - packet->to) % world;
    assert(count > 0);
    packet->to = (packet->from + count - sample_distance(count, distance)) % count;
}

/* Whether a ring or direct packet is of values that its receiver adds up. */
static bool is_added(const struct course *course, const struct packet *packet)
{
    const struct ring *ring = course->exchange;
    enum all_reduce algorithm = ring->buckets[packet->bucket].algorithm;
    return packet->hop < (algorithm == ALL_REDUCE_RING ? course->job->workers : HOP_MEAN);
}

/* How many messages one stands for, in a sample of workers that all send to all; 0: itself alone.
 */
static double direct_each(const struct course *course, const struct packet *packet)
{
    const double *each = course->sample.direct_each;
    uint32_t from = packet->from;
    return each != NULL ? each[(size_t)from * SAMPLE_DISTANCES +
                               network_distance(course->network, course->hosts[from],
                                                course->hosts[packet->to])]
                        : 0;
}

static void send_bytes(struct course *course, const struct packet *packet, double bytes, bool adds)
{
    struct packet copy = *packet;
    bool lends = course_lends(course, packet->from, packet->to);
    copy.bytes = bytes;
    copy.each = direct_each(course, packet);
    copy.is_lent = lends && adds;
    copy.is_copied = lends && !adds;
    copy.is_paced = course->network->pacing.is_paced[NETWORK_WAY_RING];
    if (course->sample.workers > 0 && course->simulated < course->job->workers) {
        fold(course, &copy);
    } else if (course->simulated < course->job->workers) {
        turn(course, &copy);
    }
    engine_send(course->engine, &copy);
}

/* How many segments a worker of a sample encodes where it has this one. Directly, it sends the same
 * mean to all, which it has encoded once. */
static double encoded_each(const struct course *course, const struct packet *packet)
{
    bool is_direct = course->sample.direct_each != NULL;
    return is_direct && packet->hop < HOP_MEAN ? direct_each(course, packet)
           : is_direct                         ? 1
                                               : course->sample.hops_each;
}

/* A segment; `is_new`: it has to be encoded first. */
static void send_segment(struct course *course, const struct packet *packet, bool is_new)
{
    uint64_t floats = segment_of(course, packet).count;
    if (is_new) {
        engine_occupy(course->engine, packet->from,
                      encoded_each(course, packet) * values_encode_s(course, (double)floats));
    }
    send_bytes(course, packet, values_encoded_bytes(course, floats), is_added(course, packet));
}

/* Sends all segments of a chunk. */
static void send_chunk(struct course *course, struct packet packet)
{
    uint32_t count =
        ring_segment_count(chunk_of(course, packet.bucket, packet.chunk), SEGMENT_FLOATS);
    for (packet.segment = 0; packet.segment < count; packet.segment++) {
        send_segment(course, &packet, true);
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
        send_segment(course, &next, hop.adds);
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
        send_segment(course, &mean, i == 1);
    }
    course_final(course, mean.from, packet->bucket, segment_of(course, packet).count);
}

/* Of halving and doubling: the segments of a chunk, the longest, are encoded each by itself. */
static double piece_bytes(const struct course *course, uint32_t bucket)
{
    struct span chunk = chunk_of(course, bucket, 0);
    double bytes = 0;
    for (uint32_t i = 0; i < ring_segment_count(chunk, SEGMENT_FLOATS); i++) {
        bytes += values_encoded_bytes(course, ring_segment(chunk, SEGMENT_FLOATS, i).count);
    }
    return bytes;
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
    if (number == 1) {
        double floats = (double)chunk_of(course, bucket, 0).count;
        engine_occupy(course->engine, worker, values_encode_s(course, (world - 1) * floats));
    }
    send_bytes(course, &packet, hop.count * piece_bytes(course, bucket), false);
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
        course->held_bytes -= sizeof(*held);
        at = &place_of(course, worker, bucket)->held; // it may be the turn of an earlier one
    }
}

static void messages_deliver(void *owner, const struct packet *packet)
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
    course->held_bytes += sizeof(*held);
    *held = (struct held){.packet = *packet};
    *end = held;
}

static void messages_ready(struct course *course, uint32_t worker, uint32_t bucket)
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

/* Of halving and doubling: the owner of a chunk adds up what came by way of others, and encodes the
 * mean; what comes behind that is means. */
static double halving_work_s(const struct course *course, const struct packet *packet)
{
    uint32_t world = course->job->workers, half = halving_hop_count(world) / 2;
    double floats = (double)chunk_of(course, packet->bucket, packet->to).count;
    if (packet->hop < half) {
        return 0;
    }
    return packet->hop == half
               ? values_add_s(course, (world - 1) * floats) + values_encode_s(course, floats) +
                     values_decode_s(course, floats)
               : values_decode_s(course, floats * halving_hop_at(world, packet->hop).count);
}

/* Whether a packet brings the last of what its receiver adds up: that encodes the mean, and decodes
 * it, to have what the others will have. */
static bool makes_mean(struct course *course, const struct packet *packet)
{
    const struct ring *ring = course->exchange;
    uint32_t world = course->job->workers;
    if (ring->buckets[packet->bucket].algorithm == ALL_REDUCE_RING) {
        return packet->hop == world - 1;
    }
    const struct ring_place *place = place_of(course, packet->to, packet->bucket);
    return packet->hop == HOP_VALUES && place->positions[packet->segment] == world - 1;
}

static double messages_work_s(void *owner, const struct packet *packet)
{
    struct course *course = owner;
    const struct ring *ring = course->exchange;
    if (ring->buckets[packet->bucket].algorithm == ALL_REDUCE_HALVING) {
        return halving_work_s(course, packet);
    }
    double floats = (double)segment_of(course, packet).count;
    double mean_s = makes_mean(course, packet) ? values_decode_s(course, floats) : 0;
    mean_s /= packet_each(packet); // there is one for all that it stands for
    return mean_s + (is_added(course, packet) ? values_add_s(course, floats)
                                              : values_decode_s(course, floats));
}

static void messages_destroy(struct course *course)
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

static enum status messages_create(struct course *course)
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

const struct course_exchange course_by_messages = {.create = messages_create,
                                                   .destroy = messages_destroy,
                                                   .ready = messages_ready,
                                                   .work_s = messages_work_s,
                                                   .deliver = messages_deliver};
