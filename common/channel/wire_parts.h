/* Defines the parts of messages that only some kinds have. Each is a message of wire.proto with the
 * same fields.
 *
 * Strings and arrays are borrowed: from the sender's caller, or, after decoding, from the scratch;
 * a string is "" if there is none. */
#ifndef COMMON_CHANNEL_WIRE_PARTS_H
#define COMMON_CHANNEL_WIRE_PARTS_H

#include "common/base/region.h"
#include "common/channel/mail.h"
#include "common/job/all_reduce.h"
#include "common/job/job.h"
#include "common/optimizer/groups.h"
#include "common/vector/vector_device.h"

#include <stdbool.h>
#include <stdint.h>

/* The transports that values take between two processes. Several are added up. */
enum wire_transport {
    WIRE_TRANSPORT_SHM = 1,
    WIRE_TRANSPORT_IPC = 2,
    WIRE_TRANSPORT_TCP = 4,
    WIRE_TRANSPORT_GPU = 8,   // in the memory of GPUs
    WIRE_TRANSPORT_NCCL = 16, // as NCCL sees fit
};
#define WIRE_TRANSPORTS_ALL 31u

// Of texts of a member, with the '\0'.
#define WIRE_TENSORS_BYTES   ((size_t)16 * 1024)
#define WIRE_FIGURES_BYTES   128
#define WIRE_OPTIMIZER_BYTES 512 // JOB_OPTIMIZER_TEXT_BYTES

enum member_role { ROLE_WORKER = 1, ROLE_SERVER = 2 };

/* The process that asks to take part, and where to reach it. */
struct wire_member {
    enum member_role role;
    bool has_rank;
    uint32_t rank;
    uint64_t host_id; // equal for processes on one host only
    const char *host;
    uint64_t process_id;
    const char *endpoints; // of its data socket, one a line
    const char *params_digest;
    uint64_t train_samples, test_samples;
    uint64_t data_digest;    // of some of them
    uint64_t parameters;     // of the model, as its authors count them
    uint64_t choices_digest; // READY of a worker: of how its device computes; 0: it has no choice
    uint32_t cores;          // JOIN: of its host, that it may run on; 0: not known
    const char *device;
    uint64_t tensor_count; // READY of a program of its own: how many its model has
    const char *tensors;   // likewise: the first of them, each a line "COUNT NAME"
    const char *optimizer; // BACK: what a program of its own says of it, as READY's text
    const char *figures;   // READY of a worker: M,M,M/D,D,D of its pixels; "": they have none
    const char *loopback;  // JOIN: such an address, to listen on for workers; "": it is another one
    uint32_t launch;       // JOIN, BACK: see launch_number.h; 0: not known
};

/* What a worker did since its last report of the same kind. Times in nanoseconds. */
struct wire_report {
    uint64_t steps, images;
    double loss_sum; // over images
    uint64_t compute_ns, exchange_wait_ns, input_wait_ns, total_ns;
    uint64_t copy_ns; // of parameters and gradients, between host and device
    uint64_t wire_ns; // of steps: from their first bucket posted to their last complete
    uint64_t bytes_sent, bytes_received;
    uint64_t epoch;     // of its last step, from 0, where it closes no period
    bool closes_period; // test_images is 0 if it was not evaluated
    uint64_t period;    // that it closes, from 0; a program's are counted by the coordinator
    uint64_t test_images, test_correct;
    double test_loss_sum;          // of a program of its own: no number if it is not known
    uint64_t warm_images, warm_ns; // DONE only: whole job, after the warm-up steps
    double staleness_sum;  // in updates: of a worker's gradients over its steps, of a server's all
    double rate;           // learning rate of the last step; 0: not known
    double images_dropped; // of images: their gradients came too late for an update
    uint32_t transports;   // that values travel over, a sum of enum wire_transport; 0: none does
    uint32_t loader_threads; // of the process, that read images; 0: not known
    bool is_repeated;        // a coordinator that was lost has had it; of several that close no
                             // period, the sum

    // DONE of a server: gradients that were 0, 1, ... updates old, the oldest of all; those that
    // came too late. The last bin counts what is older, too.
    const uint64_t *staleness; // (staleness_bins), borrowed; NULL if there are none
    uint32_t staleness_bins;
    uint64_t staleness_max;
    uint64_t late;
    uint64_t backlog; // most messages that were waiting; it was busy compute_ns of total_ns
};

#define WIRE_SLICES_MAX JOB_WORKERS_MAX

/* What each rank that a worker carries has of its own in a report, in their order. */
struct wire_slices {
    uint32_t count;          // 1 .. WIRE_SLICES_MAX
    const uint64_t *images;  // (count), borrowed
    const double *loss_sums; // (count) over images, borrowed
};

