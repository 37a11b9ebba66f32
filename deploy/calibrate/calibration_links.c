/* Latency and bandwidth of the ways of messages. */
#include "deploy/calibrate/calibration_links.h"

#include "deploy/calibrate/calibration_cores.h"
#include "deploy/calibrate/calibration_pacing.h"
#include "deploy/calibrate/fit.h"
#include "deploy/predict/basis/fields.h"

#include <float.h>

#define NIC_UNLIMITED 1.25e11 // bytes per second, where no run shows a limit and the file needs one

/* The quickest messages of all runs. */
static struct observed_ways join_ways(struct calibration_run *const *runs, size_t run_count,
                                      bool is_within)
{
    struct observed_ways all = {.size_count = 0};
    uint64_t count = 0;
    for (size_t i = 0; i < run_count; i++) {
        const struct observation *seen = &runs[i]->observation;
        const struct observed_ways *ways = is_within ? &seen->within : &seen->between;
        for (size_t j = 0; j < ways->size_count; j++) {
            observed_ways_add(&all, &ways->least[j], ways->least_send_s);
        }
        count += ways->count;
    }
    all.count = count;
    return all;
}

/* Of runs those in which no workers shared a core, or all, if these have no messages between hosts.
 * Where workers take turns, messages wait for a core as well, and links may have been made quick
 * so that cores are never idle (bench/predict). Returns how many there are. */
static size_t list_calm(struct calibration_run *const *runs, size_t run_count,
                        struct calibration_run *ret_calm[CALIBRATION_RUNS_MAX])
{
    size_t calm_count = 0;
    uint64_t messages = 0;
    for (size_t i = 0; i < run_count; i++) {
        if (!calibration_is_crowded(runs[i])) {
            ret_calm[calm_count++] = runs[i];
            messages += runs[i]->observation.between.count;
        }
    }
    if (messages > 0) {
        return calm_count;
    }
    for (size_t i = 0; i < run_count; i++) {
        ret_calm[i] = runs[i];
    }
    return run_count;
}

/* The ways, without the sends that they begin with. */
static struct fit_line line_of(const struct observed_ways *ways)
{
    struct fit_point points[OBSERVATION_SIZES_MAX];
    for (size_t i = 0; i < ways->size_count; i++) {
        points[i] = ways->least[i];
        points[i].seconds -= ways->least_send_s;
        points[i].seconds = points[i].seconds > 0 ? points[i].seconds : 0;
    }
    return fit_line(points, ways->size_count);
}

/* Notes of a latency and a bandwidth, which are of messages that go the same way. */
static void note_line(struct calibration_notes *notes, const char *const names[2],
                      const struct fit_line *line, const struct observed_ways *ways,
                      const char *where)
{
    char latency[QUANTITY_BYTES], bandwidth[QUANTITY_BYTES];
    quantity_format(line->latency_s, QUANTITY_TIME, latency);
    quantity_format(line->bandwidth, QUANTITY_BANDWIDTH, bandwidth);
    if (line->knows_latency) {
        calibration_add_note(notes, names[0], false,
                             "%s one way %s: the quickest of %llu messages, %zu sizes", latency,
                             where, (unsigned long long)ways->count, ways->size_count);
    } else {
        calibration_add_note(
            notes, names[0], true,
            "none: messages %s have one size, which does not tell latency from bandwidth", where);
    }
    calibration_add_note(notes, names[1], line->bandwidth <= 0, "%s: the same messages%s",
                         bandwidth,
                         line->bandwidth <= 0 ? ", of which larger ones took no longer" : "");
}

static void take_between(struct calibration_run *const *runs, size_t run_count,
                         const struct observed_ways *between, struct calibration *made)
{
    static const char *const names[2] = {"latency", "nic"};
    const struct fit_line line = line_of(between);
    bool is_unsure = false;
    for (size_t i = 0; i < run_count; i++) {
        is_unsure = is_unsure || runs[i]->observation.is_unsure_of_clocks;
    }
    made->links.latency_s = line.latency_s / 2; // a way has the links of two hosts
    made->links.nic = line.bandwidth;
    note_line(&made->network_notes, names, &line, between, "between hosts");
    if (is_unsure) {
        calibration_add_note(
            &made->network_notes, "clocks", true,
            "right: clocks of the hosts may differ by more than the quickest message took");
    }
}

