/* Shares links among flows: max-min, by progressive filling.
 *
 * Rates are max-min, which only one choice of them is, if no link has to carry more than it can and
 * each flow has a bottleneck: a full link on which no flow has more (Bertsekas and Gallager, Data
 * Networks, section 6.5.2). A class knows its bottleneck, and a link the sum of its flows' rates.
 *
 * When flows begin or end, the rates of others may change, of those that share a link with them,
 * and so on. But most changes reach few of them. So their links are opened, which is to say that
 * those classes take part whose bottleneck they are. Links are filled for all that take part, with
 * all others as they are. Then it is looked whether all have a bottleneck still, at the links of
 * those that took part. If some have none, or a link has too much, these take part in another
 * round. */
#include "deploy/predict/engine/flow_state.h"
#include "deploy/predict/engine/flows.h"

#define TOLERANCE  1e-9 // of a rate, for rounding
#define ROUNDS_MAX 16   // then all take part that are connected

/* Of so many flows of a class: those that they stand for. */
static double weigh(const struct flow_pace *pace, double count)
{
    return count * pace->each;
}

static bool takes_part(const struct flows *flows, const struct flow_pace *pace)
{
    return (pace->mark | 1) == (flows->mark | 1);
}

/* Whether it takes part, and has no rate yet. */
static bool is_unfrozen(const struct flows *flows, const struct flow_pace *pace)
{
    return pace->mark == flows->mark;
}

static void note(struct flows *flows, struct list *list, uint32_t index)
{
    flows->is_out_of_memory = !list_add(list, index) || flows->is_out_of_memory;
}

static void reach(struct flows *flows, uint32_t index)
{
    struct link_state *link = &flows->links[index];
    if (link->mark != flows->mark) {
        link->mark = flows->mark;
        note(flows, &flows->reached, index);
    }
}

static bool is_open(const struct flows *flows, const struct link_state *link)
{
    return link->opened == flows->mark;
}

static void open_link(struct flows *flows, uint32_t index)
{
    if (!is_open(flows, &flows->links[index])) {
        flows->links[index].opened = flows->mark;
        flows->links[index].has_newcomers = true;
        note(flows, &flows->open, index);
    }
}

/* A class that may have another rate now. What it leaves, others at its bottleneck may have. */
static void take_part(struct flows *flows, uint32_t index)
{
    const struct flow_class *class = &flows->classes[index];
    struct flow_pace *pace = &flows->paces[index];
    if (takes_part(flows, pace)) {
        return;
    }
    pace->mark = flows->mark;
    note(flows, &flows->sharing, index);
    for (uint32_t i = 0; i < class->link_count; i++) {
        reach(flows, class->links[i]);
        flows->links[class->links[i]].has_newcomers = true;
    }
    if (pace->limit != FLOW_LIMIT_NONE) {
        open_link(flows, pace->limit);
    }
}

/* Those at a link that have more than so much. */
static void take_above(struct flows *flows, const struct link_state *link, double rate)
{
    for (uint32_t i = 0; i < link->count; i++) {
        if (flows->paces[link->classes[i]].rate > rate * (1 + TOLERANCE)) {
            take_part(flows, link->classes[i]);
        }
    }
}

/* Those whose bottleneck an open link is, from the given one on. */
static void take_limited(struct flows *flows, uint32_t first)
{
    for (uint32_t o = first; o < flows->open.count; o++) {
        uint32_t index = flows->open.items[o];
        const struct link_state *link = &flows->links[index];
        uint32_t left = link->limited;
        for (uint32_t i = 0; i < link->count && left > 0; i++) {
            if (flows->paces[link->classes[i]].limit == index) {
                take_part(flows, link->classes[i]);
                left--;
            }
        }
    }
}

/* All that are connected. */
static void take_everybody(struct flows *flows)
{
    for (uint32_t r = 0; r < flows->reached.count; r++) {
        open_link(flows, flows->reached.items[r]);
        take_above(flows, &flows->links[flows->reached.items[r]], -1);
    }
}

/* The classes that changed, and those whose bottleneck is at their links. */
static void begin_sharing(struct flows *flows)
{
    flows->mark += 2;
    flows->sharing.count = flows->reached.count = flows->open.count = 0;
    for (uint32_t i = 0; i < flows->dirty.count; i++) {
        uint32_t index = flows->dirty.items[i];
        struct flow_class *class = &flows->classes[index];
        const struct flow_pace *pace = &flows->paces[index];
        double more = pace->rate * weigh(pace, (double)pace->count - class->shared_count);
        bool has_changed = pace->count != class->shared_count;
        for (uint32_t j = 0; j < class->link_count && has_changed; j++) {
            flows->links[class->links[j]].load += more;
            reach(flows, class->links[j]);
            open_link(flows, class->links[j]);
        }
        if (pace->count > 0 && has_changed) {
            take_part(flows, index);
        } else if (pace->count == 0) {
            flows_leave_links(flows, index);
        }
        class->is_dirty = false;
        class->shared_count = pace->count;
    }
    flows->dirty.count = 0;
    take_limited(flows, 0);
}

