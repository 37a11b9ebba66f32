/* Packs and checks the parts of messages, each by a list of its fields. */
#include "common/channel/wire_packing.h"

#include <assert.h>
#include <math.h>
#include <string.h>

/* Fields that have the same name and meaning on both sides. */
#define MEMBER_NUMBERS(X) \
    X(has_rank)           \
    X(rank)               \
    X(host_id)            \
    X(process_id)         \
    X(train_samples)      \
    X(test_samples)       \
    X(data_digest)        \
    X(parameters)         \
    X(choices_digest)     \
    X(tensor_count)       \
    X(cores)              \
    X(launch)

#define MEMBER_TEXTS(X) \
    X(host)             \
    X(endpoints)        \
    X(params_digest)    \
    X(tensors)          \
    X(device)           \
    X(optimizer)        \
    X(figures)          \
    X(loopback)

#define REPORT_NUMBERS(X) \
    X(steps)              \
    X(images)             \
    X(compute_ns)         \
    X(exchange_wait_ns)   \
    X(input_wait_ns)      \
    X(total_ns)           \
    X(copy_ns)            \
    X(wire_ns)            \
    X(bytes_sent)         \
    X(bytes_received)     \
    X(epoch)              \
    X(closes_period)      \
    X(period)             \
    X(test_images)        \
    X(test_correct)       \
    X(warm_images)        \
    X(warm_ns)            \
    X(transports)         \
    X(loader_threads)     \
    X(is_repeated)        \
    X(staleness_max)      \
    X(late)               \
    X(backlog)            \
    X(loss_sum)           \
    X(test_loss_sum)

#define REPORT_FINITES(X) \
    X(staleness_sum)      \
    X(rate)               \
    X(images_dropped)

#define START_NUMBERS(X) \
    X(phase)             \
    X(train_samples)     \
    X(bucket_bytes)

#define START_LIMITS(X)   \
    X(halving_floats_max) \
    X(direct_floats_max)

#define PATH_NUMBERS(X) \
    X(latency_ns)       \
    X(message_ns)       \
    X(bandwidth)

#define PASSED_NUMBERS(X) \
    X(phase)              \
    X(step_ns)

#define BACK_NUMBERS(X) \
    X(begin_step)       \
    X(sum_round)        \
    X(snapshot_step)    \
    X(trained_ms)       \
    X(alone_ms)         \
    X(alone_step)       \
    X(term)             \
    X(has_commit)       \
    X(commit_step)

#define DECISION_NUMBERS(X) \
    X(period)               \
    X(is_enough)

#define SUM_NUMBERS(X) \
    X(round)           \
    X(count)

#define OUTCOME_NUMBERS(X) \
    X(staleness)           \
    X(rate)                \
    X(is_late)

#define HELLO_NUMBERS(X) \
    X(lane)              \
    X(is_far)

#define PROBE_NUMBERS(X) \
    X(round)             \
    X(is_answer)

#define REGION_NUMBERS(X) \
    X(process_id)         \
    X(descriptor)         \
    X(size)               \
    X(nonce)

#define WAIT_NUMBERS(X) \
    X(index)            \
    X(waited_ms)        \
    X(taken)            \
    X(is_broken)

#define CLOCK_NUMBERS(X) \
    X(asked_ns)          \
    X(told_ns)

#define COLLECT_NUMBERS(X) X(credits)

#define LOAN_NUMBERS(X) \
    X(offset)           \
    X(ticket)

#define COPY(field)         to->field = from->field;
#define PACK_TEXT(field)    to->field = wire_text(from->field);
#define CHECK_FINITE(field) is_sound = is_sound && isfinite(from->field);
#define PACK_LIMIT(field)   to->field = from->limits.field;
#define TAKE_LIMIT(field)   to->limits.field = from->field;

char *wire_text(const char *text)
{
    union {
        const char *in;
        char *out;
    } cast = {.in = text != NULL ? text : protobuf_c_empty_string};
    return cast.out;
}

uint8_t *wire_bytes(const unsigned char *bytes)
{
    union {
        const unsigned char *in;
        uint8_t *out;
    } cast = {.in = bytes};
    return cast.out;
}

static Wire__Role pack_role(enum member_role role)
{
    return role == ROLE_WORKER ? WIRE__ROLE__ROLE_WORKER : WIRE__ROLE__ROLE_SERVER;
}

