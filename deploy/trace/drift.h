/* How far the clock of a process is from the coordinator's, by messages to it and back. Pure.
 *
 * A message that was sent at s, answered at t (by the coordinator's clock) and whose answer was
 * received at r says that the coordinator's clock is ahead by t - (s + r) / 2, give or take
 * (r - s) / 2. The quickest message of each ten seconds counts; between them the offset changes
 * evenly, as clocks that drift do. */
#ifndef DEPLOY_TRACE_DRIFT_H
#define DEPLOY_TRACE_DRIFT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DRIFT_POINTS_MAX 512

struct clock_ping {
    uint64_t sent_ns, there_ns, received_ns;
};

struct clock_point {
    uint64_t time_ns;   // of the process
    int64_t offset_ns;  // to be added to its times
    uint64_t radius_ns; // the offset may be off by as much
};

/* Without a point: there was no message, and the offset is not known. */
struct drift {
    struct clock_point points[DRIFT_POINTS_MAX]; // (count), by time
    size_t count;
    uint64_t uncertainty_ns; // the largest radius
};

/* Takes pings in the order of `received_ns`; those that make no sense are passed over. */
void drift_make(const struct clock_ping *pings, size_t count, struct drift *ret_fit);

/* The offset at a time of the process; 0 where it is not known. */
int64_t drift_offset(const struct drift *fit, uint64_t time_ns);

/* Whether the two clocks may be the same one. */
bool drift_allows_zero(const struct drift *fit);

#endif
