/* Compares workers, and counts who uses which link. */
#include "deploy/predict/sample.h"

#include "deploy/predict/sample_racks.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define BESIDE_WORKERS 64 // for each server, for its host to be much like those of other workers
#define DISTANCE_PARTS 8  // of a sample: other distances are odd multiples of one of them

static bool are_alike_links(const struct network *network, uint32_t a, uint32_t b)
{
    const struct network_link *one = &network->links[a], *other = &network->links[b];
    return one->bandwidth == other->bandwidth && one->background == other->background &&
           one->loss == other->loss;
}

static bool are_alike_machines(const struct network *network, const struct network_host *one,
                               const struct network_host *other)
{
    return are_alike_links(network, one->up, other->up) &&
           are_alike_links(network, one->memory, other->memory) && one->cores == other->cores &&
           one->workers == other->workers && one->latency_s == other->latency_s &&
           one->memory_latency_s == other->memory_latency_s;
}

/* Likewise all switches above them. */
static bool are_alike_hosts(const struct network *network, uint32_t a, uint32_t b)
{
    const struct network_host *one = &network->hosts[a], *other = &network->hosts[b];
    if (!are_alike_machines(network, one, other)) {
        return false;
    }
    uint32_t above = one->above, beside = other->above;
    while (above != beside && above != NETWORK_NONE && beside != NETWORK_NONE) {
        const struct network_switch *own = &network->switches[above],
                                    *its = &network->switches[beside];
        if (own->latency_s != its->latency_s || own->above == NETWORK_NONE ||
            its->above == NETWORK_NONE || !are_alike_links(network, own->up, its->up)) {
            return false;
        }
        above = own->above;
        beside = its->above;
    }
    return above == beside;
}

/* Whether workers come again alike behind so many, and each is as far from the next. */
static bool is_period(const struct network *network, uint32_t workers, const uint32_t *hosts,
                      uint32_t period)
{
    for (uint32_t w = 0; w < workers; w++) {
        uint32_t like = w % period, next = (w + 1) % workers;
        if (!are_alike_hosts(network, hosts[w], hosts[like]) ||
            network_distance(network, hosts[w], hosts[next]) !=
                network_distance(network, hosts[like], hosts[(like + 1) % period])) {
            return false;
        }
    }
    return true;
}

/* The same where switches do not matter: each is on such a host, and the next on it or not. */
static bool is_period_of_machines(const struct network *network, uint32_t workers,
                                  const uint32_t *hosts, uint32_t period)
{
    for (uint32_t w = 0; w < workers; w++) {
        uint32_t like = w % period, next = (w + 1) % workers;
        if (!are_alike_machines(network, &network->hosts[hosts[w]], &network->hosts[hosts[like]]) ||
            (hosts[w] == hosts[next]) != (hosts[like] == hosts[(like + 1) % period])) {
            return false;
        }
    }
    return true;
}

/* Whether a process runs on a machine that several hosts share. */
static bool has_shared_machine(const struct network *network, uint32_t processes,
                               const uint32_t *hosts)
{
    for (uint32_t p = 0; p < processes; p++) {
        const struct network_host *host = &network->hosts[hosts[p]];
        if (host->cores > 0 && host->machine_name[0] != '\0') {
            return true;
        }
    }
    return false;
}

/* The last worker on the host of a server, + 1; 0: there is none on any. */
static uint32_t beside_end(uint32_t workers, uint32_t servers, const uint32_t *hosts)
{
    uint32_t end = 0;
    for (uint32_t k = 0; k < servers; k++) {
        for (uint32_t w = workers; w > end; w--) {
            if (hosts[w - 1] == hosts[workers + k]) {
                end = w;
                break;
            }
        }
    }
    return end;
}

static bool are_alike(const struct network *network, uint32_t workers, const uint32_t *hosts)
{
    for (uint32_t w = 1; w < workers; w++) {
        if (!are_alike_hosts(network, hosts[w], hosts[0])) {
            return false;
        }
    }
    return true;
}

static bool are_below_one_switch(const struct network *network, uint32_t workers,
                                 const uint32_t *hosts)
{
    for (uint32_t w = 0; w < workers; w++) {
        if (network->hosts[hosts[w]].above != network->hosts[hosts[0]].above) {
            return false;
        }
    }
    return true;
}

