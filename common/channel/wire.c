/* Packing and checking of message headers.
 *
 * A table says for each kind what it must carry; decode refuses what lacks it. Unpacking uses a
 * bump allocator over the caller's scratch, so a hostile header cannot make us allocate. */
#include "common/channel/wire.h"

#include "common/base/bump.h"
#include "wire.pb-c.h"

#include <protobuf-c/protobuf-c.h>

#include <assert.h>
#include <math.h>
#include <string.h>

enum carries {
    CARRIES_VALUES = 1,
    CARRIES_MEMBER = 2,
    CARRIES_LAYOUT = 4,
    CARRIES_REPORT = 8,
    MAY_CARRY_LAYOUT = 16,
    CARRIES_REGION = 32,
    CARRIES_LOAN = 64,
    MAY_CARRY_SEAL_KEY = 128,
};

struct kind_row {
    const char *name;
    Wire__Kind wire;
    unsigned carries;
};

static const struct kind_row kinds[MESSAGE_KIND_COUNT] = {
    [MESSAGE_JOIN] = {"JOIN", WIRE__KIND__KIND_JOIN, CARRIES_MEMBER},
    [MESSAGE_WELCOME] = {"WELCOME", WIRE__KIND__KIND_WELCOME, MAY_CARRY_SEAL_KEY},
    [MESSAGE_REFUSE] = {"REFUSE", WIRE__KIND__KIND_REFUSE, 0},
    [MESSAGE_READY] = {"READY", WIRE__KIND__KIND_READY, CARRIES_MEMBER | MAY_CARRY_LAYOUT},
    [MESSAGE_START] = {"START", WIRE__KIND__KIND_START, CARRIES_LAYOUT},
    [MESSAGE_TRY] = {"TRY", WIRE__KIND__KIND_TRY, 0},
    [MESSAGE_PROBE] = {"PROBE", WIRE__KIND__KIND_PROBE, CARRIES_VALUES},
    [MESSAGE_TRIED] = {"TRIED", WIRE__KIND__KIND_TRIED, 0},
    [MESSAGE_CONNECTED] = {"CONNECTED", WIRE__KIND__KIND_CONNECTED, 0},
    [MESSAGE_GO] = {"GO", WIRE__KIND__KIND_GO, 0},
    [MESSAGE_HEARTBEAT] = {"HEARTBEAT", WIRE__KIND__KIND_HEARTBEAT, 0},
    [MESSAGE_REPORT] = {"REPORT", WIRE__KIND__KIND_REPORT, CARRIES_REPORT},
    [MESSAGE_DONE] = {"DONE", WIRE__KIND__KIND_DONE, CARRIES_MEMBER | CARRIES_REPORT},
    [MESSAGE_LEAVE] = {"LEAVE", WIRE__KIND__KIND_LEAVE, 0},
    [MESSAGE_STOP] = {"STOP", WIRE__KIND__KIND_STOP, 0},
    [MESSAGE_HELLO] = {"HELLO", WIRE__KIND__KIND_HELLO, 0},
    [MESSAGE_SEED] = {"SEED", WIRE__KIND__KIND_SEED, CARRIES_VALUES},
    [MESSAGE_PUSH] = {"PUSH", WIRE__KIND__KIND_PUSH, CARRIES_VALUES},
    [MESSAGE_PULL] = {"PULL", WIRE__KIND__KIND_PULL, 0},
    [MESSAGE_TAKEN] = {"TAKEN", WIRE__KIND__KIND_TAKEN, 0},
    [MESSAGE_PARAMS] = {"PARAMS", WIRE__KIND__KIND_PARAMS, CARRIES_VALUES},
    [MESSAGE_CHUNK] = {"CHUNK", WIRE__KIND__KIND_CHUNK, CARRIES_VALUES},
    [MESSAGE_OFFER] = {"OFFER", WIRE__KIND__KIND_OFFER, CARRIES_REGION},
    [MESSAGE_MAPPED] = {"MAPPED", WIRE__KIND__KIND_MAPPED, 0},
    [MESSAGE_RETURN] = {"RETURN", WIRE__KIND__KIND_RETURN, CARRIES_LOAN},
    [MESSAGE_PASSED] = {"PASSED", WIRE__KIND__KIND_PASSED, 0},
    [MESSAGE_PROCEED] = {"PROCEED", WIRE__KIND__KIND_PROCEED, 0},
    [MESSAGE_SUM] = {"SUM", WIRE__KIND__KIND_SUM, CARRIES_VALUES},
    [MESSAGE_GREET] = {"GREET", WIRE__KIND__KIND_GREET, 0},
};

