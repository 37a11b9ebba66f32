/* What may be done to a gradient that is stale. Pure.
 *
 * A remedy is a row of the table in remedy.c and a file of its own:
 *
 *     staleness-lr   remedy_staleness_lr.c   a gradient that is tau > 0 updates old counts 1/tau
 *     dc             remedy_dc.c             delay compensation with a constant lambda
 *     dc-adaptive    remedy_dc.c             the same with lambda over the root of mean squares
 *     momentum       remedy_momentum.c       less momentum, by what staleness adds to it
 */
#ifndef PS_SERVER_SHARD_REMEDY_REMEDY_H
#define PS_SERVER_SHARD_REMEDY_REMEDY_H

#include "common/job/job_choices.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Values of one gradient, a block of them. */
struct remedy_block {
    const float *gradient;
    const float *params; // as they are now
    const float *read;   // as the gradient's worker had read them; only if needs_read
    float *squares;      // running means of squares; only if needs_squares
    float *result;       // the gradient to apply; not gradient itself
    size_t count;
    uint64_t staleness;
    float lambda;
};

struct remedy {
    float lambda;       // default of --remedy-lambda; 0: it has none
    bool needs_read;    // what each worker has read: as much memory as N times the parameters
    bool needs_squares; // as much memory as the parameters
    void (*adjust)(const struct remedy_block *block); // NULL: gradients stay as they are
    bool corrects_momentum;                           // of the optimizer: remedy_momentum
};

/* NULL for none. */
const struct remedy *remedy_of(enum remedy_kind kind);

void remedy_staleness_lr(const struct remedy_block *block);
void remedy_dc(const struct remedy_block *block);
void remedy_dc_adaptive(const struct remedy_block *block);

/* What remains of a momentum when gradients are `staleness` updates old in the mean, and the factor
 * of the rate that goes with it. See remedy_momentum.c. */
void remedy_momentum(double momentum, double staleness, double *ret_momentum, double *ret_factor);

#endif
