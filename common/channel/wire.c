/* Packs message headers, and checks and unpacks received ones.
 *
 * A table says for each kind which parts it must and may have. Decoding rejects a message that
 * lacks a part or has another one. Unpacking uses a bump allocator over the caller's scratch, so a
 * hostile header cannot cause allocations. */
#include "common/channel/wire.h"

#include "common/base/bump.h"
#include "common/channel/wire_packing.h"
#include "common/job/job_text.h"

#include <protobuf-c/protobuf-c.h>

#include <assert.h>
#include <string.h>

// Parts that are not among those of wire_packing.h: values in the payload, or lent, or encoded; a
// key for seals.
#define PART_VALUES   (1u << 30)
#define PART_SEAL_KEY (1u << 31)

struct kind_row {
    const char *name;
    Wire__Kind wire;
    unsigned must_have, may_have; // sums of parts
};

static const struct kind_row kinds[MESSAGE_KIND_COUNT] = {
    [MESSAGE_JOIN] = {"JOIN", WIRE__KIND__KIND_JOIN, PART_MEMBER, 0},
    [MESSAGE_WELCOME] = {"WELCOME", WIRE__KIND__KIND_WELCOME, 0,
                         PART_SEAL_KEY | PART_REPORT | PART_SLICES},
    [MESSAGE_REFUSE] = {"REFUSE", WIRE__KIND__KIND_REFUSE, 0, 0},
    [MESSAGE_READY] = {"READY", WIRE__KIND__KIND_READY, PART_MEMBER,
                       PART_LAYOUT | PART_NCCL | PART_GROUPS},
    [MESSAGE_START] = {"START", WIRE__KIND__KIND_START, PART_LAYOUT | PART_START,
                       PART_NCCL | PART_GROUPS},
    [MESSAGE_TRY] = {"TRY", WIRE__KIND__KIND_TRY, PART_START, 0},
    [MESSAGE_PROBE] = {"PROBE", WIRE__KIND__KIND_PROBE, PART_VALUES | PART_PROBE, PART_LOAN},
    [MESSAGE_TRIED] = {"TRIED", WIRE__KIND__KIND_TRIED, PART_PATH, 0},
    [MESSAGE_CONNECTED] = {"CONNECTED", WIRE__KIND__KIND_CONNECTED, 0, 0},
    [MESSAGE_GO] = {"GO", WIRE__KIND__KIND_GO, 0, 0},
    [MESSAGE_HEARTBEAT] = {"HEARTBEAT", WIRE__KIND__KIND_HEARTBEAT, 0, PART_WAIT | PART_CLOCK},
    [MESSAGE_REPORT] = {"REPORT", WIRE__KIND__KIND_REPORT, PART_REPORT, 0},
    [MESSAGE_DONE] = {"DONE", WIRE__KIND__KIND_DONE, PART_MEMBER | PART_REPORT, 0},
    [MESSAGE_LEAVE] = {"LEAVE", WIRE__KIND__KIND_LEAVE, 0, 0},
    [MESSAGE_STOP] = {"STOP", WIRE__KIND__KIND_STOP, 0, 0},
    [MESSAGE_HELLO] = {"HELLO", WIRE__KIND__KIND_HELLO, PART_HELLO, 0},
    [MESSAGE_SEED] = {"SEED", WIRE__KIND__KIND_SEED, PART_VALUES, PART_LOAN},
    [MESSAGE_PUSH] = {"PUSH", WIRE__KIND__KIND_PUSH, PART_VALUES, PART_LOAN | PART_GROUPS},
    [MESSAGE_PULL] = {"PULL", WIRE__KIND__KIND_PULL, 0, 0},
    [MESSAGE_TAKEN] = {"TAKEN", WIRE__KIND__KIND_TAKEN, 0, 0},
    [MESSAGE_PARAMS] = {"PARAMS", WIRE__KIND__KIND_PARAMS, PART_VALUES, PART_LOAN | PART_OUTCOME},
    [MESSAGE_CHUNK] = {"CHUNK", WIRE__KIND__KIND_CHUNK, PART_VALUES, PART_LOAN},
    [MESSAGE_OFFER] = {"OFFER", WIRE__KIND__KIND_OFFER, PART_OFFER, 0},
    [MESSAGE_MAPPED] = {"MAPPED", WIRE__KIND__KIND_MAPPED, 0, 0},
    [MESSAGE_RETURN] = {"RETURN", WIRE__KIND__KIND_RETURN, PART_LOAN, 0},
    [MESSAGE_PASSED] = {"PASSED", WIRE__KIND__KIND_PASSED, PART_PASSED, 0},
    [MESSAGE_PROCEED] = {"PROCEED", WIRE__KIND__KIND_PROCEED, PART_DECISION, 0},
    [MESSAGE_SUM] = {"SUM", WIRE__KIND__KIND_SUM, PART_SUM, 0},
    [MESSAGE_CHOICES] = {"CHOICES", WIRE__KIND__KIND_CHOICES, 0, 0},
    [MESSAGE_GREET] = {"GREET", WIRE__KIND__KIND_GREET, 0, 0},
    [MESSAGE_SNAPSHOT] = {"SNAPSHOT", WIRE__KIND__KIND_SNAPSHOT, 0, PART_REPORT | PART_SLICES},
    [MESSAGE_COLLECT] = {"COLLECT", WIRE__KIND__KIND_COLLECT, PART_COLLECT, 0},
    [MESSAGE_PIECE] = {"PIECE", WIRE__KIND__KIND_PIECE, PART_PIECE, PART_VALUES},
    [MESSAGE_FETCH] = {"FETCH", WIRE__KIND__KIND_FETCH, PART_PIECE, 0},
    [MESSAGE_CLASSES] = {"CLASSES", WIRE__KIND__KIND_CLASSES, 0, 0},
    [MESSAGE_BACK] = {"BACK", WIRE__KIND__KIND_BACK, PART_MEMBER | PART_BACK,
                      PART_LAYOUT | PART_START | PART_SUM | PART_GROUPS},
    [MESSAGE_COMMIT] = {"COMMIT", WIRE__KIND__KIND_COMMIT, 0, 0},
};

