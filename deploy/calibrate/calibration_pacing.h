/* Which messages congestion control spreads over time, from how links carried them.
 *
 * A link with a token bucket that was idle for t lets B t bytes of what comes next pass at once,
 * and no more than the bucket's depth. What has come over it is that much ahead of B times the time
 * since the first message was sent: unless senders spread it. BBR on a short path does not: it
 * sends 5/4 as fast in each round trip in which no queue stands, and with one of 60 us has emptied
 * a bucket within a millisecond. On a long path it needs as many round trips, and a message is over
 * before. */
#ifndef DEPLOY_CALIBRATE_CALIBRATION_PACING_H
#define DEPLOY_CALIBRATE_CALIBRATION_PACING_H

#include "deploy/calibrate/calibration.h"

/* For links with this bandwidth and burst, both above 0. Where there is no memory, nothing is
 * paced, and the notes say so. */
void calibration_take_pacing(struct calibration_run *const *runs, size_t run_count,
                             double bandwidth, double burst, struct calibration *calibration);

#endif