/* What a connection loses follows from its latency, which hops of a sample have more of. */
static bool has_loss(const struct network *network, uint32_t workers, const uint32_t *hosts)
{
    double sum = 0;
    for (uint32_t w = 0; w < workers; w++) {
        sum += network->links[network->hosts[hosts[w]].up].loss;
    }
    for (uint32_t s = 0; s < network->switch_count; s++) {
        uint32_t up = network->switches[s].up;
        sum += up != NETWORK_NONE ? network->links[up].loss : 0;
    }
    return sum > 0;
}

/* Whether each distance is of whole hosts, or within them. */
static bool may_be_halved(const struct network *network, uint32_t count, const uint32_t *hosts)
{
    uint32_t places = network->hosts[hosts[0]].workers, part = count / DISTANCE_PARTS;
    return (count & (count - 1)) == 0 && part > 0 && part % places == 0;
}

/* The first worker behind this one whose host is of another class. */
static uint32_t end_of_class(const struct network *network, uint32_t workers, const uint32_t *hosts,
                             uint32_t first)
{
    uint32_t end = first + 1;
    while (end < workers && are_alike_hosts(network, hosts[end], hosts[first])) {
        end++;
    }
    return end;
}

static uint32_t common_divisor(uint32_t a, uint32_t b)
{
    return b > 0 ? common_divisor(b, a % b) : a;
}

/* Into how many equal parts of whole hosts each class may be cut. 0: not all places of a host are
 * taken. */
static uint32_t count_parts(const struct network *network, uint32_t workers, const uint32_t *hosts)
{
    uint32_t parts = 0;
    for (uint32_t first = 0, end; first < workers; first = end) {
        uint32_t places = network->hosts[hosts[first]].workers;
        end = end_of_class(network, workers, hosts, first);
        if (places == 0 || (end - first) % places != 0) {
            return 0;
        }
        parts = common_divisor((end - first) / places, parts);
    }
    return parts;
}

/* Servers beside workers put more load on the links and cores of their hosts. In a sample such
 * servers get links of their own. With cores, the sample has to hold the workers beside them: in
 * ps-sync all wait for these; in ps-async they would be too large a part of it. */
const char *sample_beside_obstacle(const struct network *network, uint32_t workers,
                                   uint32_t servers, const uint32_t *hosts,
                                   enum reduction_kind kind)
{
    static_assert(BESIDE_WORKERS == 64, "a text below says it");
    bool has_cores = network->hosts[hosts[0]].cores > 0;
    uint32_t end = beside_end(workers, servers, hosts);
    if (end == 0) {
        return NULL;
    }
    return workers / servers < BESIDE_WORKERS
               ? "servers on hosts of workers need 64 workers or more for each of them"
           : !are_alike(network, workers, hosts)
               ? "servers on hosts of workers need hosts that are alike"
           : !are_below_one_switch(network, workers, hosts)
               ? "servers on hosts of workers need one switch above all of them"
           : has_cores && kind != REDUCTION_SYNC
               ? "servers on hosts of workers with cores need ps-sync"
           : has_cores && end > workers / 2
               ? "servers on hosts of workers with cores need to be on the first half of them"
               : NULL;
}

bool sample_is_beside(uint32_t workers, uint32_t servers, const uint32_t *hosts)
{
    return beside_end(workers, servers, hosts) > 0;
}

/* A sample round a ring whose racks are larger: few of its hops lead from one to another. */
static uint32_t find_past_switches(const struct network *network, uint32_t workers,
                                   const uint32_t *hosts, uint32_t wanted)
{
    if (!sample_racks_are_idle(network, workers, hosts)) {
        return 0;
    }
    for (uint32_t count = wanted; count / 4 <= wanted && count <= workers / 2; count++) {
        if (workers % count == 0 && is_period_of_machines(network, workers, hosts, count)) {
            return count;
        }
    }
    return 0;
}

