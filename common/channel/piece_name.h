/* Names of the vectors in a checkpoint, and who may send which. Pure.
 *
 *     params, state-N         parameters, and states of the optimizer (from 1)
 *     known                   what all workers have of the parameters, where answers are compressed
 *     version-N               parameters N updates earlier, for a seeded order
 *     squares                 of gradients, of --remedy dc-adaptive
 *     rank-R/statistics       of one rank: what batch normalisation has learned,
 *     rank-R/residual         errors of compressed gradients,
 *     rank-R/state-N          states of local SGD's optimizer */
#ifndef COMMON_CHANNEL_PIECE_NAME_H
#define COMMON_CHANNEL_PIECE_NAME_H

#include <stdbool.h>
#include <stdint.h>

#define PIECE_NAME_BYTES 48

struct piece_name {
    bool has_rank;
    uint32_t rank;
};

/* False unless it is a name as above, without leading zeros. */
bool piece_name_parse(const char *text, struct piece_name *ret_name);

#endif
