/* Shares links among flows: max-min, by progressive filling.
 *
 * When flows begin or end, the rates of others may change, of those that share a link with them,
 * and so on. But most changes reach few of them. So rates are reckoned anew of the classes at the
 * links of those that changed, with all others as they are. Then it is looked whether that is
 * max-min, which it is, and then the only one, if each flow has a bottleneck: a full link on which
 * no flow has more (Bertsekas and Gallager, Data Networks, section 6.5.2). Classes without one, and
 * those that take theirs, take part in another round. */
#include "deploy/predict/engine/flow_state.h"
#include "deploy/predict/engine/flows.h"

#define TOLERANCE  1e-9 // of a rate, for rounding
#define ROUNDS_MAX 8    // then all take part that are connected

static void reach(struct flows *flows, uint32_t index)
{
    struct link_state *link = &flows->links[index];
    if (link->mark != flows->mark) {
        link->mark = flows->mark;
        flows->is_out_of_memory = !list_add(&flows->reached, index) || flows->is_out_of_memory;
    }
}

/* A class that may have another rate now. */
static void take_part(struct flows *flows, uint32_t index)
{
    struct flow_class *class = &flows->classes[index];
    if (class->mark == flows->mark || class->count == 0) {
        return;
    }
    class->mark = flows->mark;
    flows->is_out_of_memory = !list_add(&flows->sharing, index) || flows->is_out_of_memory;
    for (uint32_t i = 0; i < class->link_count; i++) {
        reach(flows, class->links[i]);
    }
}

/* All at the first links that are reached; UINT32_MAX: also of those that are reached by that. */
static void take_neighbours(struct flows *flows, uint32_t links)
{
    for (uint32_t r = 0; r < flows->reached.count && r < links; r++) {
        const struct link_state *link = &flows->links[flows->reached.items[r]];
        for (uint32_t i = 0; i < link->count; i++) {
            take_part(flows, link->classes[i]);
        }
    }
}

/* The classes that changed, and those at their links. */
static void begin_sharing(struct flows *flows)
{
    flows->mark++;
    flows->sharing.count = flows->reached.count = 0;
    for (uint32_t i = 0; i < flows->dirty.count; i++) {
        uint32_t index = flows->dirty.items[i];
        struct flow_class *class = &flows->classes[index];
        class->is_dirty = false;
        if (class->count == 0) {
            flows_leave_links(flows, index);
        }
        if (class->count == class->shared_count) {
            continue; // as many as before
        }
        take_part(flows, index);
        for (uint32_t j = 0; j < class->link_count; j++) {
            reach(flows, class->links[j]);
        }
        class->shared_count = class->count;
    }
    flows->dirty.count = 0;
    take_neighbours(flows, flows->reached.count);
}

/* What flows that do not take part leave of the links. */
static void empty_links(struct flows *flows)
{
    flows->unfilled.count = 0;
    for (uint32_t r = 0; r < flows->reached.count; r++) {
        struct link_state *link = &flows->links[flows->reached.items[r]];
        link->free = link->bandwidth;
        link->unfrozen = 0;
        for (uint32_t i = 0; i < link->count; i++) {
            const struct flow_class *class = &flows->classes[link->classes[i]];
            bool takes_part = class->mark == flows->mark;
            link->unfrozen += takes_part ? class->count : 0;
            link->free -= takes_part ? 0 : class->rate * class->count;
        }
        flows->is_out_of_memory =
            !list_add(&flows->unfilled, flows->reached.items[r]) || flows->is_out_of_memory;
    }
    for (uint32_t i = 0; i < flows->sharing.count; i++) {
        flows->classes[flows->sharing.items[i]].is_frozen = false;
    }
}

static void freeze_class(struct flows *flows, uint32_t index, double rate, double now)
{
    struct flow_class *class = &flows->classes[index];
    class->is_frozen = true;
    for (uint32_t i = 0; i < class->link_count; i++) {
        struct link_state *link = &flows->links[class->links[i]];
        link->unfrozen -= class->count;
        link->free -= rate * class->count;
    }
    flows_set_rate(flows, index, rate, now);
}

/* Sets the rates of the unfrozen classes of a link. How many there were. */
static uint32_t freeze_link(struct flows *flows, const struct link_state *link, double rate,
                            double now)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < link->count; i++) {
        const struct flow_class *class = &flows->classes[link->classes[i]];
        if (class->mark == flows->mark && !class->is_frozen) {
            freeze_class(flows, link->classes[i], rate, now);
            count++;
        }
    }
    return count;
}

/* What each unfrozen flow of a link may have, by this link. */
static double share_of(const struct link_state *link)
{
    return link->free > 0 ? link->free / link->unfrozen : 0;
}

