/* Places processes in a network, and finds ways through it. */
#include "common/base/log.h"
#include "deploy/predict/basis/network.h"

#include <math.h>

double network_free(const struct network_link *link)
{
    return (link->bandwidth - link->background) * (1 - link->loss);
}

double network_loss_limit(double loss, double rtt_s)
{
    if (loss <= 0 || rtt_s <= 0) {
        return 0;
    }
    double cubic = 1.054 * pow(rtt_s / loss, 0.75), reno = sqrt(1.5 / loss);
    return fmax(cubic, reno) * NETWORK_SEGMENT_BYTES / rtt_s;
}

enum status network_place(const struct network *network, uint32_t workers, uint32_t servers,
                          uint32_t *ret_hosts)
{
    uint32_t placed = 0, served = 0, used = 0;
    for (uint32_t host = 0; host < network->host_count; host++) {
        for (uint32_t i = 0; i < network->hosts[host].workers && placed < workers; i++) {
            ret_hosts[placed++] = host;
        }
        for (uint32_t i = 0; i < network->hosts[host].servers && served < servers; i++) {
            ret_hosts[workers + served++] = host;
        }
    }
    if (placed < workers) {
        log_error("the network has places for %u workers, and --workers asks for %u; raise "
                  "\"count\" or \"workers\" of its hosts",
                  placed, workers);
        return STATUS_INVALID;
    }
    for (used = 0; !network->has_server_places && served < servers; served++) {
        ret_hosts[workers + served] = ret_hosts[used];
        uint32_t last = used;
        while (used < workers && ret_hosts[used] == ret_hosts[last]) {
            used++;
        }
        used = used < workers ? used : 0;
    }
    if (served < servers) {
        log_error("the network has places for %u servers, and --servers asks for %u; raise "
                  "\"servers\" of its hosts",
                  served, servers);
        return STATUS_INVALID;
    }
    return STATUS_OK;
}

/* Of one connection: what the file says, and what loss allows. */
static double limit_flow(const struct network *network, const struct network_route *route)
{
    double arrive = 1, flow = network->flow_bandwidth;
    for (uint32_t i = 0; i < route->link_count; i++) {
        arrive *= 1 - network->links[route->links[i]].loss;
    }
    double limit = network_loss_limit(1 - arrive, 2 * route->latency_s);
    return limit > 0 && (flow <= 0 || limit < flow) ? limit : flow;
}

bool network_has_bursts(const struct network *network)
{
    for (uint32_t i = 0; i < network->link_count; i++) {
        if (network->links[i].burst > 0) {
            return true;
        }
    }
    return false;
}

void network_find_route(const struct network *network, uint32_t from, uint32_t to,
                        struct network_route *ret_route)
{
    struct network_route route = {.link_count = 0};
    const struct network_host *a = &network->hosts[from], *b = &network->hosts[to];
    uint32_t ups[NETWORK_DEPTH_MAX + 1], downs[NETWORK_DEPTH_MAX + 1], up = 0, down = 0;
    if (from == to) {
        *ret_route = (struct network_route){{a->memory}, 1, a->memory_latency_s, 0};
        return;
    }
    for (uint32_t at = a->above; at != NETWORK_NONE; at = network->switches[at].above) {
        ups[up++] = at;
    }
    for (uint32_t at = b->above; at != NETWORK_NONE; at = network->switches[at].above) {
        downs[down++] = at;
    }
    while (up > 1 && down > 1 && ups[up - 2] == downs[down - 2]) {
        up--;
        down--;
    }
    route.latency_s = a->latency_s + b->latency_s;
    route.links[route.link_count++] = a->up;
    for (uint32_t i = 0; i + 1 < up; i++) {
        route.links[route.link_count++] = network->switches[ups[i]].up;
        route.latency_s += network->switches[ups[i]].latency_s;
    }
    for (uint32_t i = down; i-- > 1;) {
        route.links[route.link_count++] = network->switches[downs[i - 1]].down;
        route.latency_s += network->switches[downs[i - 1]].latency_s;
    }
    route.links[route.link_count++] = b->down;
    route.flow_bandwidth = limit_flow(network, &route);
    *ret_route = route;
}

uint32_t network_distance(const struct network *network, uint32_t from, uint32_t to)
{
    uint32_t count = 0;
    for (uint32_t at = network->hosts[from].above; from != to && at != NETWORK_NONE;
         at = network->switches[at].above) {
        count++;
        for (uint32_t its = network->hosts[to].above; its != NETWORK_NONE;
             its = network->switches[its].above) {
            if (its == at) {
                return count;
            }
        }
    }
    return count;
}