/* What each unfrozen flow of a link may have, by this link. */
static double share_of(const struct link_room *room)
{
    return room->free > 0 ? room->free / room->sharers : 0;
}

static void note_share(struct flows *flows, uint32_t index)
{
    struct share_heap *unfilled = &flows->unfilled;
    const struct link_room *room = &flows->links[index].now;
    if (room->unfrozen == 0) {
        return;
    }
    if (!array_has_room((void **)&unfilled->items, unfilled->count, &unfilled->room,
                        sizeof(*unfilled->items))) {
        flows->is_out_of_memory = true;
        return;
    }
    const struct link_share item = {{share_of(room), index}, index};
    heap_add(unfilled->items, &unfilled->count, &item, sizeof(item));
}

/* What flows that do not take part leave of a link. */
static void empty_link(const struct flows *flows, struct link_state *link)
{
    struct link_room room = {.free = link->bandwidth};
    link->load = 0; // without what rounding has left in it
    for (uint32_t i = 0; i < link->count; i++) {
        const struct flow_pace *pace = &flows->paces[link->classes[i]];
        bool is_filled = takes_part(flows, pace);
        double sharers = weigh(pace, pace->count), load = pace->rate * sharers;
        room.unfrozen += is_filled ? pace->count : 0;
        room.sharers += is_filled ? sharers : 0;
        room.free -= is_filled ? 0 : load;
        link->load += load;
    }
    link->empty = room;
    link->has_newcomers = false;
}

/* Those that do not take part keep their rates, so a link without newcomers is as it was. */
static void empty_links(struct flows *flows)
{
    flows->unfilled.count = 0;
    for (uint32_t o = 0; o < flows->open.count; o++) {
        struct link_state *link = &flows->links[flows->open.items[o]];
        if (link->has_newcomers) {
            empty_link(flows, link);
        }
        link->now = link->empty;
        note_share(flows, flows->open.items[o]);
    }
    for (uint32_t i = 0; i < flows->sharing.count; i++) {
        flows->paces[flows->sharing.items[i]].mark = flows->mark;
    }
}

static void freeze_class(struct flows *flows, uint32_t index, uint32_t limit, double rate,
                         double now)
{
    const struct flow_class *class = &flows->classes[index];
    struct flow_pace *pace = &flows->paces[index];
    double sharers = weigh(pace, pace->count);
    double load = rate * sharers, more = load - pace->rate * sharers;
    pace->mark = flows->mark + 1;
    for (uint32_t i = 0; i < class->link_count; i++) {
        struct link_state *link = &flows->links[class->links[i]];
        link->now.unfrozen -= pace->count;
        link->now.sharers -= sharers;
        link->now.free -= load;
        link->load += more;
    }
    flows_set_limit(flows, index, limit);
    flows_set_rate(flows, index, rate, now);
}

/* Sets the rates of the unfrozen classes of a link. How many there were. */
static uint32_t freeze_link(struct flows *flows, uint32_t index, double rate, double now)
{
    struct link_state *link = &flows->links[index];
    uint32_t count = 0;
    link->share = rate;
    for (uint32_t i = 0; i < link->count && link->now.unfrozen > 0; i++) {
        if (is_unfrozen(flows, &flows->paces[link->classes[i]])) {
            freeze_class(flows, link->classes[i], index, rate, now);
            count++;
        }
    }
    return count;
}

/* The least that flows of an unfrozen class may have by themselves. */
static double least_most(const struct flows *flows)
{
    double least = flows->most;
    for (uint32_t i = 0; i < flows->sharing.count && flows->has_limits; i++) {
        uint32_t index = flows->sharing.items[i];
        double most = flows->classes[index].most;
        least = is_unfrozen(flows, &flows->paces[index]) && most < least ? most : least;
    }
    return least;
}

/* The least share that a link with unfrozen flows has: that link, or NULL if none is left. Shares
 * grow only while links are filled, so one that is out of date is too low, and goes back. */