// Numbers of the header that have the same name and meaning on both sides.
#define HEADER_NUMBERS(X) \
    X(job_id)             \
    X(rank)               \
    X(step)               \
    X(bucket)             \
    X(hop)                \
    X(vector)             \
    X(params_version)     \
    X(mark)               \
    X(patience_ms)        \
    X(flow)               \
    X(generation)         \
    X(term)

#define COPY(field) to->field = from->field;

const char *message_kind_name(enum message_kind kind)
{
    return (unsigned)kind < MESSAGE_KIND_COUNT ? kinds[kind].name : "unknown kind";
}

struct wire_payload wire_payload(const struct message *message)
{
    if (message->encoded != NULL) {
        return (struct wire_payload){message->encoded, message->encoded_bytes};
    }
    if (message->values != NULL) {
        return (struct wire_payload){message->values, message->span.count * sizeof(float)};
    }
    if (message->sum != NULL) {
        return (struct wire_payload){message->sum->values, message->sum->count * sizeof(double)};
    }
    return (struct wire_payload){NULL, 0};
}

static void pack_header(const struct message *from, Wire__Header *to)
{
    wire__header__init(to);
    to->version = WIRE_VERSION;
    to->kind = kinds[from->kind].wire;
    HEADER_NUMBERS(COPY)
    to->reason = (uint32_t)from->reason;
    to->text = wire_text(from->text);
    to->span_offset = from->span.offset;
    to->span_count = from->span.count;
    to->is_code = from->encoded != NULL;
    if (from->seal_key != NULL) {
        to->seal_key = (ProtobufCBinaryData){WIRE_SEAL_KEY_BYTES, wire_bytes(from->seal_key)};
    }
}

/* Finds the parts that only the header and the payload show. */
static unsigned other_parts(const Wire__Header *header, size_t payload_size)
{
    bool has_values = header->sum == NULL && (payload_size > 0 || header->is_code);
    // A RETURN names a loan without a span.
    bool is_lent = header->loan != NULL && header->span_count > 0;
    return (has_values || is_lent ? PART_VALUES : 0u) |
           (header->seal_key.len > 0 ? PART_SEAL_KEY : 0u);
}

