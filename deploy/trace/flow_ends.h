/* Which messages of a timeline have both ends: a send and a receive. Pure. */
#ifndef DEPLOY_TRACE_FLOW_ENDS_H
#define DEPLOY_TRACE_FLOW_ENDS_H

#include "common/base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct flow_list {
    uint64_t *flows; // (count), owned
    size_t count, room;
};

/* Zeroed: empty. */
struct flow_ends {
    struct flow_list begun, ended;
};

enum status flow_ends_add(struct flow_ends *ends, uint64_t flow, bool ends_flow);
void flow_ends_sort(struct flow_ends *ends); // after the last add

/* Whether it has a beginning and an end. */
bool flow_ends_has_both(const struct flow_ends *ends, uint64_t flow);
void flow_ends_finish(struct flow_ends *ends);

#endif
