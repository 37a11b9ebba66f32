/* Predicts a point, and again without each of its costs, to find the one that limits it. */
#include "deploy/predict/study/study.h"

#include "common/base/log.h"
#include "deploy/predict/study/parallel.h"
#include "deploy/predict/study/study_batches.h"
#include "deploy/predict/study/study_links.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Each of these takes the cost of a limiter out of a basis. False: there was none. */
static bool remove_compute(struct basis *basis)
{
    bool has_some = costs_compute_s(&basis->costs) > 0;
    for (uint32_t i = 0; i < basis->costs.layer_count; i++) {
        basis->costs.layers[i].forward_s = basis->costs.layers[i].backward_s = 0;
    }
    return has_some;
}

static bool remove_delays(struct basis *basis)
{
    bool has_some =
        basis->costs.spread.kind != SPREAD_NONE || strcmp(basis->job.straggler, "none") != 0;
    basis->costs.spread.kind = SPREAD_NONE;
    snprintf(basis->job.straggler, sizeof(basis->job.straggler), "none");
    return has_some;
}

static bool remove_input(struct basis *basis)
{
    bool has_some = basis->costs.input_s > 0;
    basis->costs.input_s = 0;
    return has_some;
}

static bool remove_optimizer(struct basis *basis)
{
    bool has_some = basis->costs.optimizer_s > 0 || basis->costs.server_optimizer_s > 0;
    basis->costs.optimizer_s = basis->costs.server_optimizer_s = 0;
    return has_some;
}

/* All of what they take of cores, also where the library and the kernel do that. */
static bool remove_messages(struct basis *basis)
{
    struct costs *costs = &basis->costs;
    bool has_some = costs->message_s > 0 || costs->message_bandwidth > 0 ||
                    costs->carriage_message_s > 0 || costs->carriage_bandwidth > 0;
    costs->message_s = costs->message_bandwidth = 0;
    costs->carriage_message_s = costs->carriage_bandwidth = 0;
    return has_some;
}

static bool remove_sums(struct basis *basis)
{
    bool has_some = basis->costs.sum_bandwidth > 0;
    basis->costs.sum_bandwidth = 0;
    return has_some;
}

static bool remove_codes(struct basis *basis)
{
    bool has_some = basis->job.compress.kind != CODEC_NONE &&
                    (basis->costs.encode_bandwidth > 0 || basis->costs.decode_bandwidth > 0);
    basis->costs.encode_bandwidth = basis->costs.decode_bandwidth = 0;
    return has_some;
}

static bool remove_bandwidth(struct basis *basis)
{
    basis->network.flow_bandwidth = 0;
    for (uint32_t i = 0; i < basis->network.link_count; i++) {
        basis->network.links[i].bandwidth = basis->network.links[i].background = 0;
        basis->network.links[i].loss = 0;
        basis->network.links[i].may_saturate = false;
    }
    return true;
}

static bool remove_latency(struct basis *basis)
{
    for (uint32_t i = 0; i < basis->network.host_count; i++) {
        basis->network.hosts[i].latency_s = basis->network.hosts[i].memory_latency_s = 0;
    }
    for (uint32_t i = 0; i < basis->network.switch_count; i++) {
        basis->network.switches[i].latency_s = 0;
    }
    return true;
}

static const struct {
    const char *name;
    bool (*remove)(struct basis *basis);
} limiters[] = {
    // Those that limit most jobs come first, as the others are then soon known to limit less.
    {"messages", remove_messages}, {"bandwidth", remove_bandwidth}, {"compute", remove_compute},
    {"sums", remove_sums},         {"delays", remove_delays},       {"latency", remove_latency},
    {"encoding", remove_codes},    {"optimizer", remove_optimizer}, {"input", remove_input},
};

// Of a job whose steps take more work, changes are looked at in fewer of them.
#define CHANGE_WORK_MAX   (2 * PREDICTION_WORK_MAX)
#define CHANGE_WARM_STEPS 1
#define CHANGE_STEPS      3

#define LIMITER_COUNT (sizeof(limiters) / sizeof(limiters[0]))

struct prediction_extent study_extent(const struct study *study)
{
    return (struct prediction_extent){
        .warm = STUDY_WARM_STEPS,
        .counted = study->counted,
        .work_max = PREDICTION_WORK_MAX,
        .error_max = study->is_approximate ? PREDICTION_ERROR_MAX_ASKED : PREDICTION_ERROR_MAX,
        .memory_max = study->memory_max,
        .is_quiet = study->is_quiet};
}