const char *message_kind_name(enum message_kind kind)
{
    return (unsigned)kind < MESSAGE_KIND_COUNT ? kinds[kind].name : "unknown kind";
}

/* protobuf-c wants char *, and does not write through it. */
static char *text_of(const char *text)
{
    union {
        const char *in;
        char *out;
    } cast = {.in = text != NULL ? text : protobuf_c_empty_string};
    return cast.out;
}

static void pack_member(const struct wire_member *member, Wire__Member *packed)
{
    packed->role = member->role == ROLE_WORKER ? WIRE__ROLE__ROLE_WORKER : WIRE__ROLE__ROLE_SERVER;
    packed->has_rank = member->has_rank;
    packed->rank = member->rank;
    packed->host_id = member->host_id;
    packed->host = text_of(member->host);
    packed->process_id = member->process_id;
    packed->endpoints = text_of(member->endpoints);
    packed->params_digest = text_of(member->params_digest);
    packed->train_samples = member->train_samples;
    packed->test_samples = member->test_samples;
    packed->device = text_of(member->device);
    packed->data_digest = member->data_digest;
    packed->parameters = member->parameters;
    packed->cores = member->cores;
}

static void pack_report(const struct wire_report *report, Wire__Report *packed)
{
    packed->steps = report->steps;
    packed->images = report->images;
    packed->loss_sum = report->loss_sum;
    packed->compute_ns = report->compute_ns;
    packed->exchange_wait_ns = report->exchange_wait_ns;
    packed->input_wait_ns = report->input_wait_ns;
    packed->total_ns = report->total_ns;
    packed->copy_ns = report->copy_ns;
    packed->wire_ns = report->wire_ns;
    packed->bytes_sent = report->bytes_sent;
    packed->bytes_received = report->bytes_received;
    packed->is_epoch = report->is_epoch;
    packed->test_images = report->test_images;
    packed->test_correct = report->test_correct;
    packed->test_loss_sum = report->test_loss_sum;
    packed->warm_images = report->warm_images;
    packed->warm_ns = report->warm_ns;
    packed->staleness_sum = report->staleness_sum;
    packed->staleness_max = report->staleness_max;
    packed->rate = report->rate;
    packed->images_dropped = report->images_dropped;
    packed->transports = report->transports;
    packed->late = report->late;
    packed->backlog = report->backlog;
    // protobuf-c wants uint64_t *, and does not write through it.
    union {
        const uint64_t *in;
        uint64_t *out;
    } cast = {.in = report->staleness};
    packed->staleness = cast.out;
    packed->n_staleness = report->staleness_bins;
}

/* offsets and counts have LAYOUT_BUCKETS_MAX entries. */
static void pack_layout(const struct layout *layout, uint64_t *offsets, uint64_t *counts,
                        Wire__Layout *packed)
{
    assert(layout->bucket_count <= LAYOUT_BUCKETS_MAX);
    for (uint32_t i = 0; i < layout->bucket_count; i++) {
        offsets[i] = layout->buckets[i].offset;
        counts[i] = layout->buckets[i].count;
    }
    packed->value_count = layout->value_count;
    packed->digest = layout->digest;
    packed->n_bucket_offsets = packed->n_bucket_counts = layout->bucket_count;
    packed->bucket_offsets = offsets;
    packed->bucket_counts = counts;
}

static void pack_region(const struct region_key *region, Wire__Region *packed)
{
    wire__region__init(packed);
    packed->process_id = region->process_id;
    packed->descriptor = region->descriptor;
    packed->size = region->size;
    packed->nonce = region->nonce;
}

/* What a packed header points to. */
struct packed_parts {
    Wire__Member member;
    Wire__Layout layout;
    Wire__Report report;
    Wire__Region region;
    Wire__Mail mail;
    Wire__Region mail_region;
    Wire__Loan loan;
    uint64_t offsets[LAYOUT_BUCKETS_MAX], counts[LAYOUT_BUCKETS_MAX];
};

static Wire__Mail *pack_mail(const struct mail_offer *offer, struct packed_parts *parts)
{
    wire__mail__init(&parts->mail);
    pack_region(&offer->region, &parts->mail_region);
    parts->mail.region = &parts->mail_region;
    parts->mail.index = offer->index;
    return &parts->mail;
}

