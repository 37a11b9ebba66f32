/* Links that let some bytes pass at once where they were idle before: token buckets, as shapers of
 * Linux (tbf, HTB) and of clouds have them.
 *
 * A link with the bandwidth B and a burst of b bytes carries at most b + B t in any time t. What it
 * has carried and B has not had the time for is its level, which falls by B where it carries
 * nothing, down to 0. Bytes that come while the level is below b pass at once; the others wait, as
 * on any link. */
#ifndef DEPLOY_PREDICT_ENGINE_FLOW_BURSTS_H
#define DEPLOY_PREDICT_ENGINE_FLOW_BURSTS_H

#include "deploy/predict/engine/flow_state.h"

/* Of a class a flow is expected to begin, or no longer. Until it does, its links keep a share of
 * what they let pass for it: a server's answers to all workers leave it together, and none of them
 * takes all of the burst. */
void flow_bursts_expect(struct flows *flows, const struct flow_class *class, bool is_expected);

/* Of a flow that begins: the bytes that pass at once, which is what the links of its class have in
 * common, less the shares of others. None, where one of them has no burst, or the flow a limit of
 * its own, or where its sender spreads it over time (BBR). */
double flow_bursts_take(struct flows *flows, const struct flow_class *class, double bytes,
                        double now, bool is_paced);

#endif
