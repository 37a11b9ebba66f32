/* Who is told of whom: what a START says. Pure. */
#ifndef PS_SERVER_TOPOLOGY_H
#define PS_SERVER_TOPOLOGY_H

#include "common/all_reduce.h"
#include "common/job.h"
#include "ps-server/membership.h"

#include <stddef.h>
#include <stdint.h>

// Room for the places of all shards, or of the workers of one host.
#define TOPOLOGY_TEXT_BYTES (100 * 1024)

/* The algorithm that workers are to try: with --all-reduce auto, direct if they are on one host and
 * may share memory. */
enum all_reduce topology_choose(const struct job *job, const struct membership *membership);

/* The places that a worker needs, one a line: of all shards; then, if a phase of the job is a ring,
 * of the next worker, or, for direct, of all workers. "" if they do not fit: more servers than a
 * header has room for. */
void topology_places(const struct job *job, const struct membership *membership,
                     enum all_reduce algorithm, uint32_t rank, char *ret_text, size_t text_size);

#endif
