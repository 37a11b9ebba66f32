/* Searches each mode for its best design, and finds what each choice brings. */
#include "deploy/predict/advise/advice.h"

#include "common/base/log.h"
#include "deploy/predict/advise/memo.h"
#include "deploy/predict/study/parallel.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXHAUSTIVE_MAX  512  // combinations that are all tried
#define EXHAUSTIVE_WORK 1e10 // if they take no more, in about nanoseconds
#define TRY_WORK        5e9  // that a combination may take in any case
#define TRY_FACTOR      4    // or so many times as much as the default
#define LIMITER_RUNS    16   // predictions that find what limits the default and the best
#define UNMEASURED_MAX  8    // combinations whose limiter takes too much memory to find

/* A search in one mode, and what it works with. */
struct search {
    const struct study *study;
    const struct study *quiet; // the same, for what is tried: what is left out is no error
    const bool *is_kept;
    struct memo *memo;
    const struct advice *advice;
    struct advice_design *design;
    size_t mode_index; // of the study's designs, the first of the mode
    double work_max;   // of a combination: one that takes more is left out
    struct advice_picks unmeasured[UNMEASURED_MAX]; // left out, too
    size_t unmeasured_count;
};

/* The basis with the defaults: mode, workers, and the changes of a what-if. */
static enum status make_default(const struct search *search, struct basis **ret_basis)
{
    const struct study_point point = {.design = search->study->designs[search->mode_index],
                                      .workers = search->advice->workers,
                                      .what_if = search->advice->what_if};
    return study_make_basis(search->study, &point, ret_basis);
}

static void apply(const struct advice_design *design, const struct advice_picks *picks,
                  struct basis *basis)
{
    for (size_t axis = 0; axis < ADVICE_AXES; axis++) {
        advice_axes[axis].apply(design->values[axis].list[picks->of[axis]], basis);
    }
}

/* ==========================================================================================
 * Scores
 * ========================================================================================== */

/* A job to be predicted. */
struct trial {
    const struct study *study;
    const struct basis *basis;
};

static enum status make(const void *context, struct prediction *ret_made)
{
    const struct trial *trial = context;
    return study_predict(trial->study, trial->basis, ret_made);
}

/* The speed of a prediction: images/s, or jobs that reach their target in a second; 0: unknown. */
static double speed_of(const struct search *search, const struct prediction *made)
{
    struct target target;
    if (!search->design->is_of_target) {
        return made->images_per_s;
    }
    study_find_target(search->study, (struct study_design){.mode = search->design->mode},
                      search->advice->workers, made, &target);
    return target.seconds > 0 ? 1 / target.seconds : 0;
}

/* Combinations whose scores are asked for. */
struct asked {
    const struct search *search;
    const struct advice_picks *picks;
    double *scores;
};

static enum status predict_picks(const struct search *search, const struct advice_picks *picks,
                                 const struct basis *basis, struct prediction *ret_made)
{
    char key[MEMO_KEY_BYTES];
    size_t used = (size_t)snprintf(key, sizeof(key), "%s", mode_text(search->design->mode).text);
    for (size_t axis = 0; axis < ADVICE_AXES; axis++) {
        used += (size_t)snprintf(key + used, sizeof(key) - used, " %zu", picks->of[axis]);
    }
    const struct trial trial = {search->quiet, basis};
    return memo_predict(search->memo, key, make, &trial, ret_made);
}

/* What a job takes, in about nanoseconds. */
static enum status find_work(const struct study *study, const struct basis *basis,
                             struct prediction_estimate *ret_estimate, double *ret_work)
{
    const struct prediction_extent extent = study_extent(study);
    enum status status =
        prediction_estimate(&basis->job, &basis->costs, &basis->network, &extent, ret_estimate);
    *ret_work = (extent.warm + extent.counted) *
                (ret_estimate->is_reduced ? PREDICTION_WORK_MAX : ret_estimate->work);
    return status;
}

/* The score of a combination with places for all its servers. Below 0: it would take too long, or
 * too much memory. */
