/* Chooses how buckets are added up, and how a job that has too much work is reduced. */
#include "common/base/log.h"
#include "common/plan/halving_plan.h"
#include "deploy/predict/course.h"
#include "deploy/predict/exchange/values.h"
#include "deploy/predict/sample.h"
#include "deploy/predict/sample_direct.h"
#include "worker/exchange/chunks/ring_plan.h"
#include "worker/exchange/shared/block_plan.h"

#include <math.h>
#include <stdlib.h>

/* The first process that is not on the host of worker 0; UINT32_MAX: all are. */
static uint32_t find_far(const struct course *course)
{
    for (uint32_t p = 1; p < course->job->workers + course->parts; p++) {
        if (course->hosts[p] != course->hosts[0]) {
            return p;
        }
    }
    return UINT32_MAX;
}

bool course_lends(const struct course *course, uint32_t from, uint32_t to)
{
    return course->lends && course->hosts[from] == course->hosts[to];
}

/* As ps-server/coordinator/topology.c decides it. */
static enum status choose_transport(struct course *course)
{
    const struct job *job = course->job;
    bool may_share = job->transport == TRANSPORT_AUTO || job->transport == TRANSPORT_SHM;
    uint32_t far = find_far(course);
    if (far != UINT32_MAX && (job->transport == TRANSPORT_SHM || job->transport == TRANSPORT_IPC)) {
        bool is_worker = far < job->workers;
        log_error("--transport %s needs all processes on one host, and the network has %s %u of "
                  "%u workers on %s; choose auto or tcp, or give hosts more places",
                  job->transport == TRANSPORT_SHM ? "shm" : "ipc", is_worker ? "worker" : "server",
                  is_worker ? far : far - job->workers, job->workers,
                  course->network->hosts[course->hosts[far]].name);
        return STATUS_INVALID;
    }
    // What is encoded lies in no memory that others see.
    course->lends = may_share && job->compress.kind == CODEC_NONE;
    course->has_group = course->lends && course->parts == 0 && job->workers > 1 &&
                        job->workers <= ALL_REDUCE_SHARED_MAX && far == UINT32_MAX &&
                        !all_reduce_shuns_memory(job->all_reduce);
    return STATUS_OK;
}

/* What a worker would measure of the way to another (probe.h). A further message is sent and
 * received; values of a large one are handled at one end, go their way, and are handled at the
 * other. */
static struct all_reduce_path find_path(const struct course *course)
{
    const struct costs *costs = course->costs;
    struct network_route route;
    network_find_route(course->network, course->hosts[0], course->hosts[course->job->workers - 1],
                       &route);
    double bandwidth = route.flow_bandwidth;
    for (uint32_t i = 0; i < route.link_count; i++) {
        double own = network_free(&course->network->links[route.links[i]]);
        bandwidth = own > 0 && (bandwidth <= 0 || own < bandwidth) ? own : bandwidth;
    }
    double byte_s = (bandwidth > 0 ? 1 / bandwidth : 0) +
                    (costs->message_bandwidth > 0 ? 2 / costs->message_bandwidth : 0);
    double message_s = 2 * costs->message_s;
    return (struct all_reduce_path){.latency_ns = (uint64_t)((route.latency_s + message_s) * 1e9),
                                    .message_ns = (uint64_t)(message_s * 1e9),
                                    .bandwidth = byte_s > 0 ? (uint64_t)(1 / byte_s) : UINT64_MAX};
}

/* As ps-server/coordinator/topology.c decides it. */
static enum all_reduce find_algorithm(const struct course *course)
{
    uint32_t workers = course->job->workers;
    const struct all_reduce_load load = {.workers = workers,
                                         .buckets = course->layout.bucket_count,
                                         .floats = course->layout.value_count,
                                         .may_meet = workers <= ALL_REDUCE_DIRECT_MAX,
                                         .may_halve = true};
    switch (course->job->all_reduce) {
    case ALL_REDUCE_CHOICE_HALVING:
        return ALL_REDUCE_HALVING;
    case ALL_REDUCE_CHOICE_DIRECT:
        return ALL_REDUCE_DIRECT;
    case ALL_REDUCE_CHOICE_RING:
    case ALL_REDUCE_CHOICE_NCCL:
        return ALL_REDUCE_RING;
    case ALL_REDUCE_CHOICE_AUTO:
        break;
    }
    const struct all_reduce_path path =
        workers < 2 ? (struct all_reduce_path){0} : find_path(course);
    return all_reduce_choose(&load, &path);
}

