/* The wire protocol: struct message <-> header bytes.
 *
 * wire.c is the only file that sees the classes generated from proto/wire.proto. Everything a peer
 * sent has been checked by the time a struct message exists: kinds, ranges, counts that match the
 * payload's size. Decoding works in a fixed scratch space, allocates nothing and never asserts on
 * its input. */
#ifndef COMMON_CHANNEL_WIRE_H
#define COMMON_CHANNEL_WIRE_H

#include "common/base/region.h"
#include "common/base/status.h"
#include "common/channel/mail.h"
#include "common/job/all_reduce.h"
#include "common/vector/layout.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WIRE_VERSION        12
#define WIRE_SCRATCH_BYTES  ((size_t)256 * 1024) // what a decoded header may take
#define WIRE_STALENESS_MAX  4096                 // bins of a histogram
#define WIRE_HEADER_BYTES   ((size_t)128 * 1024) // longest header on the wire
#define WIRE_SEAL_KEY_BYTES 32

enum message_kind {
    MESSAGE_JOIN,      // member -> coordinator: wants to take part
    MESSAGE_WELCOME,   // coordinator -> member: its rank, and the job
    MESSAGE_REFUSE,    // coordinator or shard -> member: why not; the connection is over
    MESSAGE_READY,     // member -> coordinator: prepared; its layout and its endpoints
    MESSAGE_START,     // coordinator -> member: everybody is ready; where the others are
    MESSAGE_TRY,       // coordinator -> worker: where the others are; find out what is possible
    MESSAGE_PROBE,     // worker -> worker, and back: how long is the way between us
    MESSAGE_TRIED,     // worker -> coordinator: `reason` is why memory cannot be mapped, or OK
    MESSAGE_CONNECTED, // member -> coordinator: knows the others, can take their messages
    MESSAGE_GO,        // coordinator -> member: so can everybody; data may travel
    MESSAGE_HEARTBEAT, // both ways, every heartbeat interval
    MESSAGE_REPORT,    // worker -> coordinator: what was done since the last one
    MESSAGE_DONE,      // member -> coordinator: all steps done; digest of its parameters
    MESSAGE_LEAVE,     // member -> coordinator: gives up, and why
    MESSAGE_STOP,      // coordinator -> member: the job is over, and why
    MESSAGE_HELLO,     // worker -> shard or next worker: who is at this connection
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
    MESSAGE_PROCEED, // coordinator -> worker: `epoch` was evaluated; `reason` says whether to go on
    MESSAGE_SUM,   // worker -> coordinator: doubles, to be added up over workers; the answer: their
                   // sum
    MESSAGE_GREET, // to who listens: the first message of a connection for data
    MESSAGE_KIND_COUNT
};

/* What values travel over between two processes; several are a sum. */
enum wire_transport { WIRE_TRANSPORT_SHM = 1, WIRE_TRANSPORT_IPC = 2, WIRE_TRANSPORT_TCP = 4 };
#define WIRE_TRANSPORTS_ALL 7u

enum member_role { ROLE_WORKER = 1, ROLE_SERVER = 2 };

/* Strings are borrowed: from the sender's caller, or from the scratch; "" if there is none. */
struct wire_member {
    enum member_role role;
    bool has_rank;
    uint32_t rank;
    uint64_t host_id; // equal on one host only
    const char *host;
    uint64_t process_id;
    const char *endpoints; // of its data socket, one a line
    const char *params_digest;
    uint64_t train_samples, test_samples;
    uint64_t data_digest; // of some of them
    uint64_t parameters;  // of the model, as its authors count them
    uint32_t cores;       // JOIN: of its host, that it may run on; 0: not known
    const char *device;
};

/* What a worker did since its last report. Times in nanoseconds. */
struct wire_report {
    uint64_t steps, images;
    double loss_sum; // over images
    uint64_t compute_ns, exchange_wait_ns, input_wait_ns, total_ns;
    uint64_t copy_ns; // of parameters and gradients, between host and device
    uint64_t wire_ns; // of steps: from their first bucket posted to their last complete
    uint64_t bytes_sent, bytes_received;
    bool is_epoch; // closes an epoch; test_images is 0 if it was not evaluated
    uint64_t test_images, test_correct;
    double test_loss_sum;
    uint64_t warm_images, warm_ns; // DONE only: whole job, after the warm-up steps
    double staleness_sum;  // in updates: of a worker's gradients over its steps, of a server's all
    double rate;           // learning rate of the last step; 0: not known
    double images_dropped; // of images: their gradients came too late for an update
    uint32_t transports;   // that values travel over, a sum of enum wire_transport; 0: none does