static void pack_parts(const struct message *message, struct packed_parts *parts,
                       Wire__Header *packed)
{
    if (message->member != NULL) {
        wire__member__init(&parts->member);
        pack_member(message->member, &parts->member);
        packed->member = &parts->member;
    }
    if (message->layout != NULL) {
        wire__layout__init(&parts->layout);
        pack_layout(message->layout, parts->offsets, parts->counts, &parts->layout);
        packed->layout = &parts->layout;
    }
    if (message->report != NULL) {
        wire__report__init(&parts->report);
        pack_report(message->report, &parts->report);
        packed->report = &parts->report;
    }
    if (message->region != NULL) {
        pack_region(message->region, &parts->region);
        packed->region = &parts->region;
        packed->mail = message->mail != NULL ? pack_mail(message->mail, parts) : NULL;
    }
    if (message->loan != NULL) {
        wire__loan__init(&parts->loan);
        parts->loan.offset = message->loan->offset;
        parts->loan.ticket = message->loan->ticket;
        packed->loan = &parts->loan;
    }
    if (message->seal_key != NULL) {
        // protobuf-c wants uint8_t *, and does not write through it.
        union {
            const unsigned char *in;
            uint8_t *out;
        } cast = {.in = message->seal_key};
        packed->seal_key = (ProtobufCBinaryData){WIRE_SEAL_KEY_BYTES, cast.out};
    }
}

enum status wire_encode(const struct message *message, void *ret_header, size_t header_size,
                        size_t *ret_bytes)
{
    assert((unsigned)message->kind < MESSAGE_KIND_COUNT);
    const struct kind_row *row = &kinds[message->kind];
    assert(((row->carries & (CARRIES_VALUES | CARRIES_LOAN)) != 0) ==
           (message->values != NULL || message->loan != NULL || message->encoded != NULL));
    assert((row->carries & CARRIES_MEMBER) == 0 || message->member != NULL);
    assert((row->carries & CARRIES_REPORT) == 0 || message->report != NULL);
    assert((row->carries & CARRIES_LAYOUT) == 0 || message->layout != NULL);
    assert((row->carries & CARRIES_REGION) == 0 || message->region != NULL);
    assert((row->carries & MAY_CARRY_SEAL_KEY) != 0 || message->seal_key == NULL);

    Wire__Header packed;
    struct packed_parts parts;
    wire__header__init(&packed);
    packed.version = WIRE_VERSION;
    packed.kind = row->wire;
    packed.job_id = message->job_id;
    packed.rank = message->rank;
    packed.step = message->step;
    packed.epoch = message->epoch;
    packed.bucket = message->bucket;
    packed.hop = message->hop;
    packed.staleness = message->staleness;
    packed.rate = message->rate;
    packed.is_late = message->is_late;
    packed.params_version = message->params_version;
    packed.vector = message->vector;
    packed.is_far = message->is_far;
    packed.lane = message->lane;
    packed.phase = message->phase;
    packed.is_code = message->encoded != NULL;
    packed.latency_ns = message->way.latency_ns;
    packed.message_ns = message->way.message_ns;
    packed.bandwidth = message->way.bandwidth;
    packed.halving_floats_max = message->limits.halving_floats_max;
    packed.direct_floats_max = message->limits.direct_floats_max;
    packed.bucket_bytes = message->bucket_bytes;
    packed.step_ns = message->step_ns;
    packed.all_reduce = (uint32_t)message->all_reduce;
    packed.reason = (uint32_t)message->reason;
    packed.span_offset = message->span.offset;
    packed.span_count = message->span.count;
    packed.text = text_of(message->text);
    pack_parts(message, &parts, &packed);

    size_t bytes = wire__header__get_packed_size(&packed);
    if (bytes > header_size) {
        return STATUS_INVALID;
    }
    *ret_bytes = wire__header__pack(&packed, ret_header);
    assert(*ret_bytes == bytes);
    return STATUS_OK;
}