/* What a step of so many workers takes: messages, and how many flows change when one begins or
 * ends. */
static double work_of_step(const struct course *course, uint32_t workers)
{
    double n = workers, work = 0;
    double pairs = n * course->parts;
    for (uint32_t b = 0; b < course->layout.bucket_count; b++) {
        uint64_t floats = course->layout.buckets[b].count;
        double segments = ceil((double)floats / course->job->workers / (double)SEGMENT_FLOATS);
        enum all_reduce algorithm = course->algorithms[b];
        if (course->has_group) {
            work += 200 * (n + block_plan_count(floats));
            continue;
        }
        double hops = halving_hop_count(course->job->workers);
        if (course->parts > 0) {
            work += 2 * pairs * (100 + 2 * pairs);
        } else if (algorithm == ALL_REDUCE_HALVING) {
            work += n * hops * hops * 100;
        } else {
            work += 2 * n * n * segments * (algorithm == ALL_REDUCE_RING ? 100 : 2 * n * n);
        }
    }
    return work;
}

enum reduction_kind course_reduction_kind(const struct course *course)
{
    if (course->parts > 0) {
        bool races = mode_updates_on_push(course->job->mode.kind) || course->job->backup > 0;
        return races ? REDUCTION_RACES : REDUCTION_SYNC;
    }
    for (uint32_t b = 0; b < course->layout.bucket_count; b++) {
        if (course->algorithms[b] == ALL_REDUCE_HALVING) {
            return REDUCTION_HALVING;
        }
    }
    return REDUCTION_RING;
}

bool course_is_direct(const struct course *course)
{
    return course->parts == 0 && course->algorithms[0] == ALL_REDUCE_DIRECT;
}

/* What a step takes at least, also without delays: of a ring, or directly, by all messages of a
 * worker, which its thread handles one after the other; and by its layers. */
static double least_step_s(const struct course *course)
{
    uint32_t workers = course->job->workers;
    double messages = 0, compute_s = costs_compute_s(course->costs);
    for (uint32_t b = 0; b < course->layout.bucket_count; b++) {
        struct span chunk = {0, course->layout.buckets[b].count / workers};
        messages += 2.0 * (workers - 1) * ring_segment_count(chunk, SEGMENT_FLOATS);
    }
    double messages_s = 2 * messages * course->costs->message_s; // sent, and received
    return messages_s > compute_s ? messages_s : compute_s;
}

/* What a step takes the thread of a server, and its link. */
static double least_served_s(const struct course *course)
{
    uint32_t workers = course->job->workers;
    const struct network_host *server = &course->whole->hosts[course->hosts[workers]];
    double bandwidth = network_free(&course->whole->links[server->down]);
    double bytes = 4.0 * (double)course->layout.value_count / course->parts * workers;
    double messages_s = 2.0 * course->layout.bucket_count * workers * course->costs->message_s;
    double bytes_s = bandwidth > 0 ? bytes / bandwidth : 0;
    return messages_s > bytes_s ? messages_s : bytes_s;
}

/* What a step takes by layers, and by the link of a worker that halves and doubles. */
static double least_halved_s(const struct course *course)
{
    double compute_s = costs_compute_s(course->costs);
    double hops = halving_hop_count(course->job->workers);
    const struct network_host *host = &course->whole->hosts[course->hosts[0]];
    double bandwidth = network_free(&course->whole->links[host->up]);
    double bytes =
        4.0 * (double)course->layout.value_count * (hops / 4 + 0.5); // halves, N - 1 of N
    return bandwidth > 0 && bytes / bandwidth > compute_s ? bytes / bandwidth : compute_s;
}

/* A step with delays takes no longer than if all workers had that of the latest, and then one may
 * stand for all. It takes no less, in the mean of many, than if all had the mean delay, as times
 * are sums and maxima of delays, which is a convex function (Jensen). So where these two are close
 * to each other, delays set nobody apart. With cores, who is late lends others its own: that is no
 * such function. */