static bool unpack_role(Wire__Role from, enum member_role *to)
{
    *to = from == WIRE__ROLE__ROLE_WORKER ? ROLE_WORKER : ROLE_SERVER;
    return from == WIRE__ROLE__ROLE_WORKER || from == WIRE__ROLE__ROLE_SERVER;
}

static void pack_member(const struct wire_member *from, struct wire_packed *packed)
{
    Wire__Member *to = &packed->member;
    to->role = pack_role(from->role);
    MEMBER_NUMBERS(COPY)
    MEMBER_TEXTS(PACK_TEXT)
}

static bool unpack_member(const Wire__Member *from, struct wire_member *to)
{
    MEMBER_NUMBERS(COPY)
    MEMBER_TEXTS(COPY)
    return strlen(from->tensors) < WIRE_TENSORS_BYTES &&
           strlen(from->optimizer) < WIRE_OPTIMIZER_BYTES &&
           strlen(from->figures) < WIRE_FIGURES_BYTES && unpack_role(from->role, &to->role);
}

static void pack_layout(const struct layout *from, struct wire_packed *packed)
{
    Wire__Layout *to = &packed->layout;
    assert(from->bucket_count <= LAYOUT_BUCKETS_MAX);
    for (uint32_t i = 0; i < from->bucket_count; i++) {
        packed->bucket_offsets[i] = from->buckets[i].offset;
        packed->bucket_counts[i] = from->buckets[i].count;
    }
    to->value_count = from->value_count;
    to->digest = from->digest;
    to->n_bucket_offsets = to->n_bucket_counts = from->bucket_count;
    to->bucket_offsets = packed->bucket_offsets;
    to->bucket_counts = packed->bucket_counts;
}

static bool unpack_layout(const Wire__Layout *from, struct layout *to)
{
    if (from->n_bucket_offsets != from->n_bucket_counts ||
        from->n_bucket_offsets > LAYOUT_BUCKETS_MAX) {
        return false;
    }
    to->value_count = from->value_count;
    to->digest = from->digest;
    to->bucket_count = (uint32_t)from->n_bucket_offsets;
    for (uint32_t i = 0; i < to->bucket_count; i++) {
        to->buckets[i] = (struct span){from->bucket_offsets[i], from->bucket_counts[i]};
    }
    return layout_check(to) == STATUS_OK;
}

static void pack_groups(const struct optimizer_groups *from, struct wire_packed *packed)
{
    wire_pack_groups(from, packed);
}

static bool unpack_groups(const Wire__Groups *from, struct optimizer_groups *to)
{
    return wire_unpack_groups(from, to);
}

static void pack_report(const struct wire_report *from, struct wire_packed *packed)
{
    // protobuf-c wants uint64_t *, and does not write through it.
    union {
        const uint64_t *in;
        uint64_t *out;
    } cast = {.in = from->staleness};
    Wire__Report *to = &packed->report;
    REPORT_NUMBERS(COPY)
    REPORT_FINITES(COPY)
    to->staleness = cast.out;
    to->n_staleness = from->staleness_bins;
}

/* A loss may be non-finite, because the job has to be told of it. */
static bool unpack_report(const Wire__Report *from, struct wire_report *to)
{
    bool is_sound =
        from->n_staleness <= WIRE_STALENESS_MAX && (from->transports & ~WIRE_TRANSPORTS_ALL) == 0;
    REPORT_FINITES(CHECK_FINITE)
    if (!is_sound) {
        return false;
    }
    REPORT_NUMBERS(COPY)
    REPORT_FINITES(COPY)
    to->staleness = from->staleness;
    to->staleness_bins = (uint32_t)from->n_staleness;
    return true;
}

static void pack_slices(const struct wire_slices *from, struct wire_packed *packed)
{
    // As above.
    union {
        const uint64_t *in;
        uint64_t *out;
    } images = {.in = from->images};
    union {
        const double *in;
        double *out;
    } loss_sums = {.in = from->loss_sums};
    assert(from->count <= WIRE_SLICES_MAX);
    packed->slices.n_images = packed->slices.n_loss_sums = from->count;
    packed->slices.images = images.out;
    packed->slices.loss_sums = loss_sums.out;
}