/* How a phase of the job runs. TRY has only its all_reduce: whether memory is to be mapped. */
struct wire_start {
    uint32_t phase;                  // of the job, from 0; see phases.h
    uint64_t train_samples;          // of the job: schedules follow from them
    enum all_reduce all_reduce;      // of ring mode
    struct all_reduce_limits limits; // which buckets take which algorithm
    uint64_t bucket_bytes;           // what a worker's buckets are merged to, see layout_merge
};

#define WIRE_NCCL_ID_BYTES  128
#define WIRE_NCCL_GPU_BYTES 16

/* How workers find each other by NCCL. READY of a worker: with the id, if it is rank 0. START: with
 * the id and the version of rank 0. */
struct wire_nccl {
    uint32_t version; // as NCCL counts: 22707 is 2.27.7
    bool has_id;
    unsigned char id[WIRE_NCCL_ID_BYTES]; // where rank 0 waits for the others
    bool has_gpu;
    unsigned char gpu[WIRE_NCCL_GPU_BYTES]; // which this worker has: its UUID
};

/* A worker has ended the phase before this one. */
struct wire_passed {
    uint32_t phase;
    uint64_t step_ns; // what a step of the phase before took; 0: was not measured
};

/* What a member has that its job's next coordinator has to know. */
struct wire_back {
    uint64_t begin_step;    // steps that its generation has begun with
    uint64_t sum_round;     // how many sums are over
    uint64_t snapshot_step; // the newest that it has offered, and has no more; 0: none
    uint64_t trained_ms;    // since its generation has begun to train, 1 at least; 0: it has not
    uint64_t alone_ms;      // since the last sign of the coordinator that it has lost
    uint64_t alone_step;    // its step at that sign
    uint64_t commit_step;   // if has_commit: after how many steps
    uint32_t term;          // how many coordinators have taken it in since its generation began
    bool has_commit;        // of a program that commits: it has something to go back to
};

/* Says that a period was evaluated. */
struct wire_decision {
    uint64_t period; // from 0
    bool is_enough;  // the job has reached its target
};

/* Doubles that all workers add up: the payload. */
struct wire_sum {
    uint64_t round; // how many sums came before it
    uint32_t count;
    const void *values; // (count) doubles, which need no alignment; borrowed
};

/* What became of an unsynchronised worker's last gradient. */
struct wire_outcome {
    uint64_t staleness; // in updates
    double rate;        // learning rate that it was applied with; 0: none was
    bool is_late;       // it came too late, and was dropped
};

/* The worker at the other end of a connection. */
struct wire_hello {
    uint32_t lane; // which of the connections between the two this is
    bool is_far;   // by a network: pushes are answered by TAKEN, too
};

/* A message there or back, by which the path is measured. */
struct wire_probe {
    uint32_t round;
    bool is_answer;
};

/* Memory of the sender that the receiver may map. */
struct wire_offer {
    struct region_key region;
    bool has_mail; // messages may go both ways through queues in it
    struct mail_offer mail;
    bool has_share; // it is memory of a device (vector_device.h), and the key has its size alone
    unsigned char share[VECTOR_SHARE_BYTES];
};

/* A part of a vector that is in a checkpoint, or goes into one: `span` of it. */
struct wire_piece {
    const char *vector; // its name; "": the snapshot has no more pieces
    uint64_t total;     // floats of the whole vector; without one: pieces that there were
};

/* What time it is by the clocks of both: a question, or its answer. For a timeline. */
struct wire_clock {
    uint64_t asked_ns; // of the member, when it asked
    uint64_t told_ns;  // of the coordinator, when it answered; 0: the member asks
};

/* How many more pieces of a snapshot may come. */
struct wire_collect {
    uint32_t credits;
};

enum wire_wait_for { WIRE_WAIT_CHUNK, WIRE_WAIT_PARAMS, WIRE_WAIT_GRADIENTS, WIRE_WAIT_COUNT };

/* The member that an idle one waits for, and for what; or, if is_broken, the one to which its data
 * connection was closed: that is no wait, and the sender may be computing. Messages that count are
 * chunks, SEED, PUSH, PULL and PARAMS. */
struct wire_wait {
    enum member_role role; // of the one that it waits for
    uint32_t index;        // a worker among the job's processes, or a shard
    enum wire_wait_for what;
    uint64_t waited_ms;
    uint64_t taken;        // messages that have come from the awaited one since the phase began
    uint32_t given_count;  // members of the awaited role: processes of the job, or shards
    const uint64_t *given; // (given_count) messages that went to each of them since; borrowed
    bool is_broken;        // then role, index and waited_ms alone count
};

#define WIRE_NO_TICKET UINT32_MAX // of a loan that need not be returned

/* Values that lie in the sender's region, not in the message. */
struct wire_loan {
    uint64_t offset; // bytes
    uint32_t ticket;
};

#endif
