/* Costs and a network from what runs show: what `ringside predict` reads. */
#ifndef DEPLOY_CALIBRATE_CALIBRATION_H
#define DEPLOY_CALIBRATE_CALIBRATION_H

#include "deploy/calibrate/calibration_run.h"
#include "deploy/calibrate/model_layers.h"

#include <stdbool.h>
#include <stddef.h>

#define CALIBRATION_RUNS_MAX    20
#define CALIBRATION_BATCHES_MAX 8 // besides the one that most runs have
#define CALIBRATION_NOTES_MAX   32

/* Where a value comes from. */
struct calibration_note {
    const char *name; // of the field: "message"
    char text[256];   // "21 us: 320 sends and 320 receives of ..."
    bool is_assumed;  // no run shows it
};

struct calibration_notes {
    struct calibration_note list[CALIBRATION_NOTES_MAX]; // (count)
    size_t count;
};

/* The name is static. */
__attribute__((format(printf, 4, 5))) void calibration_add_note(struct calibration_notes *notes,
                                                                const char *name, bool is_assumed,
                                                                const char *format, ...);

/* What network.json gets of each host. Bandwidth 0: no limit, and it is left out. */
struct calibrated_links {
    double nic, latency_s, memory, memory_latency_s;
    bool has_memory;
    double burst_kib;             // that a link carries at once; no run shows it
    struct network_pacing pacing; // what of that no message takes
};

/* What is known of the links between hosts without any run, and counts instead. 0: nothing. */
struct calibration_known {
    double nic, burst_kib;
};

/* Large: on the heap. */
struct calibration {
    struct costs costs;
    const char *names[COSTS_LAYERS_MAX]; // of its layers; borrowed from the model
    // Of other batches, (other_count): only layers, spread and input.
    struct costs others[CALIBRATION_BATCHES_MAX];
    size_t other_count;
    char batch_names[CALIBRATION_BATCHES_MAX][24]; // (other_count) of notes
    struct calibrated_links links;
    const struct calibration_run *widest; // whose hosts the network has; borrowed
    bool has_network;                     // messages between processes were seen
    struct calibration_notes cost_notes, network_notes;
    struct conditions conditions; // of the runs
};

/* Of at least one run, all of one model. Runs of another batch than most show what computing
 * costs with theirs, and nothing else. The layers are those of the run with the fewest workers,
 * where computing is disturbed least; messages are those of all runs. STATUS_INVALID if
 * the runs or the model differ, which is logged. */
enum status calibration_make(struct calibration_run *const *runs, size_t run_count,
                             const struct model_layers *model,
                             const struct calibration_known *known,
                             struct calibration *ret_calibration);

#endif