/* Where shares of a global batch differ, costs are those of the largest, but fewer images count. */
static enum status predict(const struct study *study, const struct basis *basis,
                           const struct prediction_extent *extent,
                           struct prediction *ret_prediction)
{
    enum status status =
        prediction_make(&basis->job, &basis->costs, &basis->network, extent, ret_prediction);
    if (status == STATUS_OK) {
        ret_prediction->images_per_s *=
            study_mean_batch(study, basis->job.workers) / study_batch(study, basis->job.workers);
    }
    return status;
}

enum status study_predict(const struct study *study, const struct basis *basis,
                          struct prediction *ret_prediction)
{
    const struct prediction_extent extent = study_extent(study);
    return predict(study, basis, &extent, ret_prediction);
}

/* Whether changes of a point are looked at in fewer steps. */
static enum status takes_long(const struct study *study, const struct basis *basis, bool *ret_is)
{
    const struct prediction_extent extent = study_extent(study);
    struct prediction_estimate estimate;
    enum status status =
        prediction_estimate(&basis->job, &basis->costs, &basis->network, &extent, &estimate);
    if (status == STATUS_OK) {
        double work = estimate.is_reduced ? estimate.reduced_work : estimate.work;
        *ret_is = work > CHANGE_WORK_MAX;
    }
    return status;
}

/* What was made in small stays so, also where with other costs it is less sure: a change is no
 * figure to rely on. For the same reason changes of what takes long are looked at in small, if some
 * bound of that is known. */
enum status study_begin_changes(const struct study *study, const struct basis *basis,
                                const struct prediction *made, struct prediction_extent *ret_extent,
                                struct prediction *ret_base)
{
    struct prediction_extent extent = study_extent(study);
    bool is_long = false;
    enum status status = takes_long(study, basis, &is_long);
    *ret_base = *made;
    if (made->is_reduced || is_long) {
        extent.error_max = PREDICTION_ERROR_MAX_ASKED;
    }
    if (status == STATUS_OK && is_long) {
        extent.is_compared = true;
        extent.sample_min = study->change_sample;
        extent.warm = extent.warm < CHANGE_WARM_STEPS ? extent.warm : CHANGE_WARM_STEPS;
        extent.counted = extent.counted < CHANGE_STEPS ? extent.counted : CHANGE_STEPS;
        status = prediction_make(&basis->job, &basis->costs, &basis->network, &extent, ret_base);
    }
    *ret_extent = extent;
    return status;
}

/* Without each cost in turn. Where there is none, nothing would change. */
static enum status find_limiter(const struct study *study, const struct basis *basis,
                                struct study_point *point)
{
    struct prediction_extent extent;
    struct prediction base;
    enum status status = study_begin_changes(study, basis, &point->made, &extent, &base);
    if (status != STATUS_OK) {
        return status;
    }
    double shortest_s = base.step_s * (1 - 1e-9); // less is rounding
    point->limiter = "nothing";
    point->limiter_error = base.reduction_error;
    for (size_t i = 0; i < LIMITER_COUNT; i++) {
        struct prediction without;
        struct basis *changed = basis_create(&basis->job, &basis->costs, &basis->network);
        if (changed == NULL) {
            return STATUS_NO_MEMORY;
        }
        bool has_cost = limiters[i].remove(changed);
        extent.step_s_max = shortest_s;
        status = has_cost ? prediction_make(&changed->job, &changed->costs, &changed->network,
                                            &extent, &without)
                          : STATUS_OK;
        basis_destroy(changed);
        if (status != STATUS_OK) {
            return status;
        }
        if (has_cost && without.step_s < shortest_s) {
            shortest_s = without.step_s;
            point->limiter = limiters[i].name;
            point->limiter_gain = 1 - without.step_s / base.step_s;
        }
    }
    return STATUS_OK;
}

/* Images per second of one worker that exchanges nothing and that nobody slows down on purpose. It
 * has all of a global batch. */
static enum status find_alone(const struct study *study, const struct study_point *point,
                              const struct basis *basis, double *ret_images_per_s)
{
    const struct prediction_extent extent = study_extent(study);
    const struct study_point one = {
        .design = point->design, .workers = 1, .what_if = point->what_if};
    struct basis *whole = NULL; // with all of a global batch; NULL: the same batch as beside others
    struct job job = basis->job;
    struct prediction alone;
    job.mode.kind = MODE_RING;
    job.workers = 1;
    job.backup = 0;
    snprintf(job.straggler, sizeof(job.straggler), "none");
    enum status status = study_is_strong(study) ? study_make_basis(study, &one, &whole) : STATUS_OK;
    if (status == STATUS_OK) {
        const struct costs *costs = whole != NULL ? &whole->costs : &basis->costs;
        status = prediction_make(&job, costs, &basis->network, &extent, &alone);
    }
    basis_destroy(whole);
    if (status != STATUS_OK) {
        return status;
    }
    if (alone.step_s <= 0) {
        log_error("%s: a step of one worker takes no time; give its layers forward and backward "
                  "times",
                  study->costs_file);
        return STATUS_INVALID;
    }
    *ret_images_per_s = alone.images_per_s;
    return STATUS_OK;
}