static void take_network(struct calibration_run *const *runs, size_t run_count,
                         struct calibration_run *const *calm, size_t calm_count,
                         struct calibration *made)
{
    static const char *const names[2] = {"memory-latency", "memory"};
    struct calibrated_links *links = &made->links;
    const struct observed_ways within = join_ways(runs, run_count, true),
                               between = join_ways(calm, calm_count, false);
    made->has_network = within.count > 0 || between.count > 0;
    if (between.count > 0) {
        take_between(calm, calm_count, &between, made);
    }
    links->has_memory = within.count > 0;
    if (within.count > 0) {
        const struct fit_line line = line_of(&within);
        links->memory_latency_s = line.latency_s;
        links->memory = line.bandwidth;
        note_line(&made->network_notes, names, &line, &within, "within a host");
    } else if (made->has_network) {
        calibration_add_note(
            &made->network_notes, "memory", true,
            "no limit and no latency within a host: all messages went between hosts");
    }
    if (within.count > 0 && between.count == 0) {
        links->latency_s = links->memory_latency_s / 2;
        links->nic = links->memory;
        calibration_add_note(&made->network_notes, "nic and latency", true,
                             "as within the host: no message went between hosts");
    }
    if (links->nic <= 0) {
        links->nic = NIC_UNLIMITED;
    }
}

/* What the quickest message between hosts took, besides its bytes on links of which that is known.
 */
static double least_latency_s(const struct observed_ways *ways,
                              const struct calibration_known *known)
{
    double least_s = DBL_MAX;
    for (size_t i = 0; i < ways->size_count; i++) {
        double waiting = ways->least[i].bytes - 1024 * known->burst_kib;
        double own_s =
            ways->least[i].seconds - ways->least_send_s - (waiting > 0 ? waiting / known->nic : 0);
        least_s = own_s < least_s ? own_s : least_s;
    }
    return least_s > 0 && least_s < DBL_MAX ? least_s : 0;
}

/* A burst hides a link's bandwidth from single messages, and few messages in a step from all. */
static void take_known(struct calibration_run *const *runs, size_t run_count,
                       const struct calibration_known *known, struct calibration *made)
{
    const struct observed_ways between = join_ways(runs, run_count, false);
    char text[QUANTITY_BYTES], latency[QUANTITY_BYTES];
    if (known->nic > 0) {
        made->links.nic = known->nic;
        quantity_format(known->nic, QUANTITY_BANDWIDTH, text);
        calibration_add_note(&made->network_notes, "nic, as given", false, "%s: --nic", text);
    }
    if (known->nic > 0 && between.count > 0) {
        double latency_s = least_latency_s(&between, known);
        made->links.latency_s = latency_s / 2;
        quantity_format(latency_s, QUANTITY_TIME, latency);
        calibration_add_note(&made->network_notes, "latency, so", false,
                             "%s one way: the quickest message, besides its bytes", latency);
    }
    made->links.burst_kib = known->burst_kib;
    if (known->burst_kib > 0) {
        calibration_add_note(&made->network_notes, "burst-kib", false, "%g: --burst-kib",
                             known->burst_kib);
        calibration_take_pacing(runs, run_count, made->links.nic, 1024 * known->burst_kib, made);
    }
}

void calibration_take_links(struct calibration_run *const *runs, size_t run_count,
                            const struct calibration_known *known, struct calibration *calibration)
{
    struct calibration_run *calm[CALIBRATION_RUNS_MAX] = {NULL};
    size_t calm_count = list_calm(runs, run_count, calm);
    take_network(runs, run_count, calm, calm_count, calibration);
    take_known(calm, calm_count, known, calibration);
}
