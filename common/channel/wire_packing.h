/* Converts parts of messages to and from the classes generated from proto/wire.proto. For wire.c
 * alone. */
#ifndef COMMON_CHANNEL_WIRE_PACKING_H
#define COMMON_CHANNEL_WIRE_PACKING_H

#include "common/channel/wire.h"
#include "wire.pb-c.h"

/* Every part has its own bit, and the same name in struct message, the scratch and wire.proto. */
#define WIRE_PARTS(X)          \
    X(member, PART_MEMBER)     \
    X(layout, PART_LAYOUT)     \
    X(groups, PART_GROUPS)     \
    X(report, PART_REPORT)     \
    X(slices, PART_SLICES)     \
    X(start, PART_START)       \
    X(nccl, PART_NCCL)         \
    X(path, PART_PATH)         \
    X(passed, PART_PASSED)     \
    X(back, PART_BACK)         \
    X(decision, PART_DECISION) \
    X(sum, PART_SUM)           \
    X(outcome, PART_OUTCOME)   \
    X(hello, PART_HELLO)       \
    X(probe, PART_PROBE)       \
    X(offer, PART_OFFER)       \
    X(piece, PART_PIECE)       \
    X(collect, PART_COLLECT)   \
    X(wait, PART_WAIT)         \
    X(clock, PART_CLOCK)       \
    X(loan, PART_LOAN)

enum wire_part {
    PART_MEMBER = 1 << 0,
    PART_LAYOUT = 1 << 1,
    PART_REPORT = 1 << 2,
    PART_START = 1 << 3,
    PART_PATH = 1 << 4,
    PART_PASSED = 1 << 5,
    PART_DECISION = 1 << 6,
    PART_SUM = 1 << 7,
    PART_OUTCOME = 1 << 8,
    PART_HELLO = 1 << 9,
    PART_PROBE = 1 << 10,
    PART_OFFER = 1 << 11,
    PART_LOAN = 1 << 12,
    PART_NCCL = 1 << 13,
    PART_PIECE = 1 << 14,
    PART_COLLECT = 1 << 15,
    PART_SLICES = 1 << 16,
    PART_WAIT = 1 << 17,
    PART_CLOCK = 1 << 18,
    PART_GROUPS = 1 << 19,
    PART_BACK = 1 << 20,
};

/* What a packed header points to. */
struct wire_packed {
    Wire__Member member;
    Wire__Layout layout;
    uint64_t bucket_offsets[LAYOUT_BUCKETS_MAX], bucket_counts[LAYOUT_BUCKETS_MAX];
    Wire__Groups groups;
    Wire__Group group_rows[OPTIMIZER_GROUPS_MAX], *group_list[OPTIMIZER_GROUPS_MAX];
    Wire__Report report;
    Wire__Slices slices;
    Wire__Start start;
    Wire__Nccl nccl;
    Wire__Path path;
    Wire__Passed passed;
    Wire__Back back;
    Wire__Decision decision;
    Wire__Sum sum;
    Wire__Outcome outcome;
    Wire__Hello hello;
    Wire__Probe probe;
    Wire__Offer offer;
    Wire__Region region, mail_region;        // of the offer
    unsigned char share[VECTOR_SHARE_BYTES]; // likewise
    Wire__Mail mail;
    Wire__Loan loan;
    Wire__Piece piece;
    Wire__Collect collect;
    Wire__Wait wait;
    Wire__Clock clock;
};

/* Removes const for protobuf-c, which does not write through the pointer. */
char *wire_text(const char *text); // NULL is ""
uint8_t *wire_bytes(const unsigned char *bytes);

/* Packs the parts that the message has into *packed, and points the header to them. */
void wire_pack_parts(const struct message *message, struct wire_packed *packed,
                     Wire__Header *header);

/* wire_groups.c: of groups. Before unpacking, to->groups points to room for the most there are. */
void wire_pack_groups(const struct optimizer_groups *from, struct wire_packed *packed);
bool wire_unpack_groups(const Wire__Groups *from, struct optimizer_groups *to);

/* Returns the parts that came: a sum of enum wire_part. */
unsigned wire_parts_of(const Wire__Header *header);

/* Unpacks those parts into the scratch, and points the message to them. Returns false if one makes
 * no sense. */
bool wire_unpack_parts(const Wire__Header *header, struct wire_scratch *scratch,
                       struct message *message);

#endif
