/* Momentum correction, after Mitliagkas, Zhang, Hadjis and Re (2016), "Asynchrony begets momentum":
 * in the mean, updates from gradients that are tau updates old move as if there were a momentum of
 * tau / (tau + 1), beside the one that was asked for. So less has to be asked for.
 *
 * A momentum m lets a gradient act m / (1 - m) updates later in the mean. Staleness delays it by
 * tau. The momentum that is left is the one whose delay is the difference:
 *
 *     m' / (1 - m') = m / (1 - m) - tau, or m' = 0 where that is negative
 *
 * In all, a gradient moves the parameters by rate / (1 - m); the rate is scaled by (1 - m') / (1 -
 * m), so that it goes on doing so. */
#include "ps-server/shard/remedy/remedy.h"

void remedy_momentum(double momentum, double staleness, double *ret_momentum, double *ret_factor)
{
    double delay = momentum / (1 - momentum) - staleness;
    double left = delay > 0 ? delay / (1 + delay) : 0;
    *ret_momentum = left;
    *ret_factor = (1 - left) / (1 - momentum);
}