/* Predictions that a point and its limiter take. 0: no memory. */
static size_t count_runs(const struct basis *basis)
{
    struct basis *changed = basis_create(&basis->job, &basis->costs, &basis->network);
    size_t count = changed != NULL;
    for (size_t i = 0; changed != NULL && i < LIMITER_COUNT; i++) {
        count += limiters[i].remove(changed);
    }
    basis_destroy(changed);
    return count;
}

/* About how long a point takes that is simulated whole, and its limiter, which may not be. */
static enum status find_seconds(const struct study *study, const struct basis *basis, double work,
                                double *ret_seconds)
{
    struct prediction_extent extent = study_extent(study);
    struct prediction_estimate small;
    extent.error_max = PREDICTION_ERROR_MAX_ASKED;
    extent.is_compared = true;
    enum status status =
        prediction_estimate(&basis->job, &basis->costs, &basis->network, &extent, &small);
    if (status == STATUS_OK) {
        double steps = (double)(extent.warm + extent.counted), runs = (double)count_runs(basis);
        *ret_seconds = 1e-9 * work * steps + 1e-9 * (small.is_reduced ? small.reduced_work : work) *
                                                 runs * (CHANGE_WARM_STEPS + CHANGE_STEPS);
    }
    return status;
}

/* A whole job with many messages takes long. */
static enum status tell_if_long(const struct study *study, const struct basis *basis)
{
    const struct prediction_extent extent = study_extent(study);
    struct prediction_estimate estimate;
    char advice[160];
    double seconds = 0;
    enum status status =
        prediction_estimate(&basis->job, &basis->costs, &basis->network, &extent, &estimate);
    if (status != STATUS_OK || estimate.is_reduced) {
        return status;
    }
    status = find_seconds(study, basis, estimate.work, &seconds);
    if (estimate.reduction_error <= PREDICTION_ERROR_MAX_ASKED) {
        snprintf(advice, sizeof(advice), "; --approximate is quick, and may be off by %.0f %%",
                 100 * estimate.reduction_error);
    } else {
        snprintf(advice, sizeof(advice), "; --approximate has no bound for that: %s",
                 estimate.obstacle != NULL ? estimate.obstacle
                                           : "docs/PREDICT.md says where it has");
    }
    if (seconds > STUDY_LONG_S) {
        log_warn("%s among %u workers: simulating all of them takes more than %.0f s%s",
                 mode_text(basis->job.mode).text, basis->job.workers, seconds, advice);
    }
    return status;
}

enum status study_measure(const struct study *study, const struct basis *basis,
                          struct study_point *point)
{
    double alone = 0;
    enum status status = find_alone(study, point, basis, &alone);
    if (status == STATUS_OK) {
        status = tell_if_long(study, basis);
    }
    if (status == STATUS_OK) {
        struct prediction_extent extent = study_extent(study);
        extent.link_bytes = point->link_bytes;
        status = predict(study, basis, &extent, &point->made);
    }
    if (status == STATUS_OK) {
        point->speed_up = point->made.images_per_s / alone;
        point->efficiency = point->speed_up / point->workers;
        status = find_limiter(study, basis, point);
    }
    return status;
}

enum status study_make_basis(const struct study *study, const struct study_point *point,
                             struct basis **ret_basis)
{
    struct basis *basis = basis_create(&study->job, study->costs, study->network);
    if (basis == NULL) {
        return STATUS_NO_MEMORY;
    }
    study_find_costs(study, point->workers, &basis->costs);
    basis->job.mode = point->design.mode;
    basis->job.workers = point->workers;
    basis->job.servers = point->design.servers;
    if (point->design.mode.kind != MODE_PS_SYNC) {
        basis->job.backup = 0; // for which other modes have no use
    }
    enum status status = what_if_apply(point->what_if, basis);
    if (status != STATUS_OK) {
        basis_destroy(basis);
        return status;
    }
    *ret_basis = basis;
    return STATUS_OK;
}

/* How long a job takes to start; 0: the costs do not say it. It has places, as it was predicted
 * before. */