static const struct link_share *find_least(struct flows *flows)
{
    struct share_heap *unfilled = &flows->unfilled;
    while (unfilled->count > 0) {
        struct link_share *first = &unfilled->items[0];
        const struct link_room *room = &flows->links[first->link].now;
        double share = room->unfrozen > 0 ? share_of(room) : 0;
        if (room->unfrozen > 0 && share <= first->key.at) {
            return first;
        }
        struct link_share taken = *first;
        if (room->unfrozen > 0) {
            taken.key.at = share;
            heap_sink(unfilled->items, unfilled->count, &taken, sizeof(taken));
        } else {
            heap_take(unfilled->items, &unfilled->count, &taken, sizeof(taken));
        }
    }
    return NULL;
}

/* Freezes the classes that may have no more than so much by themselves. How many there were. */
static uint32_t freeze_own(struct flows *flows, double limit, double rate, double now)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < flows->sharing.count; i++) {
        uint32_t index = flows->sharing.items[i];
        if (is_unfrozen(flows, &flows->paces[index]) && flows->classes[index].most <= limit) {
            freeze_class(flows, index, FLOW_LIMIT_NONE, rate, now);
            count++;
        }
    }
    return count;
}

static void fill_links(struct flows *flows, double now)
{
    empty_links(flows);
    const struct link_share *least = find_least(flows);
    for (uint32_t left = flows->sharing.count; left > 0 && !flows->is_out_of_memory;) {
        double most = least_most(flows);
        double limit = least != NULL && least->key.at < most ? least->key.at : most;
        double rate = limit > 1 ? limit : 1; // rounding may leave nothing
        if (flows->has_limits || limit >= flows->most) {
            left -= freeze_own(flows, limit, rate, now);
            least = find_least(flows);
        }
        for (; least != NULL && least->key.at <= limit * (1 + 1e-12); least = find_least(flows)) {
            left -= freeze_link(flows, least->link, rate, now);
        }
    }
}

/* What flows of a link that has too much may have there, if those that have less keep that. */
static double level_of(const struct flows *flows, const struct link_state *link)
{
    double level, next = 0;
    do {
        level = next;
        double left = link->bandwidth;
        double above = 0;
        for (uint32_t i = 0; i < link->count; i++) {
            const struct flow_pace *pace = &flows->paces[link->classes[i]];
            bool keeps = pace->rate <= level;
            left -= keeps ? pace->rate * weigh(pace, pace->count) : 0;
            above += keeps ? 0 : weigh(pace, pace->count);
        }
        next = above > 0 && left > 0 ? left / above : level;
    } while (next > level * (1 + TOLERANCE));
    return level;
}

/* Opens a link that is full no longer, or has too much. Where it is open, those take part that have
 * more than the ones whose bottleneck it is. */
static void check_link(struct flows *flows, uint32_t index)
{
    const struct link_state *link = &flows->links[index];
    if (link->load > link->bandwidth * (1 + TOLERANCE)) {
        open_link(flows, index);
        take_above(flows, link, level_of(flows, link));
    } else if (link->limited > 0 && is_open(flows, link)) {
        if (link->has_newcomers || link->empty.free < link->bandwidth) { // not all took part
            take_above(flows, link, link->share);
        }
    } else if (link->limited > 0 && link->load < link->bandwidth * (1 - TOLERANCE)) {
        open_link(flows, index);
    }
}

/* Opens the links where a class has more than those whose bottleneck they are. */
static void check_class(struct flows *flows, uint32_t index)
{
    const struct flow_class *class = &flows->classes[index];
    double rate = flows->paces[index].rate;
    for (uint32_t i = 0; i < class->link_count; i++) {
        const struct link_state *link = &flows->links[class->links[i]];
        if (link->limited > 0 && rate > link->share * (1 + TOLERANCE)) {
            open_link(flows, class->links[i]);
        }
    }
}

/* Whether more have to take part, as there is somebody without a bottleneck. */
static bool widen(struct flows *flows)
{
    uint32_t classes = flows->sharing.count, links = flows->reached.count, open = flows->open.count;
    for (uint32_t r = 0; r < links; r++) {
        check_link(flows, flows->reached.items[r]);
    }
    for (uint32_t i = 0; i < classes; i++) {
        check_class(flows, flows->sharing.items[i]);
    }
    take_limited(flows, open);
    return flows->sharing.count > classes || flows->open.count > open;
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
            take_everybody(flows);
        }
        fill_links(flows, now);
    } while (widen(flows) && !flows->is_out_of_memory);
    for (uint32_t i = 0; i < flows->sharing.count; i++) {
        flows_find_end(flows, flows->sharing.items[i], now);
    }
    return !flows->is_out_of_memory;
}
