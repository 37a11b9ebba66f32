/* Defines the wire protocol: struct message <-> header bytes.
 *
 * Only wire.c and wire_packing.c see the classes generated from proto/wire.proto. By the time a
 * struct message exists, everything that a peer sent has been checked: kinds, ranges, counts that
 * match the payload's size. Decoding works in a fixed scratch space, allocates nothing and never
 * asserts on its input. */
#ifndef COMMON_CHANNEL_WIRE_H
#define COMMON_CHANNEL_WIRE_H

#include "common/base/status.h"
#include "common/channel/wire_parts.h"
#include "common/vector/layout.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WIRE_VERSION        16
#define WIRE_SCRATCH_BYTES  ((size_t)256 * 1024) // what a decoded header may take
#define WIRE_STALENESS_MAX  4096                 // bins of a histogram
#define WIRE_HEADER_BYTES   ((size_t)128 * 1024) // longest header on the wire
#define WIRE_SEAL_KEY_BYTES 32
#define WIRE_CLASSES_BYTES  ((size_t)4 << 20)   // of the names of classes together
#define WIRE_CHOICES_BYTES  ((size_t)64 * 1024) // of the text of CHOICES, with the '\0'

enum message_kind {
    MESSAGE_JOIN,      // member -> coordinator: wants to take part
    MESSAGE_WELCOME,   // coordinator -> member: its rank, and the job
    MESSAGE_REFUSE,    // coordinator or shard -> member: why it may not; the connection is over
    MESSAGE_READY,     // member -> coordinator: prepared; its layout and its endpoints
    MESSAGE_START,     // coordinator -> member: all are ready; where the others are
    MESSAGE_TRY,       // coordinator -> worker: where the others are; find out what is possible
    MESSAGE_PROBE,     // worker -> worker, and back: measures the path between them
    MESSAGE_TRIED,     // worker -> coordinator: `reason` is why memory cannot be mapped, or OK
    MESSAGE_CONNECTED, // member -> coordinator: knows the others, can take their messages
    MESSAGE_GO,        // coordinator -> member: all others can, too; data may travel
    MESSAGE_HEARTBEAT, // both ways, every heartbeat interval
    MESSAGE_REPORT,    // worker -> coordinator: what was done since the last report
    MESSAGE_DONE,      // member -> coordinator: all steps done; digest of its parameters
    MESSAGE_LEAVE,     // member -> coordinator: gives up, and why
    MESSAGE_STOP,      // coordinator -> member: the job is over, and why
    MESSAGE_HELLO,     // worker -> shard or worker: which worker this connection is from
    MESSAGE_SEED,      // rank 0 -> shard: first parameters of `span`
    MESSAGE_PUSH,      // worker -> shard: gradients of `span` at `step`
    MESSAGE_PULL,      // worker -> shard: wants parameters of `bucket` for `step`
    MESSAGE_TAKEN,     // shard -> worker: has the gradients of `bucket` at `step`
    MESSAGE_PARAMS,    // shard -> worker: parameters of `span` for `step`
    MESSAGE_CHUNK,     // worker -> worker in a ring phase: values, sums or means
    MESSAGE_OFFER,     // to a peer on this host: memory of the sender that it may map
    MESSAGE_MAPPED,    // the answer: done, or why not
    MESSAGE_RETURN,    // values that were lent have been read
    MESSAGE_PASSED,    // worker -> coordinator: has ended a phase, and what it needs of it is here
    MESSAGE_PROCEED,   // coordinator -> worker: a period was evaluated; whether to go on
    MESSAGE_SUM, // worker -> coordinator: doubles, to be added up over workers; the answer: their
                 // sum
    MESSAGE_CHOICES,  // rank 0 -> coordinator: how its device computes, before READY. Another
                      // worker: asks for that; the answer, once it is known: "" if there is none
    MESSAGE_GREET,    // to who listens: the first message of a connection for data
    MESSAGE_SNAPSHOT, // coordinator -> member: take a snapshot after `step` steps; the answer: it
                      // is there, or `reason` is why not
    MESSAGE_COLLECT,  // coordinator -> member: send pieces of the snapshot; or, with a reason, drop
                      // it
    MESSAGE_PIECE,    // member -> coordinator: of a snapshot; the answer to FETCH: of a checkpoint
    MESSAGE_FETCH,    // member -> coordinator: wants `span` of a vector of the checkpoint
    MESSAGE_CLASSES,  // worker 0 -> coordinator: a piece of the names of its data's classes, a list
                      // in JSON, before READY; `span` has its offset, and the bytes of the list
    MESSAGE_BACK,     // member -> coordinator: its job's coordinator was lost, and it trains, if it
                  // says in which phase (START); the answer is GO, once all members are back, or
                  // STOP: they join anew
    MESSAGE_COMMIT, // worker -> coordinator: its program can go on from `step` steps; a sum of
                    // all follows
    MESSAGE_KIND_COUNT
};

