/* Copies a network, for those who change theirs. */
#include "deploy/predict/basis/network.h"

#include <stdlib.h>
#include <string.h>

static void *copy(const void *items, size_t count, size_t size)
{
    void *made = calloc(count > 0 ? count : 1, size);
    if (made != NULL && count > 0) {
        memcpy(made, items, count * size);
    }
    return made;
}

enum status network_copy(const struct network *network, struct network *ret_copy)
{
    struct network *made = ret_copy;
    *made = *network;
    made->hosts = copy(network->hosts, network->host_count, sizeof(*made->hosts));
    made->switches = copy(network->switches, network->switch_count, sizeof(*made->switches));
    made->links = copy(network->links, network->link_count, sizeof(*made->links));
    return made->hosts != NULL && made->switches != NULL && made->links != NULL ? STATUS_OK
                                                                                : STATUS_NO_MEMORY;
}
