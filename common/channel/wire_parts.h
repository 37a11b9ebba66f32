/* The parts of messages: what only some kinds say. Each is a message of wire.proto, which has the
 * same fields.
 *
 * Strings and arrays are borrowed: from the sender's caller, or, after decoding, from the scratch;
 * a string is "" if there is none. */
#ifndef COMMON_CHANNEL_WIRE_PARTS_H
#define COMMON_CHANNEL_WIRE_PARTS_H

#include "common/base/region.h"
#include "common/channel/mail.h"
#include "common/job/all_reduce.h"

#include <stdbool.h>
#include <stdint.h>

/* What values travel over between two processes; several are a sum. */
enum wire_transport { WIRE_TRANSPORT_SHM = 1, WIRE_TRANSPORT_IPC = 2, WIRE_TRANSPORT_TCP = 4 };
#define WIRE_TRANSPORTS_ALL 7u

enum member_role { ROLE_WORKER = 1, ROLE_SERVER = 2 };

/* Who is asking to take part, and where it can be reached. */
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
    uint64_t period;    // that it closes, from 0
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

/* How a phase of the job goes. TRY has its all_reduce alone: whether memory is to be mapped. */
struct wire_start {
    uint32_t phase;                  // of the job, from 0; see phases.h
    uint64_t train_samples;          // of the job: schedules follow from them
    enum all_reduce all_reduce;      // of ring mode
    struct all_reduce_limits limits; // which buckets take which algorithm
    uint64_t bucket_bytes;           // what a worker's buckets are merged to, see layout_merge
};

/* A worker has ended the phase before this one. */
struct wire_passed {
    uint32_t phase;
    uint64_t step_ns; // what a step of the phase before took; 0: was not measured
};

/* A period was evaluated. */
struct wire_decision {
    uint64_t period; // from 0
    bool is_enough;  // the job has reached its target
};

/* Doubles that all workers add up: the payload. */
struct wire_sum {
    uint64_t round; // how many sums were before it
    uint32_t count;
    const void *values; // (count) doubles, aligned to any address; borrowed
};

/* What became of a worker's last gradient, where workers are unsynchronised. */
struct wire_outcome {
    uint64_t staleness; // in updates
    double rate;        // learning rate that it was applied with; 0: none was
    bool is_late;       // it came too late, and was dropped
};

/* Who is at a connection. */
struct wire_hello {
    uint32_t lane; // which of the connections between the two this is
    bool is_far;   // by a network: pushes are answered by TAKEN, too
};

/* A message there, or back, that measures the path. */
struct wire_probe {
    uint32_t round;
    bool is_answer;
};

/* Memory of the sender that the receiver may map. */
struct wire_offer {
    struct region_key region;
    bool has_mail; // messages may go both ways so
    struct mail_offer mail;
};

#define WIRE_NO_TICKET UINT32_MAX // of a loan that need not be returned

/* Values that lie in the sender's region, not in the message. */
struct wire_loan {
    uint64_t offset; // bytes
    uint32_t ticket;
};

#endif
