/* Picks the quickest messages, and interpolates between them. */
#include "deploy/trace/drift.h"

#define WINDOW_NS   UINT64_C(10000000000)
#define TIME_MAX_NS (INT64_MAX / 4) // 73 years: so far apart, no two offsets overflow

static bool makes_sense(const struct clock_ping *ping)
{
    return ping->sent_ns <= ping->received_ns && ping->received_ns <= TIME_MAX_NS &&
           ping->there_ns <= TIME_MAX_NS;
}

static struct clock_point point_of(const struct clock_ping *ping)
{
    uint64_t radius_ns = (ping->received_ns - ping->sent_ns + 1) / 2;
    uint64_t middle_ns = ping->received_ns - radius_ns;
    return (struct clock_point){middle_ns, (int64_t)ping->there_ns - (int64_t)middle_ns, radius_ns};
}

void drift_make(const struct clock_ping *pings, size_t count, struct drift *ret_fit)
{
    uint64_t window_end_ns = 0;
    ret_fit->count = 0;
    ret_fit->uncertainty_ns = 0;
    for (size_t i = 0; i < count; i++) {
        if (!makes_sense(&pings[i])) {
            continue;
        }
        struct clock_point point = point_of(&pings[i]);
        bool begins = ret_fit->count == 0 ||
                      (pings[i].received_ns >= window_end_ns && ret_fit->count < DRIFT_POINTS_MAX);
        if (begins) {
            ret_fit->points[ret_fit->count++] = point;
            window_end_ns = pings[i].received_ns + WINDOW_NS;
        } else if (point.radius_ns < ret_fit->points[ret_fit->count - 1].radius_ns) {
            ret_fit->points[ret_fit->count - 1] = point;
        }
    }
    for (size_t i = 0; i < ret_fit->count; i++) {
        uint64_t radius_ns = ret_fit->points[i].radius_ns;
        if (radius_ns > ret_fit->uncertainty_ns) {
            ret_fit->uncertainty_ns = radius_ns;
        }
    }
}

int64_t drift_offset(const struct drift *fit, uint64_t time_ns)
{
    if (fit->count == 0) {
        return 0;
    }
    size_t next = 0;
    while (next < fit->count && fit->points[next].time_ns <= time_ns) {
        next++;
    }
    if (next == 0 || next == fit->count) {
        return fit->points[next == 0 ? 0 : next - 1].offset_ns;
    }
    const struct clock_point *a = &fit->points[next - 1], *b = &fit->points[next];
    double part = (double)(time_ns - a->time_ns) / (double)(b->time_ns - a->time_ns);
    return a->offset_ns + (int64_t)(part * (double)(b->offset_ns - a->offset_ns));
}

bool drift_allows_zero(const struct drift *fit)
{
    for (size_t i = 0; i < fit->count; i++) {
        int64_t offset_ns = fit->points[i].offset_ns;
        uint64_t size_ns = (uint64_t)(offset_ns < 0 ? -offset_ns : offset_ns);
        if (size_ns > fit->points[i].radius_ns + 1000) { // clocks are read in steps
            return false;
        }
    }
    return true;
}
