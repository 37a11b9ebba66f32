/* Decides what TRY and START say: which members a worker connects to, and how ring mode adds up
 * gradients. Pure. */
#ifndef PS_SERVER_COORDINATOR_TOPOLOGY_H
#define PS_SERVER_COORDINATOR_TOPOLOGY_H

#include "common/job/all_reduce.h"
#include "common/job/job.h"
#include "ps-server/coordinator/membership.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Room for the places of all shards, or of the workers of one host.
#define TOPOLOGY_TEXT_BYTES (100 * 1024)

/* How the ring phases of a job add up gradients. */
struct topology {
    enum all_reduce all_reduce; // of several, the one by which a worker connects to the most others
    struct all_reduce_limits limits;

    // What workers have found out: the worst of all answers.
    bool cannot_map;
    uint32_t refuser;            // rank of the first worker that cannot map the others' memory
    struct all_reduce_path path; // zeroed: not measured

    struct wire_nccl nccl; // what rank 0 has said, if it is NCCL that adds up
};

/* From the options, and from where the workers are; keeps what was noted of NCCL. *ret_needs_trial:
 * it depends on what they find out; until then shared memory is what they try, or the ring. */
void topology_begin(const struct job *job, const struct membership *membership,
                    struct topology *topology, bool *ret_needs_trial);

/* READY of a worker, where NCCL is used. */
void topology_note_nccl(struct topology *topology, uint32_t rank, const struct wire_nccl *nccl);

/* Notes what a worker's TRIED says. */
void topology_note(struct topology *topology, uint32_t rank, const struct message *message);

/* Decides, once all workers have tried, for the buckets of a layout. Returns STATUS_UNREACHABLE if
 * memory has to be shared but cannot be. */
enum status topology_decide(const struct job *job, const struct layout *layout,
                            struct topology *topology);

/* One line on it: "direct (200 us, 5.0 us a message, 100 MB/s)", with the path if it was measured;
 * of several sizes "halving-doubling up to 0.50 MiB, direct up to 2.00 MiB, ring above (...)"; of
 * NCCL "nccl 2.27.7". */
void topology_describe(const struct topology *topology, char *ret_text, size_t text_size);

/* Lists the places that a worker needs, one to a line. Those of all shards come first. If a phase
 * of the job is a ring, there follow the workers that it connects to (all_reduce_meets), the next
 * one first; or all workers by rank, where memory is shared. Writes "" if a header has no room for
 * them. */
void topology_places(const struct job *job, const struct membership *membership,
                     enum all_reduce algorithm, uint32_t rank, char *ret_text, size_t text_size);

/* Whether members on other hosts have to connect to one that joins, which listens at a loopback
 * address. */
bool topology_hides(const struct job *job, const struct membership *membership,
                    const struct wire_member *joining);

/* The same of one that has joined before, if it is the joining one that has to connect to it. Its
 * slot is NULL if there is none. */
struct sender topology_hidden(const struct job *job, const struct membership *membership,
                              const struct wire_member *joining);

/* Why that cannot be, with what helps: for the one that is hidden, and for the joining one. */
void topology_explain_hidden(const char *loopback, char *ret_why, size_t why_size);
void topology_explain_unreached(const struct sender *hidden, char *ret_why, size_t why_size);

#endif
