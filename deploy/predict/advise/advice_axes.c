/* The values that each axis of the search has, and what they change. */
#include "deploy/predict/advise/advice_axes.h"

#include "common/codec/codec.h"
#include "common/job/job_choices.h"

#include <math.h>
#include <stdio.h>

#define MIB          1048576.0
#define BUCKET_LEAST 0.25                       // MiB, as --bucket-mb auto tries them
#define BUCKET_SIZES 9                          // up to 64 MiB
#define LAYOUT_ROOM  (0.5 * LAYOUT_BUCKETS_MAX) // buckets

void advice_values_add(struct advice_values *values, double value)
{
    for (size_t i = 0; i < values->count; i++) {
        if (values->list[i] == value) {
            return;
        }
    }
    if (values->count < ADVICE_VALUES_MAX) {
        values->list[values->count++] = value;
    }
}

/* ==========================================================================================
 * Servers
 * ========================================================================================== */

static uint32_t count_places(const struct network *network)
{
    uint32_t places = 0;
    for (uint32_t i = 0; i < network->host_count; i++) {
        places += network->hosts[i].servers;
    }
    return places;
}

/* Hosts without a worker, of the workers that the job has. */
static uint32_t count_idle(const struct basis *basis, uint32_t *ret_first)
{
    uint32_t placed = 0, host = 0;
    for (; host < basis->network.host_count && placed < basis->job.workers; host++) {
        placed += basis->network.hosts[host].workers;
    }
    *ret_first = host;
    return basis->network.host_count - host;
}

/* Powers of two, and the most that is of use: no more than workers. */
static void list_servers(const struct basis *basis, struct advice_values *values)
{
    uint32_t most = basis->job.workers < JOB_SERVERS_MAX ? basis->job.workers : JOB_SERVERS_MAX;
    advice_values_add(values, basis->job.servers);
    for (uint32_t servers = 1; servers <= most; servers *= 2) {
        advice_values_add(values, servers);
    }
    uint32_t places = count_places(&basis->network);
    if (places > 0 && places <= most) {
        advice_values_add(values, places);
    }
}

static void apply_servers(double value, struct basis *basis)
{
    basis->job.servers = (uint32_t)value;
}

static void describe_servers(double value, char ret_word[ADVICE_WORD_BYTES])
{
    snprintf(ret_word, ADVICE_WORD_BYTES, "%.0f server%s", value, value > 1 ? "s" : "");
}

/* ==========================================================================================
 * Placement
 * ========================================================================================== */

enum placement { PLACEMENT_BESIDE, PLACEMENT_ALONE, PLACEMENT_GIVEN };

/* That of the network file. */
static enum placement find_placement(const struct basis *basis)
{
    const struct network *network = &basis->network;
    uint32_t idle = 0;
    if (!network->has_server_places) {
        return PLACEMENT_BESIDE;
    }
    count_idle(basis, &idle);
    for (uint32_t i = 0; i < network->host_count; i++) {
        if (network->hosts[i].servers > 0 && network->hosts[i].workers > 0 && i < idle) {
            return PLACEMENT_GIVEN;
        }
    }
    return PLACEMENT_ALONE;
}

static void list_placements(const struct basis *basis, struct advice_values *values)
{
    uint32_t first = 0;
    advice_values_add(values, find_placement(basis));
    advice_values_add(values, PLACEMENT_BESIDE);
    if (count_idle(basis, &first) > 0) {
        advice_values_add(values, PLACEMENT_ALONE);
    }
}

static void apply_placement(double value, struct basis *basis)
{
    struct network *network = &basis->network;
    enum placement placement = (enum placement)value;
    uint32_t first_idle = 0;
    if (placement == find_placement(basis)) {
        return;
    }
    count_idle(basis, &first_idle);
    for (uint32_t i = 0; i < network->host_count; i++) {
        uint32_t places = network->hosts[i].workers > 0 ? network->hosts[i].workers : 1;
        network->hosts[i].servers = placement == PLACEMENT_ALONE && i >= first_idle ? places : 0;
    }
    network->has_server_places = placement == PLACEMENT_ALONE;
}

static void describe_placement(double value, char ret_word[ADVICE_WORD_BYTES])
{
    static const char *const words[] = {[PLACEMENT_BESIDE] = "servers beside workers",
                                        [PLACEMENT_ALONE] = "servers on hosts of their own",
                                        [PLACEMENT_GIVEN] = "servers where the file has them"};
    snprintf(ret_word, ADVICE_WORD_BYTES, "%s", words[(size_t)value]);
}

bool advice_has_places(const struct basis *basis)
{
    return !mode_has_servers(basis->job.mode.kind) || !basis->network.has_server_places ||
           basis->job.servers <= count_places(&basis->network);
}