static double error_of_delays(const struct course *course, double error)
{
    uint32_t workers = course->job->workers;
    bool is_ring = course_reduction_kind(course) == REDUCTION_RING;
    double even = reduction_error(REDUCTION_RING, course->whole, workers, 0, course->hosts, false);
    double least_s = least_step_s(course);
    if (!is_ring || even > REDUCTION_EVEN || least_s <= 0 ||
        course->whole->hosts[course->hosts[0]].cores > 0) {
        return error;
    }
    double bound = REDUCTION_EVEN_SEEN + course_delays_apart_s(course, workers) / least_s;
    bound = bound > even ? bound : even;
    return bound < error ? bound : error;
}

/* Halving with several buckets: steps of all workers are longer than those of a sample, in tests by
 * HALVED_EACH for each doubling of the sample up to all workers. Buckets in different rounds share
 * links, so a worker that is slightly ahead takes bandwidth from those behind it, which fall back
 * further: workers get out of step. A sample does so less. Without delays only rounding sets
 * workers apart: then a sample also does so later, which costs HALVED_EVEN more, and one worker
 * that stands for all never does. */
#define HALVED_EACH 0.04
#define HALVED_EVEN 0.08

static double error_of_halving(const struct course *course, uint32_t simulated)
{
    double doublings = log2((double)course->job->workers / simulated);
    double later = course->costs->spread.kind == SPREAD_NONE ? HALVED_EVEN : 0;
    return course->layout.bucket_count > 1 ? later + HALVED_EACH * doublings : 0;
}

#define FEWER_LATE 0.7 // by this part of what the latest are less late, steps are shorter in tests

#define BACKUP_SEEN \
    0.009 // by so much samples with the right share of backup workers differ in tests

/* With backup workers: what part of the gradients comes too late is the sample's own, which may be
 * another one. That counts as far as servers are what steps wait for: which delay an update waits
 * for is drawn from those of all workers (course_backup.c). With rounds it would be a sum of them.
 */
static double error_of_backup(const struct course *course)
{
    double all = course->job->workers, count = course->estimate.sample;
    double floats = (double)course->layout.value_count / course->parts;
    double served_s = least_served_s(course) + all * values_sum_s(course, floats);
    double off = fabs(course->estimate.sample_backup / count - course->job->backup / all);
    return course->round_steps > 1
               ? (double)INFINITY
               : BACKUP_SEEN + off * served_s / (served_s + costs_compute_s(course->costs));
}

#define DIRECT_ROUGH  0.05 // by less than that, samples in racks, or with cores, differ in tests
#define DIRECT_BLOCKS 3    // that nobody handles meanwhile

/* The most places for workers that a host of theirs has. */
static uint32_t most_places(const struct course *course)
{
    uint32_t places = 0;
    for (uint32_t w = 0; w < course->job->workers; w++) {
        uint32_t own = course->whole->hosts[course->hosts[w]].workers;
        places = own > places ? own : places;
    }
    return places;
}

/* Whether hosts have cores, or are below several switches. */
static bool have_cores_or_racks(const struct course *course)
{
    bool have = false;
    for (uint32_t w = 0; w < course->job->workers; w++) {
        const struct network_host *host = &course->whole->hosts[course->hosts[w]];
        have =
            have || host->cores > 0 || host->above != course->whole->hosts[course->hosts[0]].above;
    }
    return have;
}

/* Whether a sample that adds up directly has to be of more workers than one for rings. */
static bool needs_many(const struct course *course)
{
    return course_is_direct(course) &&
           (have_cores_or_racks(course) ||
            (course->costs->message_bandwidth > 0 && most_places(course) > 1));
}

/* Messages that one stands for are handled together. Whoever needs the first of them waits for all,
 * a few times in a step. That counts where threads handle bytes, too, and steps wait for them. */
static double error_of_direct(const struct course *course)
{
    uint32_t workers = course->job->workers, count = course->estimate.sample;
    uint32_t places = most_places(course);
    const struct costs *costs = course->costs;
    double floats = 0, byte_s = costs->message_bandwidth > 0 ? 1 / costs->message_bandwidth : 0;
    if (places >= count ||
        !sample_direct_is_complete(course->whole, workers, course->hosts, count)) {
        return (double)INFINITY;
    }
    if (have_cores_or_racks(course)) {
        return DIRECT_ROUGH;
    }
    for (uint32_t b = 0; b < course->layout.bucket_count; b++) {
        floats = fmax(floats, (double)course->layout.buckets[b].count);
    }
    double each = (double)(workers - places) / (count - places);
    double block_s = each * (costs->message_s + 4 * floats / workers * byte_s);
    return needs_many(course) ? REDUCTION_EVEN_SEEN + DIRECT_BLOCKS * block_s / least_step_s(course)
                              : REDUCTION_SAMPLE;
}

