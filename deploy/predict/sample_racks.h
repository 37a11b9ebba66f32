/* Rings through racks that are larger than a sample: few of the hops lead from one to another. */
#ifndef DEPLOY_PREDICT_SAMPLE_RACKS_H
#define DEPLOY_PREDICT_SAMPLE_RACKS_H

#include "deploy/predict/basis/network.h"

#include <stdbool.h>
#include <stdint.h>

/* Whether no link of a switch has to carry more than it can. hosts: (workers). */
bool sample_racks_are_idle(const struct network *network, uint32_t workers, const uint32_t *hosts);

/* Puts the workers' hosts below one switch of `made`, a copy of the network, and shares out what
 * other switches add to the time round the ring among all hops between hosts. */
void sample_racks_leave_out(const struct network *network, uint32_t workers, const uint32_t *hosts,
                            struct network *made);

#endif