enum status wire_encode(const struct message *message, void *ret_header, size_t header_size,
                        size_t *ret_bytes)
{
    assert((unsigned)message->kind < MESSAGE_KIND_COUNT);
    Wire__Header header;
    struct wire_packed packed;
    pack_header(message, &header);
    wire_pack_parts(message, &packed, &header);
    unsigned parts = wire_parts_of(&header) | other_parts(&header, wire_payload(message).size);
    assert((kinds[message->kind].must_have & ~parts) == 0);
    (void)parts;

    size_t bytes = wire__header__get_packed_size(&header);
    if (bytes > header_size) {
        return STATUS_INVALID;
    }
    *ret_bytes = wire__header__pack(&header, ret_header);
    assert(*ret_bytes == bytes);
    return STATUS_OK;
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

/* Whether the message has the parts that its kind has. */
static bool has_its_parts(const struct kind_row *kind, const Wire__Header *header,
                          size_t payload_size)
{
    unsigned parts = wire_parts_of(header) | other_parts(header, payload_size);
    return (kind->must_have & ~parts) == 0 && (parts & ~(kind->must_have | kind->may_have)) == 0;
}

static bool payload_fits(const Wire__Header *header, size_t payload_size)
{
    if (header->span_offset > LAYOUT_VALUES_MAX || header->span_count > LAYOUT_VALUES_MAX) {
        return false;
    }
    if (header->sum != NULL) {
        return payload_size == header->sum->count * sizeof(double);
    }
    if (header->is_code) {
        return header->loan == NULL && header->span_count > 0 && payload_size > 0;
    }
    return payload_size == 0 ||
           (header->loan == NULL && payload_size == header->span_count * sizeof(float));
}

/* Whether a piece has no control characters, and the text that it is of is not too long. */
static bool classes_fit(const Wire__Header *header)
{
    const unsigned char *text = (const unsigned char *)header->text;
    size_t length = 0;
    while (text[length] >= ' ' && text[length] != 0x7F) {
        length++;
    }
    return text[length] == '\0' && header->span_count <= WIRE_CLASSES_BYTES;
}

/* Whether a text that goes into files is lines of printable characters, and fits where it goes. */
static bool text_fits(const Wire__Header *header, enum message_kind kind)
{
    const char *text = header->text;
    size_t length = 0;
    if (kind == MESSAGE_CLASSES) {
        return classes_fit(header);
    }
    if (kind == MESSAGE_READY) {
        return strlen(text) < JOB_OPTIMIZER_TEXT_BYTES;
    }
    if (kind != MESSAGE_CHOICES) {
        return true;
    }
    while (text[length] == '\n' || (text[length] >= ' ' && text[length] <= '~')) {
        length++;
    }
    return text[length] == '\0' && length < WIRE_CHOICES_BYTES;
}

/* The parts of the message, and its payload. */
static bool unpack_rest(const Wire__Header *header, const struct wire_frames *frames,
                        struct wire_scratch *scratch, struct message *message)
{
    if (!wire_unpack_parts(header, scratch, message) ||
        (header->seal_key.len > 0 && header->seal_key.len != WIRE_SEAL_KEY_BYTES)) {
        return false;
    }
    message->seal_key = header->seal_key.len > 0 ? header->seal_key.data : NULL;
    if (message->sum != NULL) {
        scratch->sum.values = frames->payload;
    } else if (header->is_code) {
        message->encoded = frames->payload;
        message->encoded_bytes = frames->payload_size;
    } else if (frames->payload_size > 0) {
        assert((uintptr_t)frames->payload % _Alignof(float) == 0);
        message->values = frames->payload;
    }
    return true;
}

static enum status unpack_header(const Wire__Header *from, const struct wire_frames *frames,
                                 struct wire_scratch *scratch, struct message *to)
{
    *to = (struct message){.text = from->text, .span = {from->span_offset, from->span_count}};
    HEADER_NUMBERS(COPY)
    if (!kind_find(from->kind, &to->kind) || from->reason >= STATUS_COUNT) {
        return STATUS_MALFORMED;
    }
    to->reason = (enum status)from->reason;
    return text_fits(from, to->kind) && payload_fits(from, frames->payload_size) &&
                   has_its_parts(&kinds[to->kind], from, frames->payload_size) &&
                   unpack_rest(from, frames, scratch, to)
               ? STATUS_OK
               : STATUS_MALFORMED;
}

enum status wire_decode(const struct wire_frames *frames, struct wire_scratch *scratch,
                        uint32_t *ret_version, struct message *ret_message)
{
    if (frames->header_size > (size_t)WIRE_HEADER_BYTES) {
        return STATUS_MALFORMED;
    }
    struct bump bump = {.bytes = scratch->bytes, .size = sizeof(scratch->bytes)};
    ProtobufCAllocator allocator = {bump_alloc, bump_free, &bump};
    const Wire__Header *header =
        wire__header__unpack(&allocator, frames->header_size, frames->header);
    if (header == NULL) {
        return STATUS_MALFORMED;
    }
    *ret_version = header->version;
    if (header->version != WIRE_VERSION) {
        return header->version == 0 ? STATUS_MALFORMED : STATUS_MISMATCH;
    }
    struct message message;
    enum status status = unpack_header(header, frames, scratch, &message);
    if (status == STATUS_OK) {
        *ret_message = message;
    }
    return status;
}