uint32_t sample_find(const struct network *network, uint32_t workers, uint32_t servers,
                     const uint32_t *hosts, uint32_t wanted, enum reduction_kind kind)
{
    assert(wanted > 0);
    bool is_ring = kind == REDUCTION_RING || kind == REDUCTION_HALVING;
    bool is_flat = are_below_one_switch(network, workers, hosts);
    uint32_t end = beside_end(workers, servers, hosts);
    if (has_shared_machine(network, workers + servers, hosts) || network_has_bursts(network) ||
        sample_beside_obstacle(network, workers, servers, hosts, kind) != NULL ||
        (is_ring && has_loss(network, workers, hosts)) || (kind == REDUCTION_HALVING && !is_flat)) {
        return 0;
    }
    bool is_even = is_period(network, workers, hosts, 1);
    uint32_t parts =
        kind != REDUCTION_HALVING && is_flat ? count_parts(network, workers, hosts) : 0;
    bool must_hold_beside = end > 0 && network->hosts[hosts[0]].cores > 0;
    wanted = must_hold_beside && wanted < end ? end : wanted;
    for (uint32_t count = wanted; count / 4 <= wanted && count <= workers / 2; count++) {
        bool is_whole = workers % count == 0;
        bool may_halve = kind != REDUCTION_HALVING || may_be_halved(network, count, hosts);
        if ((is_whole || is_even) && may_halve && is_period(network, workers, hosts, count)) {
            return count;
        }
        if (is_whole && parts > 0 && parts % (workers / count) == 0) {
            return count;
        }
    }
    return kind == REDUCTION_RING && !is_flat ? find_past_switches(network, workers, hosts, wanted)
                                              : 0;
}

bool sample_has_classes(const struct network *network, uint32_t workers, const uint32_t *hosts,
                        uint32_t count)
{
    return !is_period(network, workers, hosts, count) &&
           are_below_one_switch(network, workers, hosts);
}

void sample_place(const struct network *network, uint32_t workers, uint32_t count, uint32_t *hosts)
{
    if (!sample_has_classes(network, workers, hosts, count)) {
        return;
    }
    uint32_t each = workers / count, placed = 0;
    for (uint32_t first = 0, end; first < workers; first = end) {
        end = end_of_class(network, workers, hosts, first);
        for (uint32_t w = first; w < first + (end - first) / each; w++, placed++) {
            uint32_t host = hosts[w];
            memmove(&hosts[placed + 1], &hosts[placed], (w - placed) * sizeof(*hosts));
            hosts[placed] = host;
        }
    }
    assert(placed == count);
}

/* What is sent over a link stands for so many times that. */
static void divide_link(struct reduction *reduction, uint32_t link, double by)
{
    reduction->network.links[link].bandwidth /= by;
    reduction->network.links[link].background /= by;
    reduction->scales[link] = by;
}

enum status sample_ring(const struct network *network, uint32_t workers, const uint32_t *hosts,
                        uint32_t count, struct reduction *ret_reduction)
{
    double hops_each = (double)(workers - 1) / (count - 1);
    enum status status = reduction_copy(network, ret_reduction);
    if (status != STATUS_OK) {
        return status;
    }
    struct network *made = &ret_reduction->network;
    if (!are_below_one_switch(network, workers, hosts) &&
        !is_period(network, workers, hosts, count)) {
        sample_racks_leave_out(network, workers, hosts, made);
    }
    for (uint32_t i = 0; i < made->link_count; i++) {
        divide_link(ret_reduction, i, hops_each);
    }
    for (uint32_t i = 0; i < made->host_count; i++) {
        made->hosts[i].latency_s *= hops_each;
        made->hosts[i].memory_latency_s *= hops_each;
    }
    for (uint32_t i = 0; i < made->switch_count; i++) {
        made->switches[i].latency_s *= hops_each;
    }
    made->flow_bandwidth /= hops_each;
    made->send_buffer /= hops_each;
    return STATUS_OK;
}

enum status sample_halving(const struct network *network, struct reduction *ret_reduction)
{
    return reduction_copy(network, ret_reduction);
}

uint32_t sample_distance(uint32_t count, uint32_t distance)
{
    uint32_t part = 1;
    for (; distance >= count; distance /= 2) {
        part += 2;
    }
    return part == 1 ? distance : part * (count / DISTANCE_PARTS) % count;
}

/* How many pairs of a worker, from `first` on, and a server have each link on the way to the
 * server, or back. */