static double find_start_s(const struct study *study, uint32_t workers, uint32_t servers)
{
    double start_s = 0;
    const struct launch_costs *launch = &study->costs->launch;
    return launch->is_given && launch_costs_find(launch, study->network, workers, servers,
                                                 &start_s) == STATUS_OK
               ? start_s
               : 0;
}

void study_find_target(const struct study *study, struct study_design design, uint32_t workers,
                       const struct prediction *made, struct target *ret_target)
{
    struct job job = study->job;
    job.mode = design.mode;
    job.workers = workers;
    convergence_find(study->convergence, &job, study_mean_batch(study, workers),
                     staleness_mean(&made->staleness), made->step_s, ret_target);
    if (ret_target->seconds > 0) {
        ret_target->seconds += find_start_s(study, workers, design.servers);
    }
}

static enum status fill_point(const struct study *study, struct study_point *point)
{
    struct basis *basis = NULL;
    enum status status = study_make_basis(study, point, &basis);
    if (status == STATUS_OK) {
        point->servers = basis->job.servers;
        free(point->link_bytes);
        point->link_bytes = calloc(basis->network.link_count, sizeof(*point->link_bytes));
        status = point->link_bytes != NULL ? study_measure(study, basis, point) : STATUS_NO_MEMORY;
    }
    if (status == STATUS_OK) {
        point->start_s = find_start_s(study, point->workers, point->servers);
        status = study_links_complete(basis, point->link_bytes);
    }
    if (status == STATUS_OK) {
        status = study_find_interval(study, basis, point);
    }
    basis_destroy(basis);
    if (status == STATUS_OK && study->convergence != NULL) {
        study_find_target(study, point->design, point->workers, &point->made, &point->target);
    }
    return status;
}

/* One that is too large leaves the others as they are. */
static enum status make_point(void *context, size_t index)
{
    struct study *study = context;
    struct study_point *point = &study->points[index];
    enum status status = fill_point(study, point);
    if (status != STATUS_NO_MEMORY) {
        return status;
    }
    free(point->link_bytes);
    *point = (struct study_point){.design = point->design,
                                  .workers = point->workers,
                                  .servers = point->servers,
                                  .what_if = point->what_if,
                                  .is_too_large = true};
    snprintf(point->target.why, sizeof(point->target.why), "it %s", STUDY_TOO_LARGE);
    return STATUS_OK;
}

static size_t count_too_large(const struct study *study)
{
    size_t count = 0;
    for (size_t i = 0; i < study->point_count * (1 + study->what_if_count); i++) {
        count += study->points[i].is_too_large;
    }
    return count;
}

bool study_is_whole(const struct study *study)
{
    return count_too_large(study) == 0;
}

void study_cross(struct study *study)
{
    size_t count = 0;
    for (size_t change = 0; change <= study->what_if_count; change++) {
        for (size_t w = 0; w < study->worker_count; w++) {
            for (size_t d = 0; d < study->design_count; d++) {
                study->points[count++] = (struct study_point){
                    .design = study->designs[d],
                    .workers = study->workers[w],
                    .what_if = change > 0 ? &study->what_ifs[change - 1] : NULL};
            }
        }
    }
    study->point_count = study->worker_count * study->design_count;
}

/* Whether the changes can be made, which threads then need not say several times. */
static enum status check_changes(const struct study *study)
{
    enum status status = STATUS_OK;
    for (size_t i = 0; i < study->what_if_count && status == STATUS_OK; i++) {
        struct basis *basis = NULL;
        status = study_make_basis(study, &study->points[(i + 1) * study->point_count], &basis);
        basis_destroy(basis);
    }
    return status;
}

enum status study_make(struct study *study)
{
    enum status status = check_changes(study);
    if (status != STATUS_OK) {
        return status;
    }
    size_t count = study->point_count * (1 + study->what_if_count);
    status = parallel_run(count, study->threads, make_point, study);
    return status == STATUS_OK && count_too_large(study) == count ? STATUS_NO_MEMORY : status;
}

void study_finish(struct study *study)
{
    for (size_t i = 0; i < sizeof(study->points) / sizeof(study->points[0]); i++) {
        free(study->points[i].link_bytes);
        study->points[i].link_bytes = NULL;
    }
}

struct study_design_text study_design_text(struct study_design design)
{
    struct study_design_text made;
    int size = snprintf(made.text, sizeof(made.text), "%s", mode_text(design.mode).text);
    if (design.servers > 0) {
        snprintf(made.text + size, sizeof(made.text) - (size_t)size, " with %u server%s",
                 design.servers, design.servers == 1 ? "" : "s");
    }
    return made;
}