static bool unpack_slices(const Wire__Slices *from, struct wire_slices *to)
{
    if (from->n_images != from->n_loss_sums || from->n_images == 0 ||
        from->n_images > WIRE_SLICES_MAX) {
        return false;
    }
    *to = (struct wire_slices){(uint32_t)from->n_images, from->images, from->loss_sums};
    return true;
}

static void pack_start(const struct wire_start *from, struct wire_packed *packed)
{
    Wire__Start *to = &packed->start;
    START_NUMBERS(COPY)
    START_LIMITS(PACK_LIMIT)
    to->all_reduce = (uint32_t)from->all_reduce;
}

static bool unpack_start(const Wire__Start *from, struct wire_start *to)
{
    START_NUMBERS(COPY)
    START_LIMITS(TAKE_LIMIT)
    to->all_reduce = (enum all_reduce)from->all_reduce;
    return from->all_reduce < ALL_REDUCE_COUNT;
}

/* Its bytes are the caller's. */
static void pack_nccl(const struct wire_nccl *from, struct wire_packed *packed)
{
    Wire__Nccl *to = &packed->nccl;
    to->version = from->version;
    if (from->has_id) {
        to->id = (ProtobufCBinaryData){sizeof(from->id), wire_bytes(from->id)};
    }
    if (from->has_gpu) {
        to->gpu = (ProtobufCBinaryData){sizeof(from->gpu), wire_bytes(from->gpu)};
    }
}

static bool unpack_nccl(const Wire__Nccl *from, struct wire_nccl *to)
{
    if ((from->id.len != 0 && from->id.len != sizeof(to->id)) ||
        (from->gpu.len != 0 && from->gpu.len != sizeof(to->gpu))) {
        return false;
    }
    *to = (struct wire_nccl){
        .version = from->version, .has_id = from->id.len != 0, .has_gpu = from->gpu.len != 0};
    if (to->has_id) {
        memcpy(to->id, from->id.data, sizeof(to->id));
    }
    if (to->has_gpu) {
        memcpy(to->gpu, from->gpu.data, sizeof(to->gpu));
    }
    return true;
}

/* Packs and unpacks a part whose fields are copied and may have any value. */
#define PLAIN_PART(part, unpacked_type, packed_type, FIELDS)                       \
    static void pack_##part(const unpacked_type *from, struct wire_packed *packed) \
    {                                                                              \
        packed_type *to = &packed->part;                                           \
        FIELDS(COPY)                                                               \
    }                                                                              \
    static bool unpack_##part(const packed_type *from, unpacked_type *to)          \
    {                                                                              \
        FIELDS(COPY)                                                               \
        return true;                                                               \
    }

PLAIN_PART(path, struct all_reduce_path, Wire__Path, PATH_NUMBERS)
PLAIN_PART(passed, struct wire_passed, Wire__Passed, PASSED_NUMBERS)
PLAIN_PART(back, struct wire_back, Wire__Back, BACK_NUMBERS)
PLAIN_PART(decision, struct wire_decision, Wire__Decision, DECISION_NUMBERS)
PLAIN_PART(hello, struct wire_hello, Wire__Hello, HELLO_NUMBERS)
PLAIN_PART(probe, struct wire_probe, Wire__Probe, PROBE_NUMBERS)
PLAIN_PART(clock, struct wire_clock, Wire__Clock, CLOCK_NUMBERS)
PLAIN_PART(collect, struct wire_collect, Wire__Collect, COLLECT_NUMBERS)
PLAIN_PART(loan, struct wire_loan, Wire__Loan, LOAN_NUMBERS)

static void pack_wait(const struct wire_wait *from, struct wire_packed *packed)
{
    Wire__Wait *to = &packed->wait;
    union { // protobuf-c does not write through the pointer
        const uint64_t *in;
        uint64_t *out;
    } given = {.in = from->given};
    assert(from->given_count <= JOB_WORKERS_MAX && from->what < WIRE_WAIT_COUNT);
    WAIT_NUMBERS(COPY)
    to->role = pack_role(from->role);
    to->what = (uint32_t)from->what;
    to->n_given = from->given_count;
    to->given = given.out;
}