static enum status score_placed(const struct search *search, const struct advice_picks *picks,
                                const struct basis *basis, double *ret_score)
{
    struct prediction_estimate estimate;
    struct prediction made;
    double work = 0;
    enum status status = find_work(search->study, basis, &estimate, &work);
    *ret_score = -1;
    if (status != STATUS_OK || work > search->work_max) {
        return status;
    }
    status = predict_picks(search, picks, basis, &made);
    if (status == STATUS_NO_MEMORY) {
        return STATUS_OK;
    }
    *ret_score = status == STATUS_OK ? speed_of(search, &made) : 0;
    return status;
}

static enum status score_one(void *context, size_t index)
{
    const struct asked *asked = context;
    const struct search *search = asked->search;
    struct basis *basis = NULL;
    enum status status = make_default(search, &basis);
    if (status != STATUS_OK) {
        return status;
    }
    apply(search->design, &asked->picks[index], basis);
    asked->scores[index] = 0;
    if (advice_has_places(basis)) {
        status = score_placed(search, &asked->picks[index], basis, &asked->scores[index]);
    }
    basis_destroy(basis);
    return status;
}

static bool is_unmeasured(const struct search *search, const struct advice_picks *picks)
{
    bool is_so = false;
    for (size_t i = 0; i < search->unmeasured_count; i++) {
        is_so = is_so || memcmp(&search->unmeasured[i], picks, sizeof(*picks)) == 0;
    }
    return is_so;
}

static enum status score(void *context, const struct advice_picks *picks, size_t count,
                         double *ret_scores)
{
    const struct search *search = context;
    struct asked asked = {search, picks, ret_scores};
    enum status status = parallel_run(count, search->study->threads, score_one, &asked);
    for (size_t i = 0; i < count && status == STATUS_OK; i++) {
        ret_scores[i] = is_unmeasured(search, &picks[i]) ? -1 : ret_scores[i];
        search->design->has_left_out = search->design->has_left_out || ret_scores[i] < 0;
    }
    return status;
}

/* ==========================================================================================
 * One mode
 * ========================================================================================== */

/* Servers that the command line gives are the study's designs. */
static void list_given_servers(const struct search *search, struct advice_values *values)
{
    const struct study *study = search->study;
    for (size_t i = search->mode_index; i < study->design_count; i++) {
        if (study->designs[i].mode.kind == search->design->mode.kind &&
            study->designs[i].mode.slack_steps == search->design->mode.slack_steps) {
            advice_values_add(values, study->designs[i].servers);
        }
    }
}

static void list_values(const struct search *search, const struct basis *basis)
{
    for (size_t axis = 0; axis < ADVICE_AXES; axis++) {
        struct advice_values *values = &search->design->values[axis];
        values->count = 0;
        bool is_of = advice_axis_is_of((enum advice_axis_kind)axis, basis->job.mode.kind);
        if (axis == ADVICE_SERVERS && search->is_kept[axis]) {
            list_given_servers(search, values);
            continue;
        }
        advice_axes[axis].list(basis, values);
        values->count = search->is_kept[axis] || !is_of ? 1 : values->count;
    }
}

/* How many combinations may all be tried, by the work that the default is. Says if that is long. */
static enum status find_effort(struct search *search, const struct basis *basis,
                               struct advice_space *space)
{
    struct prediction_estimate estimate;
    double work = 0, tries = LIMITER_RUNS;
    enum status status = find_work(search->study, basis, &estimate, &work);
    if (status != STATUS_OK) {
        return status;
    }
    double all = EXHAUSTIVE_WORK / work;
    space->exhaustive_max = all < EXHAUSTIVE_MAX ? (size_t)all : EXHAUSTIVE_MAX;
    search->work_max = fmax(TRY_WORK, TRY_FACTOR * work);
    for (size_t axis = 0; axis < ADVICE_AXES; axis++) {
        tries += (double)space->counts[axis];
    }
    if (!estimate.is_reduced && 1e-9 * work * tries > STUDY_LONG_S) {
        log_warn("advice for %s among %u workers: simulating all of them takes more than %.0f s%s",
                 mode_text(basis->job.mode).text, basis->job.workers, 1e-9 * work * tries,
                 isfinite(estimate.reduction_error) ? "; --approximate is quicker" : "");
    }
    return STATUS_OK;
}

static double gain_of(double speed, double before)
{
    return speed > 0 && before > 0 ? speed / before - 1 : (double)NAN;
}

