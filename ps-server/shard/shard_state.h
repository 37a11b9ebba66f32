/* What a shard holds: shared by shard.c (messages), the policies (when what happens),
 * shard_on_push.c (updates from one push each), shard_marks.c and shard_create.c. */
#ifndef PS_SERVER_SHARD_SHARD_STATE_H
#define PS_SERVER_SHARD_SHARD_STATE_H

#include "common/job/carriers.h"
#include "common/optimizer/optimizer.h"
#include "ps-server/shard/shard.h"
#include "ps-server/shard/shard_views.h"

#include <stdbool.h>

/* A worker's pull of a state that has not been seeded yet. */
struct state_pull {
    uint32_t vector; // 0: there is none
    uint64_t step;
};

/* This shard's part of one bucket. */
struct part {
    struct span span;               // in the flat vector
    uint64_t offset;                // in the shard's own vectors
    uint32_t unit;                  // index
    struct envelope *pushes;        // (workers) of the step that each is at
    const float **values;           // (workers) of the pushes; NULL: not here yet
    bool *is_pulled;                // (workers) asked for, and not yet answered
    struct state_pull *state_pulls; // (workers)
    uint32_t seeds;                 // bit v: vector v (parameters, then states) has come
};

/* A worker as a unit sees it. */
struct seat {
    uint64_t clock;        // of its pushes, those that were applied or dropped
    uint32_t part_pushes;  // parts of its next push that are here
    uint32_t part_pulls;   // parts that it has asked for
    uint64_t pull_step;    // for which step
    uint64_t pull_mark;    // 0: to go on; e: the parameters of the e-th mark
    uint64_t pull_version; // to go on: at least so many updates
    uint64_t read_version; // what its next gradient is computed on
    uint64_t marks_read; // the last copy that its process has pulled: the first rank's seat counts
    uint64_t staleness;  // of its last gradient
    double rate;         // that it was applied with; 0: none was yet
    bool is_late;        // it was dropped
};

/* Parts that are updated and read together. */
struct unit {
    uint32_t first, end;    // parts
    uint32_t part_count;    // those of them that are not empty
    uint32_t seeds_missing; // vectors of these that rank 0 has yet to send
    uint64_t handled;       // pushes that were applied or dropped
    uint64_t version;       // updates
    uint64_t applied; // gradients, where workers are unsynchronised; an update of ps-sync counts N
    uint64_t marks_passed; // where workers are unsynchronised
    uint32_t summed;       // of them, those that wait in the sum for the next update
    double summed_rate;    // of the last of those
    struct seat *seats;    // (workers)
};

/* The parameters of a mark, until every worker has pulled them. */
struct mark_copy {
    float *values;         // (value_count); NULL: no copies are kept
    uint64_t mark;         // the mark, from 1; 0: none yet
    uint32_t readers_left; // worker processes
};

/* What a pull may have now. */
struct answer {
    const float *values; // (value_count); NULL: nothing yet
    uint64_t version;
    bool is_notice; // the worker will ask again
};

/* The checkpoint that comes next: see shard_checkpoint.h. */
struct shard_checkpoint {
    float *staged;             // (value_count) owned; what comes for a device; NULL: nothing does
    float *staged_for;         // where that goes: memory of the device
    struct snapshot *snapshot; // borrowed
    uint64_t due;              // see shard_checkpoint_count; UINT64_MAX: none is
    uint32_t copied;           // units that have reached it
    bool is_free;              // the snapshot may be overwritten
    bool is_missed;            // it was not free when a unit had reached it

    // What the shard had counted when it was copied.
    struct staleness staleness;
    uint64_t late_count;
};

/* The settings that pushes have said for the update that comes next: those of a unit in ps-sync, of
 * a worker elsewhere. */
struct told {
    bool has_settings;              // else those of the config hold
    bool is_relative;               // rates are in units of the schedule's
    uint32_t rank;                  // whose they are
    uint32_t heard;                 // pushes of parts
    struct optimizer_group *groups; // (group_count) in shard->told_groups
};

struct shard_math;
struct shard_policy;

struct shard {
    struct shard_config config;
    const struct shard_policy *policy;
    const struct shard_math *math; // where vectors lie
    enum status fault;             // of the device, from when on nothing counts
    struct part *parts;            // (bucket_count)
    struct unit *units;            // (unit_count)
    uint32_t unit_count;
    struct optimizer *optimizer;
    float *device_states[OPTIMIZER_STATES_MAX], *device_mean; // (value_count) on a device; or NULL
    uint64_t value_count;                                     // of this shard
    uint64_t gradient_total; // where workers are unsynchronised: gradients of the phase
    float *params;           // (value_count)
    uint32_t *contributors;  // (workers) room for the ranks that an update has gradients of
    float *history;          // (history_count, value_count): version v at v modulo history_count
    uint64_t history_count;  // 0: no seeded order
    struct mark_copy mark_copy;
    float *sum;     // (value_count) of gradients; NULL if an update takes one
    float *reads;   // (workers, value_count) what each has read; NULL unless the remedy needs it
    float *squares; // (value_count); NULL unless the remedy needs it
    struct views *views; // NULL unless the config has them
    struct shard_checkpoint checkpoint;
    struct staleness staleness;
    uint64_t late_count;