static bool unpack_member(const Wire__Member *packed, struct wire_member *member)
{
    if (packed->role != WIRE__ROLE__ROLE_WORKER && packed->role != WIRE__ROLE__ROLE_SERVER) {
        return false;
    }
    *member = (struct wire_member){
        .role = packed->role == WIRE__ROLE__ROLE_WORKER ? ROLE_WORKER : ROLE_SERVER,
        .has_rank = packed->has_rank,
        .rank = packed->rank,
        .host_id = packed->host_id,
        .host = packed->host,
        .process_id = packed->process_id,
        .endpoints = packed->endpoints,
        .params_digest = packed->params_digest,
        .train_samples = packed->train_samples,
        .test_samples = packed->test_samples,
        .device = packed->device,
        .data_digest = packed->data_digest,
        .parameters = packed->parameters,
        .cores = packed->cores,
    };
    return true;
}

static bool unpack_report(const Wire__Report *packed, struct wire_report *report)
{
    bool is_sound = packed->n_staleness <= WIRE_STALENESS_MAX && isfinite(packed->staleness_sum) &&
                    isfinite(packed->rate) && isfinite(packed->images_dropped) &&
                    (packed->transports & ~WIRE_TRANSPORTS_ALL) == 0;
    if (!is_sound) {
        return false;
    }
    *report = (struct wire_report){
        .steps = packed->steps,
        .images = packed->images,
        .loss_sum = packed->loss_sum,
        .compute_ns = packed->compute_ns,
        .exchange_wait_ns = packed->exchange_wait_ns,
        .input_wait_ns = packed->input_wait_ns,
        .total_ns = packed->total_ns,
        .copy_ns = packed->copy_ns,
        .wire_ns = packed->wire_ns,
        .bytes_sent = packed->bytes_sent,
        .bytes_received = packed->bytes_received,
        .is_epoch = packed->is_epoch,
        .test_images = packed->test_images,
        .test_correct = packed->test_correct,
        .test_loss_sum = packed->test_loss_sum,
        .warm_images = packed->warm_images,
        .warm_ns = packed->warm_ns,
        .staleness_sum = packed->staleness_sum,
        .staleness_max = packed->staleness_max,
        .rate = packed->rate,
        .images_dropped = packed->images_dropped,
        .transports = packed->transports,
        .staleness = packed->staleness,
        .staleness_bins = (uint32_t)packed->n_staleness,
        .late = packed->late,
        .backlog = packed->backlog,
    };
    return true;
}

static bool unpack_layout(const Wire__Layout *packed, struct layout *layout)
{
    if (packed->n_bucket_offsets != packed->n_bucket_counts ||
        packed->n_bucket_offsets > LAYOUT_BUCKETS_MAX) {
        return false;
    }
    layout->value_count = packed->value_count;
    layout->digest = packed->digest;
    layout->bucket_count = (uint32_t)packed->n_bucket_offsets;
    for (uint32_t i = 0; i < layout->bucket_count; i++) {
        layout->buckets[i] = (struct span){packed->bucket_offsets[i], packed->bucket_counts[i]};
    }
    return layout_check(layout) == STATUS_OK;
}

static struct region_key unpack_region(const Wire__Region *packed)
{
    return (struct region_key){
        .process_id = packed->process_id,
        .descriptor = packed->descriptor,
        .size = packed->size,
        .nonce = packed->nonce,
    };
}

static bool kind_find(Wire__Kind wire, enum message_kind *ret_kind)
{
    for (unsigned i = 0; i < MESSAGE_KIND_COUNT; i++) {
        if (kinds[i].wire == wire) {
            *ret_kind = (enum message_kind)i;
            return true;
        }
    }
    return false;
}