static void count_pairs(const struct network *network, const uint32_t *workers, uint32_t count,
                        const uint32_t *servers, uint32_t server_count, double *counts)
{
    for (uint32_t w = 0; w < count; w++) {
        for (uint32_t k = 0; k < server_count; k++) {
            struct network_route there, back;
            network_find_route(network, workers[w], servers[k], &there);
            network_find_route(network, servers[k], workers[w], &back);
            for (uint32_t i = 0; i < there.link_count; i++) {
                counts[there.links[i]]++;
            }
            for (uint32_t i = 0; i < back.link_count; i++) {
                counts[back.links[i]]++;
            }
        }
    }
}

/* A link with what another one has, which is its origin. */
static uint32_t add_link(struct reduction *reduction, uint32_t like)
{
    uint32_t index = reduction->network.link_count++;
    reduction->network.links[index] = reduction->network.links[like];
    reduction->origins[index] = like;
    reduction->scales[index] = 1;
    return index;
}

static bool make_room(struct reduction *reduction, uint32_t hosts)
{
    struct network *made = &reduction->network;
    size_t link_count = made->link_count + 2 * (size_t)hosts;
    struct network_link *links = realloc(made->links, link_count * sizeof(*links));
    made->links = links != NULL ? links : made->links;
    size_t host_count = made->host_count + (size_t)hosts;
    struct network_host *all = realloc(made->hosts, host_count * sizeof(*all));
    made->hosts = all != NULL ? all : made->hosts;
    uint32_t *origins = realloc(reduction->origins, link_count * sizeof(*origins));
    reduction->origins = origins != NULL ? origins : reduction->origins;
    double *scales = realloc(reduction->scales, link_count * sizeof(*scales));
    reduction->scales = scales != NULL ? scales : reduction->scales;
    return links != NULL && all != NULL && origins != NULL && scales != NULL;
}

/* Gives servers beside workers hosts with links of their own, on the same machines; servers of one
 * host stay together. hosts: (servers). */
static enum status set_apart(uint32_t servers, uint32_t *hosts, struct reduction *reduction)
{
    struct network *made = &reduction->network;
    uint32_t first = made->host_count;
    if (!make_room(reduction, servers)) {
        return STATUS_NO_MEMORY;
    }
    for (uint32_t k = 0; k < servers; k++) {
        uint32_t at = first;
        while (at < made->host_count &&
               reduction->origins[made->hosts[at].up] != made->hosts[hosts[k]].up) {
            at++;
        }
        if (at == made->host_count) {
            struct network_host *host = &made->hosts[made->host_count++];
            *host = made->hosts[hosts[k]];
            host->up = add_link(reduction, host->up);
            host->down = add_link(reduction, host->down);
        }
        hosts[k] = at;
    }
    return STATUS_OK;
}

/* On the links of servers beside workers: the pairs of a server, and half of those of the workers
 * on its host, which `before` has. These workers send while their server receives, so their
 * messages delay other buckets only. */
static void count_beside(const struct reduction *reduction, uint32_t link_count,
                         const double *before, double *all)
{
    for (uint32_t i = link_count; i < reduction->network.link_count; i++) {
        all[i] = (all[i] + before[reduction->origins[i]]) / 2;
    }
}

enum status sample_servers(const struct network *network, uint32_t workers, uint32_t servers,
                           uint32_t count, uint32_t *hosts, struct reduction *ret_reduction)
{
    size_t room = network->link_count + 2 * (size_t)servers;
    bool is_beside = sample_is_beside(workers, servers, hosts);
    double *counts = calloc(3 * room, sizeof(*counts));
    enum status status = counts != NULL ? reduction_copy(network, ret_reduction) : STATUS_NO_MEMORY;
    if (status == STATUS_OK && is_beside) {
        count_pairs(network, hosts, workers, hosts + workers, servers, counts);
        status = set_apart(servers, hosts + workers, ret_reduction);
    }
    if (status == STATUS_OK) {
        const struct network *made = &ret_reduction->network;
        double *all = counts + room, *kept = all + room;
        count_pairs(made, hosts, workers, hosts + workers, servers, all);
        count_pairs(made, hosts, count, hosts + workers, servers, kept);
        count_beside(ret_reduction, network->link_count, counts, all);
        for (uint32_t i = 0; i < made->link_count; i++) {
            if (kept[i] > 0 && all[i] > kept[i]) {
                divide_link(ret_reduction, i, all[i] / kept[i]);
            }
        }
    }
    free(counts);
    return status;
}
