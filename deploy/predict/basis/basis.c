/* Copies job, costs and network. */
#include "deploy/predict/basis/basis.h"

#include <stdlib.h>

struct basis *basis_create(const struct job *job, const struct costs *costs,
                           const struct network *network)
{
    struct basis *basis = calloc(1, sizeof(*basis));
    if (basis == NULL) {
        return NULL;
    }
    basis->job = *job;
    basis->costs = *costs;
    if (network_copy(network, &basis->network) != STATUS_OK) {
        basis_destroy(basis);
        return NULL;
    }
    return basis;
}

void basis_destroy(struct basis *basis)
{
    if (basis != NULL) {
        network_finish(&basis->network);
        free(basis);
    }
}
