/* Knows which connection belongs to which rank of the job.
 *
 * Whoever connects says by HELLO which rank it is, and which of its lanes this is (lanes.h). The
 * first one to say so is that rank from then on, in all phases of the job: a rank, or a lane of
 * one, belongs to one connection, and a connection to one rank. Data count only from there. */
#ifndef COMMON_CHANNEL_CALLERS_H
#define COMMON_CHANNEL_CALLERS_H

#include "common/base/status.h"
#include "common/channel/wire.h"
#include "common/transport/lanes.h"

#include <stdbool.h>
#include <stdint.h>

/* Zeroed is empty. */
struct callers {
    struct lanes *lanes; // (rank_count) where each one's HELLOs came from; owned
    bool *is_far;        // (rank_count) as its first HELLO says; owned
    uint32_t rank_count;
    uint32_t lane_count; // of a rank that is far; one that is near has a single one
};

enum status callers_init(struct callers *callers, uint32_t rank_count, uint32_t lane_count);
void callers_finish(struct callers *callers); // zeroed is fine

/* A HELLO came from this connection; again changes nothing. *ret_is_new: it was not known before.
 * STATUS_MALFORMED: there is no such rank or lane. STATUS_DENIED: it is another connection's, or
 * this connection is another rank. */
enum status callers_meet(struct callers *callers, const struct message *message, uint64_t peer,
                         bool *ret_is_new);

/* Whether the rank has said hello by this connection. */
bool callers_are(const struct callers *callers, uint32_t rank, uint64_t peer);

#endif
