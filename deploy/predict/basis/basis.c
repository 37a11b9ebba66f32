/* Copies job, costs and network. */
#include "deploy/predict/basis/basis.h"

#include <stdlib.h>
#include <string.h>

static void *copy(const void *items, size_t size)
{
    void *made = malloc(size);
    if (made != NULL) {
        memcpy(made, items, size);
    }
    return made;
}

struct basis *basis_create(const struct job *job, const struct costs *costs,
                           const struct network *network)
{
    struct basis *basis = calloc(1, sizeof(*basis));
    if (basis == NULL) {
        return NULL;
    }
    struct network *own = &basis->network;
    basis->job = *job;
    basis->costs = *costs;
    *own = *network;
    own->hosts = copy(own->hosts, own->host_count * sizeof(*own->hosts));
    own->switches = copy(own->switches, own->switch_count * sizeof(*own->switches));
    own->links = copy(own->links, own->link_count * sizeof(*own->links));
    if (own->hosts == NULL || own->switches == NULL || own->links == NULL) {
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