/* The least that flows of an unfrozen class may have by themselves. */
static double least_most(const struct flows *flows)
{
    double least = flows->most;
    for (uint32_t i = 0; i < flows->sharing.count && flows->has_limits; i++) {
        const struct flow_class *class = &flows->classes[flows->sharing.items[i]];
        least = !class->is_frozen && class->most < least ? class->most : least;
    }
    return least;
}

/* Drops the links without unfrozen flows, and finds the least share that one of the others has. */
static double find_limit(struct flows *flows)
{
    double limit = least_most(flows);
    uint32_t kept = 0;
    for (uint32_t r = 0; r < flows->unfilled.count; r++) {
        const struct link_state *link = &flows->links[flows->unfilled.items[r]];
        if (link->unfrozen > 0) {
            double share = share_of(link);
            limit = share < limit ? share : limit;
            flows->unfilled.items[kept++] = flows->unfilled.items[r];
        }
    }
    flows->unfilled.count = kept;
    return limit;
}

static void fill_links(struct flows *flows, double now)
{
    empty_links(flows);
    for (uint32_t left = flows->sharing.count; left > 0 && !flows->is_out_of_memory;) {
        double limit = find_limit(flows);
        double rate = limit > 1 ? limit : 1; // rounding may leave nothing
        bool may_be_own = flows->has_limits || limit >= flows->most;
        for (uint32_t i = 0; i < flows->sharing.count && may_be_own; i++) {
            uint32_t index = flows->sharing.items[i];
            if (!flows->classes[index].is_frozen && flows->classes[index].most <= limit) {
                freeze_class(flows, index, rate, now);
                left--;
            }
        }
        for (uint32_t r = 0; r < flows->unfilled.count; r++) {
            const struct link_state *link = &flows->links[flows->unfilled.items[r]];
            if (link->unfrozen > 0 && share_of(link) <= limit * (1 + 1e-12)) {
                left -= freeze_link(flows, link, rate, now);
            }
        }
    }
}

static void measure_links(struct flows *flows)
{
    for (uint32_t r = 0; r < flows->reached.count; r++) {
        struct link_state *link = &flows->links[flows->reached.items[r]];
        link->load = link->top = 0;
        for (uint32_t i = 0; i < link->count; i++) {
            const struct flow_class *class = &flows->classes[link->classes[i]];
            link->load += class->rate * class->count;
            link->top = class->rate > link->top ? class->rate : link->top;
        }
    }
}

static bool is_full(const struct link_state *link)
{
    return link->load >= link->bandwidth * (1 - TOLERANCE);
}

static bool has_bottleneck(const struct flows *flows, const struct flow_class *class)
{
    bool has_one = class->rate >= class->most * (1 - TOLERANCE);
    for (uint32_t i = 0; i < class->link_count && !has_one; i++) {
        const struct link_state *link = &flows->links[class->links[i]];
        has_one = is_full(link) && class->rate >= link->top * (1 - TOLERANCE);
    }
    return has_one;
}

/* Those that have more than a class on links that are full. */
static void take_larger(struct flows *flows, const struct flow_class *class)
{
    for (uint32_t i = 0; i < class->link_count; i++) {
        const struct link_state *link = &flows->links[class->links[i]];
        for (uint32_t j = 0; j < link->count && is_full(link); j++) {
            if (flows->classes[link->classes[j]].rate > class->rate) {
                take_part(flows, link->classes[j]);
            }
        }
    }
}

/* Whether more have to take part, as there is somebody without a bottleneck. */
static bool widen(struct flows *flows)
{
    uint32_t classes = flows->sharing.count, links = flows->reached.count;
    for (uint32_t i = 0; i < classes; i++) {
        uint32_t index = flows->sharing.items[i];
        if (!has_bottleneck(flows, &flows->classes[index])) {
            take_larger(flows, &flows->classes[index]);
        }
    }
    for (uint32_t r = 0; r < links; r++) {
        const struct link_state *link = &flows->links[flows->reached.items[r]];
        for (uint32_t i = 0; i < link->count; i++) {
            const struct flow_class *class = &flows->classes[link->classes[i]];
            if (class->mark != flows->mark && !has_bottleneck(flows, class)) {
                take_part(flows, link->classes[i]);
            }
        }
    }
    return flows->sharing.count > classes;
}

bool flows_share(struct flows *flows, double now)
{
    if (flows->dirty.count == 0) {
        return !flows->is_out_of_memory;
    }
    begin_sharing(flows);
    uint32_t rounds = 0;
    do {
        if (++rounds == ROUNDS_MAX) {
            take_neighbours(flows, UINT32_MAX);
        }
        fill_links(flows, now);
        measure_links(flows);
    } while (widen(flows) && !flows->is_out_of_memory);
    return !flows->is_out_of_memory;
}
