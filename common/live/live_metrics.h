/* What is known of a job as text for Prometheus: its exposition format 0.0.4.
 *
 * Names, units and types follow Prometheus's conventions: base units (seconds, bytes), `_total` for
 * counters. Counters are of this process: they begin at 0 where a job is resumed, which Prometheus
 * expects of counters. */
#ifndef COMMON_LIVE_LIVE_METRICS_H
#define COMMON_LIVE_LIVE_METRICS_H

#include "common/live/live_state.h"

/* Text of malloc; NULL if there is no memory. */
char *live_metrics_text(const struct live_state *state);

#endif
