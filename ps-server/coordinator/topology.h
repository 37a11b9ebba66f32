/* Who is told of whom, and how ring mode adds up gradients: what TRY and START say. Pure. */
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
    enum all_reduce all_reduce; // the one that has a worker connect to most others
    struct all_reduce_limits limits;

    // What workers have found out, the worst of all.
    bool cannot_map;
    uint32_t refuser;            // rank of the first that cannot
    struct all_reduce_path path; // zeroed: not measured
};

/* From the options, and from where the workers are. *ret_needs_trial: it depends on what they find
 * out; until then shared memory is what they try, or the ring. */
void topology_begin(const struct job *job, const struct membership *membership,
                    struct topology *ret_topology, bool *ret_needs_trial);

/* TRIED of a worker. */
void topology_note(struct topology *topology, uint32_t rank, const struct message *message);

/* Once all workers have tried. STATUS_UNREACHABLE: memory has to be shared, and cannot be. */
enum status topology_decide(const struct job *job, struct topology *topology);

/* One line on it: "halving-doubling up to 20.0 KiB, direct up to 0.38 MiB, ring above (200 us, 5.0
 * us a message, 100 MB/s)". */
void topology_describe(const struct topology *topology, char *ret_text, size_t text_size);

/* The places that a worker needs, one a line: of all shards; then, if a phase of the job is a ring,
 * of the workers that it connects to by all_reduce_meets, the next one first, or, where memory is
 * shared, of all workers by rank. "" if they do not fit: more than a header has room for. */
void topology_places(const struct job *job, const struct membership *membership,
                     enum all_reduce algorithm, uint32_t rank, char *ret_text, size_t text_size);

#endif
