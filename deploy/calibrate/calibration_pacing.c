/* Finds how much of what a token bucket holds passed at once, each time that a link was idle. */
#include "deploy/calibrate/calibration_pacing.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROOM_LEAST  0.25 // of a bucket's depth, to count: with less, a late receiver hides all
#define SHARE_PACED 0.25 // of the room; receivers that wait for a core make shares smaller
#define SHARES_MIN  8    // times that a link was idle, to know

struct finder {
    double bandwidth, burst;
    double *shares;                   // (ways, room), owned: of the room that links had
    size_t counts[NETWORK_WAY_COUNT]; // of shares
    size_t room;                      // for those of all messages
};

static double *shares_of(const struct finder *finder, size_t way)
{
    return &finder->shares[way * finder->room];
}

static int compare_numbers(double left, double right)
{
    return (left > right) - (left < right);
}

static int by_receiver(const void *a, const void *b)
{
    const struct observed_message *left = a, *right = b;
    return left->to != right->to ? (left->to > right->to) - (left->to < right->to)
                                 : compare_numbers(left->begin_s, right->begin_s);
}

static int by_sender(const void *a, const void *b)
{
    const struct observed_message *left = a, *right = b;
    return left->from != right->from ? (left->from > right->from) - (left->from < right->from)
                                     : compare_numbers(left->begin_s, right->begin_s);
}

static int by_end(const void *a, const void *b)
{
    return compare_numbers(((const struct observed_message *)a)->end_s,
                           ((const struct observed_message *)b)->end_s);
}

static int by_size(const void *a, const void *b)
{
    return compare_numbers(*(const double *)a, *(const double *)b);
}

/* The messages of a link, behind each other without a gap, which began when it had been idle for so
 * long. Sorts them. */
static void take_period(struct finder *finder, struct observed_message *messages, size_t count,
                        double idle_s)
{
    double begin_s = messages[0].begin_s, come = 0, ahead = 0;
    double room = fmin(finder->burst, idle_s * finder->bandwidth);
    enum network_way way = messages[0].way;
    bool is_alike = true;
    qsort(messages, count, sizeof(*messages), by_end);
    for (size_t i = 0; i < count; i++) {
        come += messages[i].bytes;
        ahead = fmax(ahead, come - finder->bandwidth * (messages[i].end_s - begin_s));
        is_alike = is_alike && messages[i].way == way;
    }
    room = fmin(room, come);
    if (is_alike && room >= ROOM_LEAST * finder->burst) {
        shares_of(finder, way)[finder->counts[way]++] = fmin(ahead / room, 1);
    }
}

/* The messages of a host, in one direction, by their beginnings. */
static void take_link(struct finder *finder, struct observed_message *messages, size_t count)
{
    double idle_since_s = HUGE_VAL, end_s = -HUGE_VAL; // nothing is known of before the first one
    size_t first = 0;
    for (size_t i = 0; i <= count; i++) {
        if (i > first && (i == count || messages[i].begin_s >= end_s)) {
            take_period(finder, &messages[first], i - first,
                        fmax(messages[first].begin_s - idle_since_s, 0));
            first = i;
            idle_since_s = end_s;
        }
        end_s = i < count ? fmax(end_s, messages[i].end_s) : end_s;
    }
}

/* Pushes meet at the link to their server, and answers at that from it. */
static void take_run(struct finder *finder, const struct observation *seen,
                     struct observed_message *copies)
{
    for (int sends = 0; sends <= 1; sends++) {
        size_t count = 0;
        for (size_t i = 0; i < seen->message_count; i++) {
            if ((seen->messages[i].way == NETWORK_WAY_ANSWERS) == (sends == 1)) {
                copies[count++] = seen->messages[i];
            }
        }
        qsort(copies, count, sizeof(*copies), sends == 1 ? by_sender : by_receiver);
        for (size_t i = 0, first = 0; i < count; i++) {
            bool is_last = i + 1 == count || (sends == 1 ? copies[i + 1].from != copies[i].from
                                                         : copies[i + 1].to != copies[i].to);
            if (is_last) {
                take_link(finder, &copies[first], i + 1 - first);
                first = i + 1;
            }
        }
    }
}

/* Decides, and says why. */
static void take_ways(struct finder *finder, struct calibration *made)
{
    char text[sizeof(made->network_notes.list[0].text)] = "";
    size_t used = 0;
    for (size_t way = 0; way < NETWORK_WAY_COUNT; way++) {
        double *shares = shares_of(finder, way);
        size_t count = finder->counts[way];
        if (count < SHARES_MIN) {
            continue;
        }
        qsort(shares, count, sizeof(*shares), by_size);
        double share = shares[count / 2];
        made->links.pacing.is_paced[way] = share < SHARE_PACED;
        used += (size_t)snprintf(&text[used], sizeof(text) - used, "%s%s %.2f (%zu times)",
                                 used > 0 ? ", " : "", network_way_names[way], share, count);
    }
    bool is_any = network_pacing_is_any(&made->links.pacing);
    calibration_add_note(
        &made->network_notes, "paced", used == 0, "%s%s%s", is_any ? "some: " : "nothing: ",
        used > 0 ? "of the burst that idle links had, these took " : "no run shows",
        used > 0 ? text : " what takes the burst of an idle link");
}

void calibration_take_pacing(struct calibration_run *const *runs, size_t run_count,
                             double bandwidth, double burst, struct calibration *calibration)
{
    struct finder finder = {.bandwidth = bandwidth, .burst = burst, .room = 1};
    for (size_t i = 0; i < run_count; i++) {
        finder.room += runs[i]->observation.message_count;
    }
    struct observed_message *copies = calloc(finder.room, sizeof(*copies));
    finder.shares = calloc(finder.room * NETWORK_WAY_COUNT, sizeof(*finder.shares));
    if (copies != NULL && finder.shares != NULL) {
        for (size_t i = 0; i < run_count; i++) {
            take_run(&finder, &runs[i]->observation, copies);
        }
        take_ways(&finder, calibration);
    } else {
        calibration_add_note(&calibration->network_notes, "paced", true,
                             "nothing: there is no memory to look at %zu messages",
                             finder.room - 1);
    }
    free(finder.shares);
    free(copies);
}
