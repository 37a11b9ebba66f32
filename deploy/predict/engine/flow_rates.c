/* Shares links among flows: max-min, link by link in the order of their levels.
 *
 * The level of a link is the rate of those of its flows that nothing else limits to less. It
 * depends on lower levels only: on those of the links that limit its other flows. Rates are max-min
 * if each class has the level of one of its links, and no more than that of any other (Bertsekas
 * and Gallager, Data Networks, section 6.5.2).
 *
 * When flows begin or end, most levels stay. Only those that may change are computed again, as
 * shortest paths are when the lengths of edges change (Ramalingam and Reps, An incremental
 * algorithm for a generalization of the shortest-path problem, 1996). Links have turns in the order
 * of their levels, each at its old level or at its new one, whichever is lower. At its turn a link
 * gives its level to the classes that it limits, and to those that have more. That may change the
 * levels of their other links, but none below the level of this turn. A link that limits no class,
 * and is not full, has no turn. */
#include "deploy/predict/engine/flow_state.h"
#include "deploy/predict/engine/flows.h"

#define TOLERANCE 1e-9 // of a level, for rounding
#define LOAD_MOST 2    // times a link's bandwidth, by one class

static bool is_above(double rate, double level)
{
    return rate > level * (1 + TOLERANCE);
}

/* What all flows of a class stand for. */
static double weight_of(const struct flow_pace *pace)
{
    return pace->count * pace->each;
}

static double most_of(const struct flows *flows, uint32_t class)
{
    return flows->has_limits ? flows->classes[class].most : flows->most;
}

/* What flows of a class would have if this link did not limit them. */
static double want_of(const struct flows *flows, uint32_t class, uint32_t link)
{
    const struct flow_pace *pace = &flows->paces[class];
    return pace->limit == link ? most_of(flows, class) : pace->rate;
}

/* A lower bound of a link's level: classes that want less than `parted` have what they want, and
 * the others share the rest. */
static double bound_of(const struct link_state *link)
{
    if (link->sharing > 0) {
        return link->free > 0 ? link->free / link->sharers : 0;
    }
    return link->free < -TOLERANCE * link->bandwidth ? 0 : FLOW_LEVEL_NONE;
}

/* Finds the level of a link, which is not below `lowest`. */
static void find_level(const struct flows *flows, uint32_t index, double lowest)
{
    struct link_state *link = &flows->links[index];
    double want_least;
    link->next = lowest;
    do {
        link->parted = link->next;
        link->free = link->bandwidth;
        link->sharers = link->sharing = 0;
        want_least = FLOW_LEVEL_NONE;
        for (uint32_t i = 0; i < link->count; i++) {
            double weight = weight_of(&flows->paces[link->classes[i]]);
            double want = want_of(flows, link->classes[i], index);
            if (want < link->parted) {
                link->free -= want * weight;
            } else {
                link->sharers += weight;
                link->sharing++;
                want_least = want < want_least ? want : want_least;
            }
        }
        double bound = bound_of(link);
        link->next = bound > link->parted ? bound : link->parted;
    } while (want_least < link->next);
    link->is_found = true;
}

/* Gives a link a turn at its old level or at its new one, whichever is lower. */
static void queue_link(struct flows *flows, uint32_t index)
{
    const struct link_state *link = &flows->links[index];
    double level = link->next < link->level ? link->next : link->level;
    if (level == FLOW_LEVEL_NONE) {
        heap_leave(flows->queue, &flows->queue_count, flows->queue_places, index);
        return;
    }
    level = level > flows->filled ? level : flows->filled;
    heap_enter(flows->queue, &flows->queue_count, flows->queue_places,
               &(struct heap_entry){{level, index}, index});
}

static bool is_open(const struct flows *flows, const struct link_state *link)
{
    return link->mark == flows->mark;
}

/* A link takes part in this sharing, as its level may be another one now. */
static void open_link(struct flows *flows, uint32_t index)
{
    struct link_state *link = &flows->links[index];
    link->mark = flows->mark;
    find_level(flows, index, flows->filled);
    queue_link(flows, index);
}

/* A class of this weight wants another rate of an open link. */
static void change_want(struct flows *flows, uint32_t index, double weight, double before,
                        double want)
{
    struct link_state *link = &flows->links[index];
    if (link->is_found && before >= link->next && want >= link->next) {
        if (is_above(want, link->next)) {
            queue_link(flows, index);
        }
        return;
    }
    if (before < link->parted) {
        link->free += before * weight;
    } else {
        link->sharers -= weight;
        link->sharing--;
    }
    if (want < link->parted) {
        link->free -= want * weight;
    } else {
        link->sharers += weight;
        link->sharing++;
    }
    link->is_found = false;
    link->next = bound_of(link);
    queue_link(flows, index);
}

/* What a class of this weight adds to the load of a link. Before the link limits it, it may want
 * any number, beside which rounding would lose what others add. */
static double load_of(const struct link_state *link, double rate, double weight)
{
    double load = rate * weight, most = LOAD_MOST * link->bandwidth;
    return load < most ? load : most;
}

static void note_change(struct flows *flows, uint32_t index)
{
    struct flow_pace *pace = &flows->paces[index];
    if (pace->mark != flows->mark) {
        pace->mark = flows->mark;
        flows->classes[index].before = pace->rate;
        flows->is_out_of_memory = !list_add(&flows->changed, index) || flows->is_out_of_memory;
    }
}