    // Settings: see shard_settings.h.
    struct optimizer_group *groups; // (group_count) of the config
    struct told *told;              // (unit_count) in ps-sync, (workers) elsewhere
    struct optimizer_group *told_groups;
    bool has_told; // the optimizer has others than those of the config
    struct shard_dispute dispute;
    bool has_dispute;
};

/* Before and after what a unit is computed. */
static inline void shard_note(const struct shard *shard, const struct unit *unit,
                              enum shard_work work, bool is_begin)
{
    const struct shard_watch *watch = &shard->config.watch;
    if (watch->note != NULL) {
        bool is_bucket = unit->end == unit->first + 1;
        watch->note(watch->context, work, is_bucket ? unit->first : UINT32_MAX, is_begin);
    }
}

static inline bool shard_updates_on_push(const struct shard *shard)
{
    return shard->config.consistency.update == UPDATE_ON_PUSH;
}

/* The ranks whose process has this one, too. */
static inline struct rank_block shard_block(const struct shard *shard, uint32_t rank)
{
    const struct shard_config *config = &shard->config;
    const struct carriers carriers = {config->workers, config->processes, config->left_out};
    return carriers_block(carriers, carriers_process(carriers, rank));
}

/* The seat in which is kept what a process has read of marks. */
static inline struct seat *shard_reader(const struct shard *shard, const struct unit *unit,
                                        uint32_t rank)
{
    return &unit->seats[shard_block(shard, rank).first];
}

/* Whether every gradient was handled that a process has computed before it pulls for this rank: in
 * each step its ranks take turns (see exchange.h), and none of them pulls before the one before it
 * has pushed. */
bool shard_is_quiet(const struct shard *shard, const struct unit *unit, uint32_t rank);

/* The same, but those that are whole and not yet handled count, too: nothing of the process itself
 * is missing. */
bool shard_has_own_pushes(const struct shard *shard, const struct unit *unit, uint32_t rank);

/* Steps of workers are apart from each other, and all parts are one unit. */
static inline bool shard_is_unsynchronised(const struct shard *shard)
{
    return shard_updates_on_push(shard) || shard->config.backup > 0;
}

/* The number of the next update in the job, from 1. */
static inline uint64_t shard_update_number(const struct shard *shard, const struct unit *unit)
{
    return shard->config.updates_before + unit->version + 1;
}

/* The step of the job whose rate counts. Where workers are unsynchronised it follows the samples
 * that were seen: N gradients are what a step of ps-sync has. */
static inline uint64_t shard_rate_step(const struct shard *shard, const struct unit *unit)
{
    const struct shard_config *config = &shard->config;
    uint64_t made =
        shard_is_unsynchronised(shard) ? unit->applied / config->workers : unit->version;
    return config->marks.first + made;
}

/* policy_sync.c: applies the pushes that are whole to a unit: their mean, in ring order. Releases
 * them. */
void shard_update_from_all(struct shard *shard, struct unit *unit);

/* Takes the push of one worker, and releases it: an update, or a part of the next one; or drops it
 * if it comes after the last update. */
void shard_take_push(struct shard *shard, struct unit *unit, uint32_t rank);

/* Makes an update of gradients that wait for more of them, as at the end of a phase. */
void shard_apply_summed(struct shard *shard);

/* Drops the push of one worker. */
void shard_drop_push(struct shard *shard, struct unit *unit, uint32_t rank);

/* Drops a late gradient, and marks it so that its worker is told. */
void shard_drop_late(struct shard *shard, struct unit *unit, uint32_t rank);

/* Notes what a worker goes on with, if the remedy needs that. */
void shard_keep_read(struct shard *shard, uint32_t rank, const float *values);

/* Keeps the parameters as the current version, if a seeded order needs that. */
void shard_keep_version(struct shard *shard, const struct unit *unit);

/* After the last update of unsynchronised workers: nothing changes any more. */
bool shard_is_final(const struct shard *shard, const struct unit *unit);

/* Counts the marks that were passed by an update. */
void shard_pass_marks(const struct shard *shard, struct unit *unit);

/* Whether nothing is applied until the last copy has been read by all. */
bool shard_mark_holds(const struct shard *shard, const struct unit *unit);

/* Keeps a copy at a mark. False if the last copy has not been read by all: then the parameters must
 * stay as they are. */
bool shard_keep_mark(struct shard *shard, const struct unit *unit);

/* Whether there is a copy that the process of a rank has yet to pull. */
bool shard_mark_waits_for(const struct shard *shard, const struct unit *unit, uint32_t rank);

/* Parameters of the mark that a worker asks for. After the last update all gradients of all workers
 * have come before they are told so: nothing of this phase is on its way any more. */
struct answer shard_answer_mark(const struct shard *shard, const struct unit *unit, uint32_t rank);

/* The process gets what it has asked for by this rank. */
void shard_note_mark_read(struct shard *shard, const struct unit *unit, uint32_t rank);

#endif