/* ==========================================================================================
 * Buckets, all-reduce, codes
 * ========================================================================================== */

/* Up to the first that holds all parameters, from the first that a layout has room for. */
static void list_buckets(const struct basis *basis, struct advice_values *values)
{
    double total = 0;
    for (uint32_t i = 0; i < basis->costs.layer_count; i++) {
        total += (double)basis->costs.layers[i].parameters;
    }
    advice_values_add(values, basis->job.bucket_mb);
    for (int i = 0; i < BUCKET_SIZES; i++) {
        double size = ldexp(BUCKET_LEAST, i), floats = size * MIB / 4;
        if (total / floats + basis->costs.layer_count < LAYOUT_ROOM && floats < 2 * total) {
            advice_values_add(values, size);
        }
    }
}

static void apply_bucket(double value, struct basis *basis)
{
    basis->job.bucket_mb = value;
}

static void describe_bucket(double value, char ret_word[ADVICE_WORD_BYTES])
{
    snprintf(ret_word, ADVICE_WORD_BYTES, "%g MiB", value);
}

/* Directly only among as many as `auto` would let connect to all. */
static void list_all_reduces(const struct basis *basis, struct advice_values *values)
{
    advice_values_add(values, basis->job.all_reduce);
    if (basis->job.workers < 2) {
        return;
    }
    advice_values_add(values, ALL_REDUCE_CHOICE_RING);
    advice_values_add(values, ALL_REDUCE_CHOICE_HALVING);
    if (basis->job.workers <= ALL_REDUCE_DIRECT_MAX) {
        advice_values_add(values, ALL_REDUCE_CHOICE_DIRECT);
    }
}

static void apply_all_reduce(double value, struct basis *basis)
{
    basis->job.all_reduce = (enum all_reduce_choice)value;
}

static void describe_all_reduce(double value, char ret_word[ADVICE_WORD_BYTES])
{
    snprintf(ret_word, ADVICE_WORD_BYTES, "%s", all_reduce_choices[(size_t)value].name);
}

/* Codes of all values; topk trains in another way. Only where the costs say what codes take, as
 * they would be free otherwise. */
static void list_codes(const struct basis *basis, struct advice_values *values)
{
    const struct costs *costs = &basis->costs;
    advice_values_add(values, basis->job.compress.kind);
    if (basis->job.workers > 1 && costs->encode_bandwidth > 0 && costs->decode_bandwidth > 0) {
        advice_values_add(values, CODEC_NONE);
        advice_values_add(values, CODEC_FP16);
        advice_values_add(values, CODEC_INT8);
    }
}

static void apply_code(double value, struct basis *basis)
{
    if (basis->job.compress.kind != (enum codec_kind)value) {
        basis->job.compress = (struct codec){.kind = (enum codec_kind)value};
    }
}

static void describe_code(double value, char ret_word[ADVICE_WORD_BYTES])
{
    const struct codec codec = {.kind = (enum codec_kind)value};
    char text[CODEC_TEXT_BYTES];
    codec_text(&codec, text);
    if (codec.kind == CODEC_NONE) {
        snprintf(ret_word, ADVICE_WORD_BYTES, "uncompressed");
    } else {
        snprintf(ret_word, ADVICE_WORD_BYTES, "%s gradients", text);
    }
}

static bool is_ring(enum mode_kind mode)
{
    return mode == MODE_RING;
}

const struct advice_axis advice_axes[ADVICE_AXES] = {
    [ADVICE_SERVERS] = {.name = "servers",
                        .option = "servers",
                        .is_of = mode_has_servers,
                        .list = list_servers,
                        .apply = apply_servers,
                        .describe = describe_servers},
    [ADVICE_PLACEMENT] = {.name = "placement",
                          .is_of = mode_has_servers,
                          .list = list_placements,
                          .apply = apply_placement,
                          .describe = describe_placement},
    [ADVICE_BUCKET] = {.name = "bucket size",
                       .option = "bucket-mb",
                       .list = list_buckets,
                       .apply = apply_bucket,
                       .describe = describe_bucket},
    [ADVICE_ALL_REDUCE] = {.name = "all-reduce",
                           .option = "all-reduce",
                           .is_of = is_ring,
                           .list = list_all_reduces,
                           .apply = apply_all_reduce,
                           .describe = describe_all_reduce},
    [ADVICE_COMPRESSION] = {.name = "compression",
                            .option = "compress",
                            .list = list_codes,
                            .apply = apply_code,
                            .describe = describe_code},
};

bool advice_axis_is_of(enum advice_axis_kind axis, enum mode_kind mode)
{
    return advice_axes[axis].is_of == NULL || advice_axes[axis].is_of(mode);
}
