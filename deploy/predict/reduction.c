/* Counts which link carries how many of the flows of a hop. */
#include "deploy/predict/reduction.h"

#include "common/plan/halving_plan.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { LINK_OUT, LINK_IN, LINK_COUNT };

void reduction_finish(struct reduction *reduction)
{
    network_finish(&reduction->network);
    free(reduction->origins);
    free(reduction->scales);
    free(reduction->halving_stretch);
}

enum status reduction_copy(const struct network *network, struct reduction *ret_reduction)
{
    enum status status = network_copy(network, &ret_reduction->network);
    ret_reduction->origins = calloc(network->link_count, sizeof(*ret_reduction->origins));
    ret_reduction->scales = calloc(network->link_count, sizeof(*ret_reduction->scales));
    if (status != STATUS_OK || ret_reduction->origins == NULL || ret_reduction->scales == NULL) {
        return STATUS_NO_MEMORY;
    }
    for (uint32_t i = 0; i < network->link_count; i++) {
        ret_reduction->origins[i] = i;
        ret_reduction->scales[i] = 1;
    }
    return STATUS_OK;
}

/* Where something does. Of halving no bound is known: who is early takes bandwidth from those that
 * are late, which one that stands for all does not, and the more so the larger the buckets. */
static const double errors[] = {
    [REDUCTION_RING] = 0.20,
    [REDUCTION_HALVING] = (double)INFINITY,
    [REDUCTION_SYNC] = 0.08,
    [REDUCTION_RACES] = 0.10,
};

/* Whether each worker has a host to itself, with as many cores, of no machine that others share,
 * and their links have the same bandwidth. */
static bool have_equal_links(const struct network *network, uint32_t workers, uint32_t servers,
                             const uint32_t *hosts)
{
    double bandwidth = network_free(&network->links[network->hosts[hosts[0]].up]);
    uint32_t first = UINT32_MAX, last = 0, cores = network->hosts[hosts[0]].cores;
    for (uint32_t w = 0; w < workers; w++) {
        const struct network_host *host = &network->hosts[hosts[w]];
        if (host->workers > 1 || network_free(&network->links[host->up]) != bandwidth ||
            host->cores != cores || (cores > 0 && host->machine_name[0] != '\0')) {
            return false;
        }
        first = hosts[w] < first ? hosts[w] : first;
        last = hosts[w] > last ? hosts[w] : last;
    }
    if (cores > 0 && servers > 1) {
        return false; // one of several would have the cores of all
    }
    for (uint32_t k = 0; k < servers; k++) {
        if (hosts[workers + k] >= first && hosts[workers + k] <= last) {
            return false;
        }
    }
    return true;
}

/* Nothing is lost, or as much on the way to each host below one switch. */
static bool has_equal_loss(const struct network *network, uint32_t workers, const uint32_t *hosts,
                           bool are_alike)
{
    double loss = network->links[network->hosts[hosts[0]].up].loss, sum = 0;
    for (uint32_t w = 0; w < workers; w++) {
        if (network->links[network->hosts[hosts[w]].up].loss != loss) {
            return false;
        }
    }
    for (uint32_t i = 0; i < network->link_count; i++) {
        sum += network->links[i].loss;
    }
    return sum <= 0 || are_alike;
}

static bool are_below_one_switch(const struct network *network, uint32_t workers,
                                 const uint32_t *hosts)
{
    const struct network_host *first = &network->hosts[hosts[0]];
    for (uint32_t w = 0; w < workers; w++) {
        const struct network_host *host = &network->hosts[hosts[w]];
        if (host->above != first->above || host->latency_s != first->latency_s) {
            return false;
        }
    }
    return true;
}

/* Whether only delays and switches could set those apart that one stands for. Several servers get
 * out of step with each other, and so do workers whose halving has hops of different sizes. */
static bool is_even(enum reduction_kind kind, uint32_t workers, uint32_t servers)
{
    switch (kind) {
    case REDUCTION_RING:
        return true;
    case REDUCTION_HALVING:
        return (workers & (workers - 1)) == 0;
    case REDUCTION_SYNC:
        return servers == 1;
    case REDUCTION_RACES:
        return false;
    }
    return false;
}

double reduction_error(enum reduction_kind kind, const struct network *network, uint32_t workers,
                       uint32_t servers, const uint32_t *hosts, bool has_delays)
{
    bool are_alike = are_below_one_switch(network, workers, hosts);
    if (!have_equal_links(network, workers, servers, hosts) ||
        !has_equal_loss(network, workers, hosts, are_alike) || network_has_bursts(network)) {
        return (double)INFINITY;
    }
    if (!has_delays && is_even(kind, workers, servers) && (servers > 0 || are_alike)) {
        return REDUCTION_EVEN;
    }
    return errors[kind];
}