static enum status find_gains(struct search *search)
{
    struct advice_design *design = search->design;
    enum status status = STATUS_OK;
    for (size_t axis = 0; axis < ADVICE_AXES && status == STATUS_OK; axis++) {
        if (design->found.picks.of[axis] == 0) {
            continue;
        }
        struct advice_picks alone = {{0}}, without = design->found.picks;
        double speed_alone = 0, speed_without = 0;
        alone.of[axis] = design->found.picks.of[axis];
        without.of[axis] = 0;
        status = score(search, &alone, 1, &speed_alone);
        if (status == STATUS_OK) {
            status = score(search, &without, 1, &speed_without);
        }
        design->gains[design->gain_count++] =
            (struct advice_gain){.axis = (enum advice_axis_kind)axis,
                                 .alone = gain_of(speed_alone, design->speed_before),
                                 .taken_back = gain_of(speed_without, design->speed_after)};
    }
    return status;
}

/* Measures a combination with what limits it. One that is too large is as if it had no speed. */
static enum status measure(const struct search *search, const struct study *study,
                           const struct advice_picks *picks, struct study_point *point,
                           bool *ret_is_too_large)
{
    struct basis *basis = NULL;
    enum status status = make_default(search, &basis);
    if (status != STATUS_OK) {
        return status;
    }
    apply(search->design, picks, basis);
    const struct study_point asked = {.design = {search->design->mode, basis->job.servers},
                                      .workers = search->advice->workers,
                                      .servers = basis->job.servers,
                                      .what_if = search->advice->what_if};
    *point = asked;
    status = study_measure(study, basis, point);
    if (status == STATUS_OK && study->convergence != NULL) {
        study_find_target(study, point->design, point->workers, &point->made, &point->target);
    }
    basis_destroy(basis);
    *ret_is_too_large = status == STATUS_NO_MEMORY;
    if (*ret_is_too_large) {
        *point = asked; // what is known of it is not all
        search->design->has_left_out = true;
        return STATUS_OK;
    }
    return status;
}

/* The best combination that can be measured. One whose limiter takes too much memory to find, as
 * without some cost more messages are on their way, gives way to the next best. */
static enum status find_best(struct search *search, const struct advice_space *space)
{
    struct advice_design *design = search->design;
    const struct advice_scorer scorer = {score, search};
    enum status status = STATUS_OK;
    do {
        status = advice_search(space, &scorer, &design->found);
        design->is_too_large = design->found.score <= 0 && design->has_left_out;
        if (status != STATUS_OK || design->is_too_large) {
            return status;
        }
        status = measure(search, search->quiet, &design->found.picks, &design->after,
                         &design->is_too_large);
        if (design->is_too_large) {
            search->unmeasured[search->unmeasured_count++] = design->found.picks;
        }
    } while (design->is_too_large && search->unmeasured_count < UNMEASURED_MAX);
    return status;
}

static enum status search_mode(struct search *search, const struct basis *basis)
{
    struct advice_design *design = search->design;
    const struct advice_picks none = {{0}};
    struct advice_space space;
    list_values(search, basis);
    for (size_t axis = 0; axis < ADVICE_AXES; axis++) {
        space.counts[axis] = design->values[axis].count;
    }
    enum status status = find_effort(search, basis, &space);
    if (status == STATUS_OK) {
        status =
            measure(search, search->study, &none, &design->before, &design->is_before_too_large);
    }
    if (status != STATUS_OK) {
        return status;
    }
    // Whether a target is known of a mode whose default is not, its other combinations tell.
    design->is_of_target = design->is_before_too_large ? search->study->convergence != NULL
                                                       : design->before.target.seconds > 0;
    design->speed_before = design->is_before_too_large ? 0 : speed_of(search, &design->before.made);
    status = find_best(search, &space);
    if (status == STATUS_OK && design->is_before_too_large && design->is_of_target &&
        design->found.score <= 0) {
        design->is_of_target = false;
        status = find_best(search, &space);
    }
    if (status != STATUS_OK || design->is_too_large) {
        return status;
    }
    design->speed_after = speed_of(search, &design->after.made);
    return find_gains(search);
}