static bool unpack_wait(const Wire__Wait *from, struct wire_wait *to)
{
    if (from->what >= WIRE_WAIT_COUNT || from->n_given > JOB_WORKERS_MAX) {
        return false;
    }
    WAIT_NUMBERS(COPY)
    to->what = (enum wire_wait_for)from->what;
    to->given_count = (uint32_t)from->n_given;
    to->given = from->given;
    return unpack_role(from->role, &to->role);
}

static void pack_sum(const struct wire_sum *from, struct wire_packed *packed)
{
    Wire__Sum *to = &packed->sum;
    SUM_NUMBERS(COPY)
}

/* Packs a sum without its values, which are the payload. */
static bool unpack_sum(const Wire__Sum *from, struct wire_sum *to)
{
    SUM_NUMBERS(COPY)
    to->values = NULL;
    return from->count > 0;
}

static void pack_outcome(const struct wire_outcome *from, struct wire_packed *packed)
{
    Wire__Outcome *to = &packed->outcome;
    OUTCOME_NUMBERS(COPY)
}

static bool unpack_outcome(const Wire__Outcome *from, struct wire_outcome *to)
{
    OUTCOME_NUMBERS(COPY)
    return isfinite(from->rate);
}

static void pack_piece(const struct wire_piece *from, struct wire_packed *packed)
{
    packed->piece.vector = wire_text(from->vector);
    packed->piece.total = from->total;
}

static bool unpack_piece(const Wire__Piece *from, struct wire_piece *to)
{
    *to = (struct wire_piece){.vector = from->vector, .total = from->total};
    return from->total <= LAYOUT_VALUES_MAX;
}

static void pack_region(const struct region_key *from, Wire__Region *to)
{
    wire__region__init(to);
    REGION_NUMBERS(COPY)
}

static void unpack_region(const Wire__Region *from, struct region_key *to)
{
    REGION_NUMBERS(COPY)
}

static void pack_offer(const struct wire_offer *from, struct wire_packed *packed)
{
    pack_region(&from->region, &packed->region);
    packed->offer.region = &packed->region;
    if (from->has_mail) {
        wire__mail__init(&packed->mail);
        pack_region(&from->mail.region, &packed->mail_region);
        packed->mail.region = &packed->mail_region;
        packed->mail.index = from->mail.index;
        packed->offer.mail = &packed->mail;
    }
    if (from->has_share) {
        memcpy(packed->share, from->share, sizeof(packed->share));
        packed->offer.share = (ProtobufCBinaryData){sizeof(packed->share), packed->share};
    }
}

static bool unpack_offer(const Wire__Offer *from, struct wire_offer *to)
{
    if (from->region == NULL || (from->mail != NULL && from->mail->region == NULL) ||
        (from->share.len != 0 && from->share.len != sizeof(to->share))) {
        return false;
    }
    *to = (struct wire_offer){.has_mail = from->mail != NULL, .has_share = from->share.len != 0};
    if (to->has_share) {
        memcpy(to->share, from->share.data, sizeof(to->share));
    }
    unpack_region(from->region, &to->region);
    if (to->has_mail) {
        unpack_region(from->mail->region, &to->mail.region);
        to->mail.index = from->mail->index;
    }
    return true;
}

void wire_pack_parts(const struct message *message, struct wire_packed *packed,
                     Wire__Header *header)
{
#define PACK_PART(part, bit)                 \
    if (message->part != NULL) {             \
        wire__##part##__init(&packed->part); \
        pack_##part(message->part, packed);  \
        header->part = &packed->part;        \
    }
    WIRE_PARTS(PACK_PART)
}

unsigned wire_parts_of(const Wire__Header *header)
{
    unsigned parts = 0;
#define ADD_PART(part, bit) parts |= header->part != NULL ? (unsigned)(bit) : 0u;
    WIRE_PARTS(ADD_PART)
    return parts;
}

bool wire_unpack_parts(const Wire__Header *header, struct wire_scratch *scratch,
                       struct message *message)
{
    scratch->groups.groups = scratch->group_rows;
#define UNPACK_PART(part, bit)                              \
    if (header->part != NULL) {                             \
        if (!unpack_##part(header->part, &scratch->part)) { \
            return false;                                   \
        }                                                   \
        message->part = &scratch->part;                     \
    }
    WIRE_PARTS(UNPACK_PART)
    return true;
}