/* What flows of one hop are on each link. */
struct loads {
    const struct network *network;
    double *counts; // (links)
    double flow;    // that one of them has at most; 0: no limit
};

/* Seconds in which all of them have a byte, if each has its share; and the link that is last. */
static double slowest_s(const struct loads *loads, uint32_t *ret_link)
{
    double slowest = loads->flow > 0 ? 1 / loads->flow : 0;
    for (uint32_t i = 0; i < loads->network->link_count; i++) {
        double bandwidth = network_free(&loads->network->links[i]);
        if (bandwidth > 0 && loads->counts[i] / bandwidth > slowest) {
            slowest = loads->counts[i] / bandwidth;
            *ret_link = i;
        }
    }
    return slowest;
}

/* All workers send to the one that is so far ahead. Of the latencies, the mean and the largest. */
static void load_distance(const struct loads *loads, uint32_t workers, const uint32_t *hosts,
                          uint32_t distance, double ret_latencies[2])
{
    double sum = 0, largest = 0;
    memset(loads->counts, 0, loads->network->link_count * sizeof(*loads->counts));
    for (uint32_t w = 0; w < workers; w++) {
        struct network_route route;
        network_find_route(loads->network, hosts[w], hosts[(w + distance) % workers], &route);
        for (uint32_t i = 0; i < route.link_count; i++) {
            loads->counts[route.links[i]]++;
        }
        sum += route.latency_s;
        largest = route.latency_s > largest ? route.latency_s : largest;
    }
    ret_latencies[0] = sum / workers;
    ret_latencies[1] = largest;
}

/* All send to all: over a link go as many as there are workers below it, times those elsewhere. */
static void load_direct(const struct loads *loads, uint32_t workers, const uint32_t *hosts)
{
    const struct network *network = loads->network;
    double *counts = loads->counts;
    memset(counts, 0, network->link_count * sizeof(*counts));
    for (uint32_t w = 0; w < workers; w++) {
        const struct network_host *host = &network->hosts[hosts[w]];
        counts[host->up]++;
        for (uint32_t at = host->above; network->switches[at].above != NETWORK_NONE;
             at = network->switches[at].above) {
            counts[network->switches[at].up]++;
        }
    }
    for (uint32_t h = 0; h < network->host_count; h++) {
        const struct network_host *host = &network->hosts[h];
        double below = counts[host->up];
        counts[host->memory] = below * (below - 1);
        counts[host->up] = counts[host->down] = below * (workers - below);
    }
    for (uint32_t s = 0; s < network->switch_count; s++) {
        const struct network_switch *own = &network->switches[s];
        if (own->above != NETWORK_NONE) {
            double below = counts[own->up];
            counts[own->up] = counts[own->down] = below * (workers - below);
        }
    }
}

/* Host p of the reduced network sends to host 0, as far as worker 0 would to the one at N - p. All
 * have one link. */
static enum status make_star(const struct network *network, uint32_t workers, const uint32_t *hosts,
                             struct reduction *made)
{
    struct network *star = &made->network;
    star->hosts = calloc(workers, sizeof(*star->hosts));
    star->switches = calloc(1, sizeof(*star->switches));
    star->links = calloc(LINK_COUNT, sizeof(*star->links));
    made->origins = calloc(LINK_COUNT, sizeof(*made->origins));
    made->scales = calloc(LINK_COUNT, sizeof(*made->scales));
    made->halving_stretch = calloc(workers, sizeof(*made->halving_stretch));
    if (star->hosts == NULL || star->switches == NULL || star->links == NULL ||
        made->origins == NULL || made->scales == NULL || made->halving_stretch == NULL) {
        return STATUS_NO_MEMORY;
    }
    star->host_count = workers;
    star->switch_count = 1;
    star->link_count = LINK_COUNT;
    star->switches[0].above = NETWORK_NONE;
    for (uint32_t p = 0; p < workers; p++) {
        struct network_route route = {.latency_s = 0};
        if (p > 0) {
            network_find_route(network, hosts[0], hosts[workers - p], &route);
        }
        star->hosts[p] = (struct network_host){.up = LINK_OUT,
                                               .down = LINK_IN,
                                               .memory = LINK_IN,
                                               .cores = network->hosts[hosts[0]].cores,
                                               .machine = p,
                                               .latency_s = route.latency_s};
    }
    return STATUS_OK;
}