/* Whether messages of workers wait for slices of those that compute. A message of a ring that
 * stands for several waits once, and not as often as these would. With servers, a worker of a
 * sample has all of its messages. Only workers that compute with one thread have slices (cores.h).
 */
static bool waits_for_slices(const struct course *course)
{
    const struct costs *costs = course->costs;
    bool waits = false, has_slices = course->parts == 0 && costs->slice_s > 0 &&
                                     costs->threads <= 1 && !costs->messages_first;
    for (uint32_t w = 1; w < course->job->workers && has_slices; w++) {
        bool shares = course->hosts[w] == course->hosts[w - 1];
        waits = waits || (shares && course->whole->hosts[course->hosts[w]].cores > 0);
    }
    return waits;
}

// Samples of ps-ssp with servers beside workers are off by less than that in tests.
#define BESIDE_ERROR 0.2

/* What a sample may be off by. In ps-ssp all wait for the slowest of some steps, which those of the
 * sample are less often than all are. */
static double error_of_sample(const struct course *course, bool has_delays)
{
    enum reduction_kind kind = course_reduction_kind(course);
    const struct job *job = course->job;
    bool is_mixed = course->has_group;
    for (uint32_t b = 0; b < course->layout.bucket_count && course->parts == 0; b++) {
        is_mixed = is_mixed || course->algorithms[b] != course->algorithms[0];
    }
    // A rank that is slower need not be alike to the one of the sample that stands for it.
    bool is_unlike =
        straggler_rank_max(&course->straggler) >= 0 &&
        sample_has_classes(course->whole, job->workers, course->hosts, course->estimate.sample);
    // A worker beside a server is late often, for which others wait, or which they leave behind.
    // In ps-ssp that is good enough to compare.
    bool is_beside = (job->backup > 0 || job->mode.kind == MODE_PS_SSP) &&
                     sample_is_beside(job->workers, course->parts, course->hosts);
    bool is_refused = is_beside && (job->backup > 0 || !course->extent->is_compared);
    if (is_mixed || is_unlike || is_refused || waits_for_slices(course) ||
        (kind == REDUCTION_HALVING && (job->workers & (job->workers - 1)) != 0)) {
        return (double)INFINITY;
    }
    if (is_beside) {
        return BESIDE_ERROR;
    }
    if (job->backup > 0) {
        return error_of_backup(course);
    }
    if (course_is_direct(course)) {
        return error_of_direct(course);
    }
    if (kind == REDUCTION_HALVING && (has_delays || course->layout.bucket_count > 1)) {
        // A worker that ends a step early begins the next one early. So delays alone do not decide
        // which worker is the latest, and a sample has fewer that might be.
        double fewer_s = has_delays ? course_delays_apart_s(course, job->workers) -
                                          course_delays_apart_s(course, course->estimate.sample)
                                    : 0;
        return REDUCTION_EVEN_SEEN + FEWER_LATE * fewer_s / least_halved_s(course) +
               error_of_halving(course, course->estimate.sample);
    }
    if (kind == REDUCTION_RACES && job->mode.kind == MODE_PS_SSP && has_delays) {
        return REDUCTION_EVEN_SEEN +
               course_delays_apart_s(course, job->workers) / least_served_s(course);
    }
    return REDUCTION_SAMPLE;
}

/* Of how many workers a sample is: races have less to do for servers the fewer they are. */
static const uint32_t samples[] = {
    [REDUCTION_RING] = 32,
    [REDUCTION_HALVING] = 256,
    [REDUCTION_SYNC] = 64,
    [REDUCTION_RACES] = 128,
};

/* Where only what a cost changes counts. A step of a smaller sample is further off, but with and
 * without the cost in the same direction. */
#define SAMPLE_HALVING_COMPARED 64
#define SAMPLE_DIRECT_COMPARED  32

#define SAMPLES_MAX 512 // workers, where a smaller sample is too far off

#define SAMPLE_BESIDE 128 // of ps-sync with servers beside workers
#define SAMPLE_DIRECT 64  // of workers that add up directly, where hosts are unlike for them

static uint32_t usual_sample(const struct course *course)
{
    enum reduction_kind kind = course_reduction_kind(course);
    bool is_beside = kind == REDUCTION_SYNC &&
                     sample_is_beside(course->job->workers, course->parts, course->hosts);
    return is_beside ? SAMPLE_BESIDE : needs_many(course) ? SAMPLE_DIRECT : samples[kind];
}