static enum status advise_mode(const struct study *study, const bool *is_kept, size_t mode_index,
                               const struct advice *advice, struct advice_design *design)
{
    struct study *quiet = malloc(sizeof(*quiet));
    struct search search = {.study = study,
                            .quiet = quiet,
                            .is_kept = is_kept,
                            .memo = memo_create(),
                            .advice = advice,
                            .design = design,
                            .mode_index = mode_index};
    struct basis *basis = NULL;
    design->mode = study->designs[mode_index].mode;
    enum status status =
        search.memo != NULL && quiet != NULL ? make_default(&search, &basis) : STATUS_NO_MEMORY;
    if (status == STATUS_OK) {
        *quiet = *study;
        quiet->is_quiet = true;
        status = search_mode(&search, basis);
    }
    design->is_apart = study->convergence != NULL ? !design->is_of_target
                                                  : mode_updates_on_push(design->mode.kind);
    basis_destroy(basis);
    memo_destroy(search.memo);
    free(quiet);
    return status;
}

/* ==========================================================================================
 * All modes
 * ========================================================================================== */

/* Those that can be compared first, each kind by its speed. */
static bool is_better(const struct advice_design *a, const struct advice_design *b)
{
    if (a->is_too_large != b->is_too_large) {
        return b->is_too_large;
    }
    if (a->is_apart != b->is_apart) {
        return b->is_apart;
    }
    return a->speed_after > b->speed_after;
}

static void sort(struct advice *advice)
{
    for (size_t i = 1; i < advice->count; i++) {
        const struct advice_design design = advice->designs[i];
        size_t place = i;
        for (; place > 0 && is_better(&design, &advice->designs[place - 1]); place--) {
            advice->designs[place] = advice->designs[place - 1];
        }
        advice->designs[place] = design;
    }
}

static bool is_first_of_mode(const struct study *study, size_t index)
{
    for (size_t i = 0; i < index; i++) {
        if (study->designs[i].mode.kind == study->designs[index].mode.kind &&
            study->designs[i].mode.slack_steps == study->designs[index].mode.slack_steps) {
            return false;
        }
    }
    return true;
}

static enum status advise(const struct study *study, const bool *is_kept, struct advice *advice)
{
    enum status status = STATUS_OK;
    for (size_t i = 0; i < study->design_count && status == STATUS_OK; i++) {
        if (!is_first_of_mode(study, i)) {
            continue;
        }
        if (advice->count == ADVICE_MODES_MAX) {
            log_error("--mode has more than %d modes to search; ask for fewer", ADVICE_MODES_MAX);
            return STATUS_INVALID;
        }
        status = advise_mode(study, is_kept, i, advice, &advice->designs[advice->count]);
        advice->known += !advice->designs[advice->count].is_too_large;
        advice->count++;
    }
    sort(advice);
    for (size_t i = 0; i < advice->count; i++) {
        if (advice->designs[i].mode.kind == study->job.mode.kind) {
            advice->start = i;
        }
    }
    return status;
}

enum status advice_list_make(const struct study *study, const bool is_kept[ADVICE_AXES],
                             struct advice_list *ret_list)
{
    size_t count = study->worker_count * (1 + study->what_if_count);
    struct advice *list = calloc(count, sizeof(*list));
    enum status status = list != NULL ? STATUS_OK : STATUS_NO_MEMORY;
    size_t known = 0;
    for (size_t i = 0; i < count && status == STATUS_OK; i++) {
        size_t change = i / study->worker_count;
        list[i].workers = study->workers[i % study->worker_count];
        list[i].what_if = change > 0 ? &study->what_ifs[change - 1] : NULL;
        status = advise(study, is_kept, &list[i]);
        known += list[i].known;
    }
    if (status != STATUS_OK || known == 0) {
        free(list);
        return status != STATUS_OK ? status : STATUS_NO_MEMORY;
    }
    *ret_list = (struct advice_list){list, count};
    return STATUS_OK;
}

void advice_list_finish(struct advice_list *list)
{
    free(list->list);
    *list = (struct advice_list){NULL, 0};
}

struct basis *advice_basis(const struct study *study, const struct advice *advice,
                           const struct advice_design *design)
{
    struct basis *basis = NULL;
    const struct study_point point = {
        .design = {design->mode, 0}, .workers = advice->workers, .what_if = advice->what_if};
    if (study_make_basis(study, &point, &basis) != STATUS_OK) {
        return NULL;
    }
    apply(design, &design->found.picks, basis);
    return basis;
}