/* Stretches are against the byte time of the ring's hop, which is the bandwidth of the link. */
static void fill_star(const struct loads *loads, uint32_t workers, const uint32_t *hosts,
                      struct reduction *made)
{
    double latencies[2];
    uint32_t link = loads->network->hosts[hosts[0]].up, other = 0;
    load_distance(loads, workers, hosts, 1, latencies);
    double ring_s = slowest_s(loads, &link);
    made->network.hosts[workers - 1].latency_s = latencies[0]; // what goes around has them all
    made->network.links[LINK_OUT].bandwidth = ring_s > 0 ? 1 / ring_s : 0;
    made->network.links[LINK_OUT].may_saturate = ring_s > 0;
    made->origins[LINK_OUT] = made->origins[LINK_IN] = link;
    made->scales[LINK_OUT] = loads->counts[link];
    made->ring_stretch = 1;
    for (uint32_t hop = 1; hop <= halving_hop_count(workers); hop++) {
        uint32_t distance = halving_hop_at(workers, hop).distance;
        load_distance(loads, workers, hosts, workers - distance, latencies);
        made->network.hosts[distance].latency_s = latencies[1];
        made->halving_stretch[distance] = ring_s > 0 ? slowest_s(loads, &other) / ring_s : 1;
    }
    load_direct(loads, workers, hosts);
    // The worker's own link carries its flows to all others, so that is in their rates already.
    made->direct_stretch = ring_s > 0 ? slowest_s(loads, &other) / (ring_s * (workers - 1)) : 1;
}

/* The same between all, where there is loss. */
static double flow_between(const struct network *network, uint32_t from, uint32_t to)
{
    struct network_route route;
    network_find_route(network, from, to, &route);
    return route.flow_bandwidth;
}

enum status reduction_of_ring(const struct network *network, uint32_t workers, uint32_t *hosts,
                              struct reduction *ret_reduction)
{
    double flow = flow_between(network, hosts[0], hosts[workers - 1]);
    bool is_flat = are_below_one_switch(network, workers, hosts);
    // Below one switch a connection has its limit, and a link those of several. Elsewhere messages
    // are stretched by what is the slower of both.
    struct loads loads = {network, calloc(network->link_count, sizeof(double)), is_flat ? 0 : flow};
    enum status status =
        loads.counts != NULL ? make_star(network, workers, hosts, ret_reduction) : STATUS_NO_MEMORY;
    if (status == STATUS_OK) {
        fill_star(&loads, workers, hosts, ret_reduction);
        ret_reduction->network.flow_bandwidth = is_flat ? flow : 0;
        for (uint32_t p = 0; p < workers; p++) {
            hosts[p] = p;
        }
    }
    free(loads.counts);
    return status;
}

/* No flow of a worker has more than its share of that worker's link. */
static void cap_flows(uint32_t workers, uint32_t servers, const uint32_t *hosts,
                      struct network *network)
{
    double bandwidth = network_free(&network->links[network->hosts[hosts[0]].up]);
    double own = bandwidth / servers, flow = network->flow_bandwidth;
    if (bandwidth <= 0) {
        return;
    }
    network->flow_bandwidth = flow > 0 && flow < own ? flow : own;
    for (uint32_t w = 0; w < workers; w++) {
        network->links[network->hosts[hosts[w]].up].may_saturate = false;
        network->links[network->hosts[hosts[w]].down].may_saturate = false;
    }
}

/* One server of many has its own links, and a share of the others. */
static void divide_links(uint32_t servers, const struct network_host *server,
                         struct reduction *reduction)
{
    for (uint32_t i = 0; i < reduction->network.link_count; i++) {
        if (i != server->up && i != server->down && i != server->memory) {
            reduction->network.links[i].bandwidth /= servers;
            reduction->network.links[i].background /= servers;
            reduction->scales[i] = servers;
        }
    }
}

enum status reduction_of_servers(const struct network *network, uint32_t workers, uint32_t servers,
                                 uint32_t kept, const uint32_t *hosts,
                                 struct reduction *ret_reduction)
{
    enum status status = reduction_copy(network, ret_reduction);
    if (status != STATUS_OK) {
        return status;
    }
    cap_flows(workers, servers, hosts, &ret_reduction->network);
    if (kept < servers) {
        divide_links(servers, &ret_reduction->network.hosts[hosts[workers]], ret_reduction);
    }
    return STATUS_OK;
}