/* Whether the parts that came are those that the kind carries; unpacks them. */
static bool unpack_parts(const Wire__Header *packed, unsigned carries, struct wire_scratch *scratch,
                         struct message *message)
{
    if ((packed->member != NULL) != ((carries & CARRIES_MEMBER) != 0) ||
        (packed->report != NULL) != ((carries & CARRIES_REPORT) != 0) ||
        (packed->layout == NULL && (carries & CARRIES_LAYOUT) != 0) ||
        (packed->layout != NULL && (carries & (CARRIES_LAYOUT | MAY_CARRY_LAYOUT)) == 0) ||
        (packed->region != NULL) != ((carries & CARRIES_REGION) != 0) ||
        (packed->mail != NULL && (packed->region == NULL || packed->mail->region == NULL)) ||
        (packed->loan == NULL && (carries & CARRIES_LOAN) != 0) ||
        (packed->loan != NULL && (carries & (CARRIES_LOAN | CARRIES_VALUES)) == 0) ||
        (packed->seal_key.len > 0 &&
         (packed->seal_key.len != WIRE_SEAL_KEY_BYTES || (carries & MAY_CARRY_SEAL_KEY) == 0))) {
        return false;
    }
    message->seal_key = packed->seal_key.len > 0 ? packed->seal_key.data : NULL;
    if (packed->member != NULL) {
        if (!unpack_member(packed->member, &scratch->member)) {
            return false;
        }
        message->member = &scratch->member;
    }
    if (packed->layout != NULL) {
        if (!unpack_layout(packed->layout, &scratch->layout)) {
            return false;
        }
        message->layout = &scratch->layout;
    }
    if (packed->report != NULL) {
        if (!unpack_report(packed->report, &scratch->report)) {
            return false;
        }
        message->report = &scratch->report;
    }
    if (packed->region != NULL) {
        scratch->region = unpack_region(packed->region);
        message->region = &scratch->region;
    }
    if (packed->mail != NULL) {
        scratch->mail =
            (struct mail_offer){unpack_region(packed->mail->region), packed->mail->index};
        message->mail = &scratch->mail;
    }
    if (packed->loan != NULL) {
        scratch->loan = (struct wire_loan){packed->loan->offset, packed->loan->ticket};
        message->loan = &scratch->loan;
    }
    return true;
}

static bool payload_fits(const Wire__Header *packed, unsigned carries, size_t payload_size)
{
    if (packed->span_offset > LAYOUT_VALUES_MAX || packed->span_count > LAYOUT_VALUES_MAX) {
        return false;
    }
    if ((carries & CARRIES_VALUES) == 0) {
        return payload_size == 0 && !packed->is_code;
    }
    if (packed->is_code) {
        return packed->loan == NULL && packed->span_count > 0 && payload_size > 0;
    }
    size_t expected = packed->loan != NULL ? 0 : packed->span_count * sizeof(float);
    return packed->span_count > 0 && payload_size == expected;
}

enum status wire_decode(const struct wire_frames *frames, struct wire_scratch *scratch,
                        uint32_t *ret_version, struct message *ret_message)
{
    if (frames->header_size > (size_t)WIRE_HEADER_BYTES) {
        return STATUS_MALFORMED;
    }
    struct bump bump = {.bytes = scratch->bytes, .size = sizeof(scratch->bytes)};
    ProtobufCAllocator allocator = {bump_alloc, bump_free, &bump};
    const Wire__Header *packed =
        wire__header__unpack(&allocator, frames->header_size, frames->header);
    if (packed == NULL) {
        return STATUS_MALFORMED;
    }
    *ret_version = packed->version;
    if (packed->version != WIRE_VERSION) {
        return packed->version == 0 ? STATUS_MALFORMED : STATUS_MISMATCH;
    }

    struct message message = {
        .job_id = packed->job_id,
        .rank = packed->rank,
        .step = packed->step,
        .epoch = packed->epoch,
        .bucket = packed->bucket,
        .hop = packed->hop,
        .staleness = packed->staleness,
        .rate = isfinite(packed->rate) ? packed->rate : 0,
        .is_late = packed->is_late,
        .params_version = packed->params_version,
        .vector = packed->vector,
        .is_far = packed->is_far,
        .lane = packed->lane,
        .phase = packed->phase,
        .way = {packed->latency_ns, packed->message_ns, packed->bandwidth},
        .limits = {packed->halving_floats_max, packed->direct_floats_max},
        .bucket_bytes = packed->bucket_bytes,
        .step_ns = packed->step_ns,
        .all_reduce = (enum all_reduce)packed->all_reduce,
        .reason = (enum status)packed->reason,
        .text = packed->text,
        .span = {packed->span_offset, packed->span_count},
    };
    if (!kind_find(packed->kind, &message.kind) || packed->reason >= STATUS_COUNT ||
        packed->all_reduce >= ALL_REDUCE_COUNT) {
        return STATUS_MALFORMED;
    }
    unsigned carries = kinds[message.kind].carries;
    if (!payload_fits(packed, carries, frames->payload_size) ||
        !unpack_parts(packed, carries, scratch, &message)) {
        return STATUS_MALFORMED;
    }
    if (packed->is_code) {
        message.encoded = frames->payload;
        message.encoded_bytes = frames->payload_size;
    } else if ((carries & CARRIES_VALUES) != 0 && message.loan == NULL) {
        assert((uintptr_t)frames->payload % _Alignof(float) == 0);
        message.values = frames->payload;
    }
    *ret_message = message;
    return STATUS_OK;
}
