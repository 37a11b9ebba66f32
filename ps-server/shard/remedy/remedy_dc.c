/* Delay compensation, DC-ASGD (Zheng et al. 2017, equations 10 and 14): what the gradient would be
 * at the parameters of now, to first order, with its outer product in the place of the Hessian and
 * of that only the diagonal:
 *
 *     g + lambda g g (w - w_read)
 *
 * The adaptive one divides lambda by the root of a running mean of g g, so that one lambda serves
 * the whole of a training. */
#include "ps-server/shard/remedy/remedy.h"

#include <math.h>

// Of the paper.
#define SQUARES_DECAY 0.95f
#define EPSILON       1e-7f

void remedy_dc(const struct remedy_block *block)
{
    for (size_t i = 0; i < block->count; i++) {
        float g = block->gradient[i];
        block->result[i] = g + block->lambda * g * g * (block->params[i] - block->read[i]);
    }
}

void remedy_dc_adaptive(const struct remedy_block *block)
{
    for (size_t i = 0; i < block->count; i++) {
        float g = block->gradient[i];
        float square = SQUARES_DECAY * block->squares[i] + (1 - SQUARES_DECAY) * g * g;
        float lambda = block->lambda / sqrtf(square + EPSILON);
        block->squares[i] = square;
        block->result[i] = g + lambda * g * g * (block->params[i] - block->read[i]);
    }
}