/* Each kind uses the numbers that mean something to it; the others are 0. */
struct message {
    enum message_kind kind;
    uint64_t job_id;
    uint32_t rank;           // of the worker that this message is from or for; STOP: how many
                             // newcomers are the reason
    uint64_t step;           // of training, from 0; WELCOME, START, COMMIT, READY of a program that
                             // commits, and of checkpoints: steps made; JOIN: those made before
    uint32_t bucket;         // kinds that carry values, PULL, TAKEN
    uint32_t hop;            // CHUNK: as ring_plan.h or halving_plan.h counts them
    uint32_t vector;         // SEED, PULL, PARAMS: 0 parameters; from 1 states of the optimizer
    uint64_t params_version; // PARAMS: how many updates were made; PULL: how many at least; 0: any
                             // number
    uint64_t mark;           // PULL: whose parameters are wanted, from 1; 0: those to go on with.
                             // PARAMS: whose these are, or how many marks were passed
    uint64_t patience_ms;    // HEARTBEAT of the coordinator: how long it may be silent; 0: not said
    uint64_t flow;           // its number in a timeline; 0: it is in none
    uint32_t generation;     // WELCOME, BACK: how often the job has gone on with other processes;
                             // JOIN: not 0, if it was in the job before
    uint32_t term;           // GO: how many coordinators have taken its members in since
    enum status reason;      // HEARTBEAT with AGAIN: the coordinator has begun anew: say BACK;
                             // SNAPSHOT with AGAIN: a server is to keep what it has, and answers
                             // how many gradients that is; WELCOME: servers go on from that
    const char *text;        // never NULL after decode

    // Parts. Each kind has those that the table of wire.c says, the others are NULL; borrowed.
    const struct wire_member *member;      // JOIN, READY, DONE, BACK
    const struct layout *layout;           // READY of a worker, START, BACK
    const struct optimizer_groups *groups; // READY, START, BACK: of a program, with runs; PUSH:
                                           // without. Counts, order and finiteness are checked
    const struct wire_report *report;      // REPORT, DONE; SNAPSHOT, WELCOME: of the open period;
                                           // SNAPSHOT of a server: what it has counted
    const struct wire_slices *slices;      // SNAPSHOT of a worker, WELCOME: ranks' parts of that
    const struct wire_start *start;        // START, TRY, BACK
    const struct wire_nccl *nccl;          // READY of a worker, START; where NCCL is used
    const struct all_reduce_path *path;    // TRIED: to the next worker
    const struct wire_passed *passed;      // PASSED
    const struct wire_back *back;          // BACK
    const struct wire_decision *decision;  // PROCEED
    const struct wire_sum *sum;            // SUM; BACK: the last that is over
    const struct wire_outcome *outcome;    // PARAMS of unsynchronised workers
    const struct wire_hello *hello;        // HELLO
    const struct wire_probe *probe;        // PROBE
    const struct wire_offer *offer;        // OFFER
    const struct wire_piece *piece;        // PIECE, FETCH
    const struct wire_collect *collect;    // COLLECT
    const struct wire_wait *wait;          // HEARTBEAT of a member that waits for another one
    const struct wire_clock *clock;        // HEARTBEAT, where there is a timeline
    const struct wire_loan *loan;          // RETURN; kinds that carry values: where they are
    const unsigned char *seal_key;         // WELCOME: (WIRE_SEAL_KEY_BYTES)

    struct span span;
    const float *values; // span.count floats, or NULL; borrowed. After decode NULL for a loan

    // In the place of values: the encoded ones, as codec.h has it; borrowed. PARAMS: a change.
    const void *encoded;
    size_t encoded_bytes;
};

/* Memory for a decoded message. It is large, so a channel has one. */
struct wire_scratch {
    _Alignas(16) unsigned char bytes[WIRE_SCRATCH_BYTES];
    struct wire_member member;
    struct layout layout;
    struct optimizer_groups groups;
    struct optimizer_group group_rows[OPTIMIZER_GROUPS_MAX];
    struct wire_report report;
    struct wire_slices slices;
    struct wire_start start;
    struct wire_nccl nccl;
    struct all_reduce_path path;
    struct wire_passed passed;
    struct wire_back back;
    struct wire_decision decision;
    struct wire_sum sum;
    struct wire_outcome outcome;
    struct wire_hello hello;
    struct wire_probe probe;
    struct wire_offer offer;
    struct wire_piece piece;
    struct wire_collect collect;
    struct wire_wait wait;
    struct wire_clock clock;
    struct wire_loan loan;
};

/* "PUSH"; for logs. */
const char *message_kind_name(enum message_kind kind);

/* The payload frame of a message: values, encoded bytes or doubles as they are; nothing for a
 * loan. */
struct wire_payload {
    const void *bytes; // borrowed; NULL: none
    size_t size;
};
struct wire_payload wire_payload(const struct message *message);

/* Packs the header. Returns STATUS_INVALID if it is longer than header_size. */
enum status wire_encode(const struct message *message, void *ret_header, size_t header_size,
                        size_t *ret_bytes);

/* The frames of one message, as they came. */
struct wire_frames {
    const void *header;
    size_t header_size;
    const void *payload; // aligned for float; NULL if there is none
    size_t payload_size;
};

/* Returns STATUS_MALFORMED for anything that this version would not send, and STATUS_MISMATCH for a
 * sound header of another version (*ret_version says which). *ret_message borrows from the payload
 * and the scratch. */
enum status wire_decode(const struct wire_frames *frames, struct wire_scratch *scratch,
                        uint32_t *ret_version, struct message *ret_message);

#endif