    // DONE of a server: gradients that were 0, 1, ... updates old, the oldest of all; those that
    // came too late. The last bin counts what is older, too.
    const uint64_t *staleness; // (staleness_bins), borrowed; NULL if there are none
    uint32_t staleness_bins;
    uint64_t staleness_max;
    uint64_t late;
    uint64_t backlog; // most messages that were waiting; it was busy compute_ns of total_ns
};

#define WIRE_NO_TICKET UINT32_MAX // of a loan that need not be returned

/* Values that lie in the sender's region, not in the message. */
struct wire_loan {
    uint64_t offset; // bytes
    uint32_t ticket;
};

struct message {
    enum message_kind kind;
    uint64_t job_id;
    uint32_t rank;        // of the worker that this message is from or for
    uint64_t step, epoch; // from 0
    uint32_t bucket;
    uint32_t hop;
    uint32_t phase;             // START, PASSED: of the job, from 0; see phases.h
    uint32_t lane;              // HELLO: which of the connections between the two this is
    bool is_far;                // HELLO: by a network: pushes are answered by TAKEN, too
    uint32_t vector;            // SEED, PULL, PARAMS: 0 parameters; from 1 states of the optimizer
    uint64_t staleness;         // PARAMS: of the receiver's last gradient, in updates
    double rate;                // PARAMS: learning rate that it was applied with; 0: not known
    bool is_late;               // PARAMS: it came too late, and was dropped
    uint64_t params_version;    // PARAMS: updates that were made; PULL: at least so many; 0: any
    enum all_reduce all_reduce; // TRY: whether memory is to be mapped; START
    struct all_reduce_path way; // TRIED: to the next worker
    struct all_reduce_limits limits; // START: which buckets take which algorithm
    uint64_t bucket_bytes; // START: what a worker's buckets are merged to, see layout_merge
    uint64_t step_ns;      // PASSED: what a step of the phase took; 0: was not measured
    enum status reason;
    const char *text;                 // never NULL after decode
    const struct wire_member *member; // JOIN, READY, DONE; otherwise NULL
    const struct layout *layout;      // READY of a worker, START; otherwise NULL
    const struct wire_report *report; // REPORT, DONE; otherwise NULL
    const struct region_key *region;  // OFFER; otherwise NULL
    const struct mail_offer *mail;    // OFFER: where headers are posted, or NULL; otherwise NULL
    const struct wire_loan *loan;     // RETURN; kinds that carry values: where they are; or NULL
    const unsigned char *seal_key;    // WELCOME: (WIRE_SEAL_KEY_BYTES), or NULL
    struct span span;
    const float *values; // span.count floats, or NULL; borrowed. After decode NULL for a loan

    // In the place of values: the encoded ones, as codec.h has it; borrowed. PARAMS: a change.
    const void *encoded;
    size_t encoded_bytes;
};

/* Where a decoded message lives. Large: one per channel. */
struct wire_scratch {
    _Alignas(16) unsigned char bytes[WIRE_SCRATCH_BYTES];
    struct layout layout;
    struct wire_member member;
    struct wire_report report;
    struct region_key region;
    struct mail_offer mail;
    struct wire_loan loan;
};

/* "PUSH"; for logs. */
const char *message_kind_name(enum message_kind kind);

/* Packs the header. The payload frame is message->values, as it is, or empty for a loan.
 * STATUS_INVALID if it is longer than header_size. */
enum status wire_encode(const struct message *message, void *ret_header, size_t header_size,
                        size_t *ret_bytes);

/* The frames of one message, as they came. */
struct wire_frames {
    const void *header;
    size_t header_size;
    const void *payload; // aligned for float; NULL if there is none
    size_t payload_size;
};

/* STATUS_MALFORMED for anything that this version would not send; STATUS_MISMATCH if it is a sound
 * header of another version (*ret_version says which). *ret_message borrows from the payload and
 * the scratch. */
enum status wire_decode(const struct wire_frames *frames, struct wire_scratch *scratch,
                        uint32_t *ret_version, struct message *ret_message);

#endif
