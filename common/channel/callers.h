/* Knows which connection belongs to which ranks of the job.
 *
 * A process that connects says by HELLO which is the first rank that it carries (carriers.h), and
 * which of its lanes this is (lanes.h). The first connection to say so is that process's from then
 * on, in all phases of the job: a rank, or a lane of one, belongs to one connection, and a
 * connection to the ranks of one process. Data of a rank count only from there. */
#ifndef COMMON_CHANNEL_CALLERS_H
#define COMMON_CHANNEL_CALLERS_H

#include "common/base/departures.h"
#include "common/base/status.h"
#include "common/channel/wire.h"
#include "common/job/carriers.h"
#include "common/transport/lanes.h"

#include <stdbool.h>
#include <stdint.h>

/* Zeroed is empty. */
struct callers {
    struct lanes *lanes; // (processes) where each one's HELLOs came from; owned
    bool *is_far;        // (processes) as its first HELLO says; owned
    struct carriers carriers;
    uint32_t lane_count; // of a process that is far; one that is near has a single one
};

enum status callers_init(struct callers *callers, struct carriers carriers, uint32_t lane_count);
void callers_finish(struct callers *callers); // zeroed is fine

/* A HELLO came from this connection; again changes nothing. *ret_is_new: it was not known before.
 * STATUS_MALFORMED: no process begins with that rank, or it has no such lane. STATUS_DENIED: it is
 * another connection's, or this connection is another process. */
enum status callers_meet(struct callers *callers, const struct message *message, uint64_t peer,
                         bool *ret_is_new);

/* Whether the process that carries the rank has said hello by this connection. */
bool callers_are(const struct callers *callers, uint32_t rank, uint64_t peer);

/* Of the process that carries the rank, below carriers.ranks. */
const struct lanes *callers_lanes(const struct callers *callers, uint32_t rank);
bool callers_is_far(const struct callers *callers, uint32_t rank);

/* Takes connections that were closed, up to the first one that was a process's. False: there is
 * none. It does not come back: another connection is not that process's. */
bool callers_take_departed(const struct callers *callers, struct departures *departures,
                           uint32_t *ret_process);

#endif
