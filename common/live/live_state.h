/* What is known of a job while it runs, and after: what the live page, `ringside watch` and
 * Prometheus show. Pure.
 *
 * The coordinator's process fills one and hands over copies; a reader of a run folder fills one
 * from files. All that could grow with the job has a maximum. Curves that reach it are thinned:
 * every other point goes, and from then on points are twice as far apart. */
#ifndef COMMON_LIVE_LIVE_STATE_H
#define COMMON_LIVE_LIVE_STATE_H

#include "common/base/status.h"

#include <stdbool.h>
#include <stdint.h>

#define LIVE_POINTS_MAX 400
#define LIVE_EVENTS_MAX 32
#define LIVE_RANKS_MAX  4096
#define LIVE_TEXT_BYTES 160
#define LIVE_BINS       14 // of live_bin_limits, and one for all above

/* How values travel. */
enum live_shape { LIVE_ALONE, LIVE_RING, LIVE_STAR };

/* One rank: its last reporting interval, and sums over all of them. */
struct live_rank {
    uint64_t step;
    double loss, images_per_second;
    double compute_ms, exchange_wait_ms, input_wait_ms; // per step
    double staleness, rate;                             // mean in updates; learning rate
    uint64_t steps, images;                             // sums
    uint64_t compute_ns, exchange_wait_ns, input_wait_ns;
    uint64_t bytes_sent, bytes_received;
};

struct live_point {
    uint64_t step;
    double seconds; // of training
    double value[2];
};

/* Points of one or two values over the steps. */
struct live_curve {
    struct live_point points[LIVE_POINTS_MAX];
    uint32_t count;
    uint32_t stride; // of so many points that come, one is kept; 0 is 1
    uint32_t skipped;
};

struct live_event {
    double seconds;
    uint64_t step;
    char kind[16]; // "began", "lost", "joined", "switched", "checkpoint", "on", "failed" ...
    char text[LIVE_TEXT_BYTES];
};

/* Steps by the mean staleness of their reporting interval; exact where an interval is a step. */
struct live_histogram {
    uint64_t counts[LIVE_BINS];
    uint64_t total;
    double sum;
};

/* Upper limits of all bins but the last, inclusive. */
extern const uint32_t live_bin_limits[LIVE_BINS - 1];

struct live_state {
    char version[32], mode[32], model[32], dataset[32], device[32], optimizer[32];
    char outcome[16]; // "waiting", "training", "completed", "failed"
    char reason[LIVE_TEXT_BYTES];
    char all_reduce[LIVE_TEXT_BYTES]; // its algorithm, for people; "": none, or not chosen yet
    enum live_shape shape;
    uint32_t workers, servers, processes;
    uint64_t parameters, global_batch;
    uint64_t step, total_steps, epoch; // total 0: not known; epoch from 1, 0: none has begun
    double seconds;                    // of training
    double loss, images_per_second, rate;
    double accuracy, test_loss; // of the last evaluation
    bool has_accuracy;
    uint32_t slowest; // rank
    uint32_t workers_lost, restarts;
    uint64_t checkpoints, checkpoint_step; // written by this process, and the last one's

    struct live_rank *ranks; // (workers), owned
    struct live_histogram staleness;
    struct live_curve progress;                // loss, images per second
    struct live_curve evaluations;             // accuracy, test loss
    struct live_event events[LIVE_EVENTS_MAX]; // (event_count), the oldest first
    uint32_t event_count;
    uint64_t events_left_out; // older ones
};

/* Zeroed but for its ranks: 1 to LIVE_RANKS_MAX. */
enum status live_state_init(struct live_state *state, uint32_t workers);
void live_state_finish(struct live_state *state); // zeroed is fine

/* Both have as many ranks. */
void live_state_copy(struct live_state *to, const struct live_state *from);

void live_add_point(struct live_curve *curve, const struct live_point *point);

/* The job goes on at an earlier step: drops the points behind it. */
void live_cut_curve(struct live_curve *curve, uint64_t step);

/* Adds an event; the oldest one makes room. */
__attribute__((format(printf, 3, 4))) void
live_add_event(struct live_state *state, const char *kind, const char *format, ...);

void live_add_staleness(struct live_histogram *histogram, double value, uint64_t count);

/* Whether the job has ended, well or not. */
bool live_is_over(const struct live_state *state);

/* The step that every rank has reported; where each goes its own way, the mean of theirs. 0: there
 * are no ranks. */
uint64_t live_step_of_all(const struct live_state *state, bool is_unsynchronised);

/* Seconds until the end, by the mean of all steps so far; negative: not known. */
double live_eta(const struct live_state *state);

#define LIVE_STEP_BYTES 64

/* "12 of 40" for " of "; "12" if nobody knows the total, which is 0 then. */
void live_step_text(uint64_t step, uint64_t total, const char *between,
                    char ret_text[LIVE_STEP_BYTES]);

#endif
