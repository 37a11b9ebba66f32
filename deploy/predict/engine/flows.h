/* Flows that share links fairly, by progressive filling: the rates of all rise alike until a link
 * is full, whose flows keep that rate, and so on (max-min fairness; Bertsekas and Gallager 1992).
 *
 * Flows whose links are the same always have the same rate. They are a class. A class knows how
 * many bytes each of its flows has had since the class was last empty, so a change of its rate
 * costs the same whatever the number of its flows. When a flow begins or ends, only rates of those
 * classes change that it shares a link with, directly or by way of others. */
#ifndef DEPLOY_PREDICT_ENGINE_FLOWS_H
#define DEPLOY_PREDICT_ENGINE_FLOWS_H

#include "common/base/status.h"
#include "deploy/predict/basis/network.h"

#include <stdbool.h>
#include <stdint.h>

struct flows;

/* Borrows the network. */
enum status flows_create(const struct network *network, struct flows **ret_flows);
void flows_destroy(struct flows *flows); // NULL is fine

/* The class of flows that go this way, of which each stands for so many, 1 if it is one, beside
 * each other; UINT32_MAX if there is no memory. */
uint32_t flows_class_of(struct flows *flows, const struct network_route *route, double each);

/* Begins a flow, which has no rate until flows_share. What links let pass at once (flow_bursts.h)
 * takes no time, unless it is paced. False if there is no memory. */
bool flows_begin(struct flows *flows, double now, uint32_t class, double bytes, uint32_t token,
                 bool is_paced);

/* Whether any link lets bytes pass at once. */
bool flows_have_bursts(const struct flows *flows);

/* A flow of this class is expected, or no longer (flow_bursts.h). */
void flows_expect(struct flows *flows, uint32_t index, bool is_expected);

/* Gives all flows their rates, if some have begun or ended. False if there is no memory. */
bool flows_share(struct flows *flows, double now);

/* Of all that grows with flows. */
double flows_bytes(const struct flows *flows);

/* When the next flow ends, at the rates of now; DBL_MAX: none does. */
double flows_next_end(const struct flows *flows);

/* Ends that flow, at its time, and returns its token. There has to be one. */
uint32_t flows_end_next(struct flows *flows, double now);

#endif
