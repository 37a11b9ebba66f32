/* Adds up what a rank reports of its steps. Pure. */
#ifndef COMMON_CHANNEL_REPORT_SUM_H
#define COMMON_CHANNEL_REPORT_SUM_H

#include "common/channel/wire_parts.h"

/* Adds what is counted of the steps of an interval, and takes the rate of its last step. */
void report_sum_add(struct wire_report *sum, const struct wire_report *report);

#endif
