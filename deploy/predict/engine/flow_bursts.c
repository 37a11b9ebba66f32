/* Keeps the levels of token buckets: what a link was given, without what it still has to carry. */
#include "deploy/predict/engine/flow_bursts.h"

/* Bytes of all flows that the link has not carried yet. */
static double waiting_bytes(const struct flows *flows, const struct link_state *link, double now)
{
    double bytes = 0;
    for (uint32_t i = 0; i < link->count; i++) {
        const struct flow_class *class = &flows->classes[link->classes[i]];
        const struct flow_pace *pace = &flows->paces[link->classes[i]];
        double served = class->served + pace->rate * (now - class->since);
        bytes += class->ends - pace->count * served;
    }
    return bytes;
}

/* What it lets pass at once. */
static double room_of(struct flows *flows, struct link_state *link, double now)
{
    struct flow_burst *burst = &link->burst;
    if (burst->depth <= 0) {
        return 0;
    }
    burst->given -= link->bandwidth * (now - burst->since);
    burst->given = burst->given > 0 ? burst->given : 0;
    burst->since = now;
    double level = burst->given - waiting_bytes(flows, link, now);
    level = level > 0 ? level : 0;
    return level < burst->depth ? burst->depth - level : 0;
}

void flow_bursts_expect(struct flows *flows, const struct flow_class *class, bool is_expected)
{
    for (uint32_t i = 0; i < class->link_count; i++) {
        flows->links[class->links[i]].burst.expected += is_expected ? 1 : -1;
    }
}

double flow_bursts_take(struct flows *flows, const struct flow_class *class, double bytes,
                        double now, bool is_paced)
{
    bool is_limited = is_paced || class->most < FLOW_NO_LIMIT;
    if (!flows->has_bursts || class->link_count == 0) {
        return 0;
    }
    double passing = is_limited ? 0 : bytes;
    for (uint32_t i = 0; i < class->link_count; i++) {
        struct link_state *link = &flows->links[class->links[i]];
        double room = room_of(flows, link, now) / (1 + link->burst.expected);
        passing = room < passing ? room : passing;
        link->burst.given += bytes;
    }
    return passing;
}