/* Opens a link whose load has changed, if its level may be another one now. */
static void reconsider(struct flows *flows, uint32_t index)
{
    const struct link_state *link = &flows->links[index];
    bool may_change = link->level != FLOW_LEVEL_NONE || is_above(link->load, link->bandwidth);
    if (may_change && !is_open(flows, link)) {
        open_link(flows, index);
    }
}

/* Gives a class a rate, and says which link limits it to that. */
static void set_rate(struct flows *flows, uint32_t index, double rate, uint32_t limit)
{
    const struct flow_class *class = &flows->classes[index];
    struct flow_pace *pace = &flows->paces[index];
    double rate_before = pace->rate, most = most_of(flows, index), weight = weight_of(pace);
    uint32_t limit_before = pace->limit;
    note_change(flows, index);
    pace->rate = rate;
    flows_set_limit(flows, index, limit);
    for (uint32_t i = 0; i < class->link_count; i++) {
        uint32_t at = class->links[i];
        struct link_state *link = &flows->links[at];
        double before = limit_before == at ? most : rate_before;
        double want = limit == at ? most : rate;
        link->load += load_of(link, rate, weight) - load_of(link, rate_before, weight);
        if (!is_open(flows, link)) {
            reconsider(flows, at);
        } else if (at != limit && before != want) {
            change_want(flows, at, weight, before, want);
        }
    }
}

/* Gives a link its level, and also the classes that it limits from now on. */
static void set_level(struct flows *flows, uint32_t at, double level)
{
    struct link_state *link = &flows->links[at];
    link->level = level;
    for (uint32_t i = 0; i < link->count; i++) {
        uint32_t class = link->classes[i];
        const struct flow_pace *pace = &flows->paces[class];
        if (pace->limit == at) {
            double most = most_of(flows, class);
            if (level >= most) {
                set_rate(flows, class, most, FLOW_LIMIT_NONE);
            } else if (level != pace->rate) {
                set_rate(flows, class, level, at);
            }
        } else if (is_above(pace->rate, level)) {
            set_rate(flows, class, level, at);
        }
    }
    link->level = link->limited > 0 ? level : FLOW_LEVEL_NONE;
}

/* Gives the next link its turn, or a later one if its level turns out to be higher. */
static void take_turn(struct flows *flows)
{
    const struct heap_entry first = flows->queue[0];
    struct link_state *link = &flows->links[first.index];
    heap_leave(flows->queue, &flows->queue_count, flows->queue_places, first.index);
    flows->filled = first.key.at;
    if (!link->is_found) {
        find_level(flows, first.index, flows->filled);
    }
    if (link->next > flows->filled && link->level > flows->filled) {
        queue_link(flows, first.index);
        return;
    }
    bool stays = !is_above(link->next, link->level) && !is_above(link->level, link->next);
    set_level(flows, first.index, stays ? link->level : link->next);
}

/* Brings the loads of links up to date, and takes classes without flows off their links. */
static void count_flows(struct flows *flows)
{
    for (uint32_t i = 0; i < flows->dirty.count; i++) {
        uint32_t index = flows->dirty.items[i];
        const struct flow_class *class = &flows->classes[index];
        const struct flow_pace *pace = &flows->paces[index];
        double weight_before = class->shared_count * pace->each;
        for (uint32_t j = 0; j < class->link_count; j++) {
            struct link_state *link = &flows->links[class->links[j]];
            link->load += load_of(link, pace->rate, weight_of(pace)) -
                          load_of(link, pace->rate, weight_before);
        }
        if (pace->count == 0) {
            flows_leave_links(flows, index);
        }
    }
}

/* Opens the links of classes whose number of flows has changed. Classes that had no flows want all
 * that they may have. */
static void begin_sharing(struct flows *flows)
{
    flows->mark++;
    flows->filled = 0;
    flows->changed.count = 0;
    count_flows(flows);
    for (uint32_t i = 0; i < flows->dirty.count; i++) {
        uint32_t index = flows->dirty.items[i], count = flows->paces[index].count;
        struct flow_class *class = &flows->classes[index];
        if (count > 0 && class->shared_count == 0) {
            set_rate(flows, index, most_of(flows, index), FLOW_LIMIT_NONE);
        }
        for (uint32_t j = 0; j < class->link_count && count != class->shared_count; j++) {
            reconsider(flows, class->links[j]);
        }
        class->is_dirty = false;
        class->shared_count = count;
    }
    flows->dirty.count = 0;
}

/* Lets classes go on at their new rates. */
static void end_sharing(struct flows *flows, double now)
{
    for (uint32_t i = 0; i < flows->changed.count; i++) {
        uint32_t index = flows->changed.items[i];
        struct flow_pace *pace = &flows->paces[index];
        double rate = pace->rate;
        pace->rate = flows->classes[index].before;
        flows_set_rate(flows, index, rate, now);
        flows_find_end(flows, index, now);
    }
}

bool flows_share(struct flows *flows, double now)
{
    if (flows->dirty.count == 0) {
        return !flows->is_out_of_memory;
    }
    begin_sharing(flows);
    while (flows->queue_count > 0 && !flows->is_out_of_memory) {
        take_turn(flows);
    }
    end_sharing(flows, now);
    return !flows->is_out_of_memory;
}