/* Whether a smaller sample will do. */
static bool is_rough(const struct course *course)
{
    bool is_halving = course_reduction_kind(course) == REDUCTION_HALVING;
    return course->extent->is_compared &&
           (is_halving || (course_is_direct(course) && have_cores_or_racks(course)));
}

static uint32_t wanted_sample(const struct course *course)
{
    return !is_rough(course)          ? usual_sample(course)
           : course_is_direct(course) ? SAMPLE_DIRECT_COMPARED
                                      : SAMPLE_HALVING_COMPARED;
}

/* Whether a larger sample is looked at than one that is so far off: with backup workers, which it
 * may have in a better proportion, and where a small one is too far off to be compared. */
static bool wants_larger(const struct course *course, double error)
{
    uint32_t sample = course->estimate.sample;
    if (course->extent->sample_min > 0) {
        return false;
    }
    return course->job->backup > 0 ? error > PREDICTION_ERROR_MAX && sample + 1 < SAMPLES_MAX
                                   : is_rough(course) && error > course->extent->error_max &&
                                         sample < usual_sample(course);
}

/* How far off the best sample is. */
static double find_sample(struct course *course, bool has_delays)
{
    struct prediction_estimate *estimate = &course->estimate;
    uint32_t asked = course->extent->sample_min, workers = course->job->workers;
    uint32_t wanted = asked > 0 ? asked : wanted_sample(course);
    double error = (double)INFINITY;
    do {
        estimate->sample = sample_find(course->whole, workers, course->parts, course->hosts, wanted,
                                       course_reduction_kind(course));
        if (estimate->sample == 0) {
            return (double)INFINITY;
        }
        estimate->sample_backup =
            (uint32_t)lround((double)course->job->backup * estimate->sample / workers);
        error = error_of_sample(course, has_delays);
        wanted = estimate->sample + 1;
    } while (wants_larger(course, error));
    return error;
}

/* One worker stands for all, or a sample does: whichever is less off, if both are by more than is
 * allowed unasked. */
static void choose_reduction(struct course *course, bool has_delays)
{
    struct prediction_estimate *estimate = &course->estimate;
    double error = (double)INFINITY;
    if (estimate->reduction_error > PREDICTION_ERROR_MAX || has_delays) {
        error = find_sample(course, has_delays);
    }
    if (error < estimate->reduction_error || error <= PREDICTION_ERROR_MAX) {
        estimate->reduction_error = error;
    } else {
        estimate->sample = 0;
        estimate->obstacle =
            sample_beside_obstacle(course->whole, course->job->workers, course->parts,
                                   course->hosts, course_reduction_kind(course));
    }
    estimate->is_reduced = estimate->reduction_error <= course->extent->error_max;
    if (estimate->is_reduced) {
        uint32_t simulated = estimate->sample > 0 ? estimate->sample : 1;
        estimate->reduced_work = work_of_step(course, simulated);
    } else {
        estimate->sample = 0;
    }
}

static void estimate_work(struct course *course)
{
    bool has_delays = course->costs->spread.kind != SPREAD_NONE || course->straggler.count > 0;
    double work = work_of_step(course, course->job->workers);
    double error = reduction_error(course_reduction_kind(course), course->whole,
                                   course->job->workers, course->parts, course->hosts, has_delays);
    if (has_delays && work > course->extent->work_max && course->round_steps == 1) {
        error = error_of_delays(course, error);
    }
    if (course_reduction_kind(course) == REDUCTION_HALVING) {
        error = fmax(error, error_of_halving(course, 1));
    }
    if (course->round_steps > 1 && has_delays && course->parts == 0) {
        error = (double)INFINITY; // the latest of each step is not that of a round
    }
    course->estimate = (struct prediction_estimate){.work = work, .reduction_error = error};
    if (work > course->extent->work_max) {
        choose_reduction(course, has_delays);
    }
}

enum status course_plan(struct course *course)
{
    enum status status = choose_transport(course);
    if (status != STATUS_OK) {
        return status;
    }
    enum all_reduce algorithm = find_algorithm(course);
    for (uint32_t b = 0; b < course->layout.bucket_count; b++) {
        course->algorithms[b] = algorithm;
    }
    estimate_work(course);
    return STATUS_OK;
}
