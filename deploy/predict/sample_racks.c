/* Looks at what goes through switches where each worker sends to the next. */
#include "deploy/predict/sample_racks.h"

#include <stdlib.h>

bool sample_racks_are_idle(const struct network *network, uint32_t workers, const uint32_t *hosts)
{
    double *loads = calloc(network->link_count, sizeof(*loads));
    bool are_idle = loads != NULL;
    for (uint32_t w = 0; w < workers && are_idle; w++) {
        struct network_route route;
        double own = network_free(&network->links[network->hosts[hosts[w]].up]);
        network_find_route(network, hosts[w], hosts[(w + 1) % workers], &route);
        for (uint32_t i = 1; i + 1 < route.link_count; i++) {
            double all = network_free(&network->links[route.links[i]]);
            loads[route.links[i]] += own;
            are_idle = are_idle && (all <= 0 || (own > 0 && loads[route.links[i]] <= all));
        }
    }
    free(loads);
    return are_idle;
}

void sample_racks_leave_out(const struct network *network, uint32_t workers, const uint32_t *hosts,
                            struct network *made)
{
    double switches_s = 0;
    uint32_t hops = 0;
    for (uint32_t w = 0; w < workers; w++) {
        uint32_t from = hosts[w], to = hosts[(w + 1) % workers];
        if (from != to) {
            struct network_route route;
            network_find_route(network, from, to, &route);
            switches_s +=
                route.latency_s - network->hosts[from].latency_s - network->hosts[to].latency_s;
            hops++;
        }
    }
    for (uint32_t w = 0; w < workers; w++) {
        if (w == 0 || hosts[w] != hosts[w - 1]) {
            made->hosts[hosts[w]].above = made->hosts[hosts[0]].above;
            made->hosts[hosts[w]].latency_s += switches_s / hops / 2;
        }
    }
}
