/* Predictions as a table, and as JSON. */
#include "deploy/predict/study/study.h"
#include "deploy/predict/study/study_basis.h"
#include "deploy/predict/study/study_batches.h"
#include "deploy/predict/study/study_links.h"
#include "deploy/predict/study/study_target.h"

#include <string.h>

static const char *const left_out[] = {
    "NCCL",
    "with --sync-every, copies of parameters at both ends of a round",
    "in the memory of one host: tickets of values that are lent, and a core's own caches",
    "requests of workers to servers, agreement among workers at the end of a phase, evaluation, "
    "checkpoints, copies for losses",
    "each process has one thread for messages; in ps-ssp and ps-async a server makes the update of "
    "a "
    "gradient when it is whole",
    "single losses, congestion and its recovery: flows share links fairly at once, and `loss` of "
    "the "
    "network lowers their rates",
    "headers of messages, and encryption but what it cost where the files were measured",
};
#define LEFT_OUT_COUNT (sizeof(left_out) / sizeof(left_out[0]))
#define ORIGIN_BYTES   (256 + 2 * CONDITIONS_TEXT_BYTES)

/* What is known of the values of the files, which is the first gap. */
static void format_origin(const struct study *study, char ret_text[ORIGIN_BYTES])
{
    static const char *const origins[] = {"taken as given",
                                          "as measured, which the file describes"};
    char costs[CONDITIONS_TEXT_BYTES], network[CONDITIONS_TEXT_BYTES], sure[144];
    bool knows_costs = conditions_format(&study->costs->conditions, costs, sizeof(costs));
    bool knows_network = conditions_format(&study->network->conditions, network, sizeof(network));
    if (study_uses_layer_spreads(study->costs)) {
        snprintf(sure, sizeof(sure),
                 "intervals are of the errors of costs alone, with that of the mean of %llu steps "
                 "by the spreads of layers",
                 (unsigned long long)study->counted);
    } else {
        snprintf(sure, sizeof(sure), "%s",
                 study_knows_errors(study->costs, study->network)
                     ? "intervals are of the errors of costs alone"
                     : "no interval is known");
    }
    snprintf(ret_text, ORIGIN_BYTES, "costs are %s%s%s%s, the network is %s%s%s%s, and %s",
             origins[study->costs->is_measured], knows_costs ? " (" : "", costs,
             knows_costs ? ")" : "", origins[study->network->is_measured],
             knows_network ? " (" : "", network, knows_network ? ")" : "", sure);
}

/* What is left out of how threads share cores. */
static const char *cores_gap(const struct study *study)
{
    if (study->network->hosts[0].cores > 0 && study->costs->slice_s > 0 &&
        study->costs->threads <= 1) {
        return "threads have cores slice by slice, go to another core at once, and their turns "
               "cost nothing but what crowding and refill (or turns) say";
    }
    return study->network->hosts[0].cores > 0
               ? "threads of a kind that share cores go on equally fast, and their turns cost "
                 "nothing but what crowding and turns say"
               : "computing is as fast while messages are sent and sums are made, also where "
                 "workers share cores: the network gives no cores";
}

static const char batch_gap[] =
    "no run had this batch: times lie on a line through those of two others";

/* What the costs lack for the job; NULL: nothing. */
static const char *missing_costs(const struct study *study)
{
    bool has_codes = study->job.compress.kind != CODEC_NONE;
    const struct costs *costs = study->costs;
    return !has_codes || (costs->encode_bandwidth > 0 && costs->decode_bandwidth > 0) ? NULL
           : costs->encode_bandwidth > 0
               ? "ASSUMED: decoding takes no time, as the costs have no decode"
           : costs->decode_bandwidth > 0
               ? "ASSUMED: encoding takes no time, as the costs have no encode"
               : "ASSUMED: encoding and decoding take no time, as the costs have no encode and no "
                 "decode";
}

static const char *link_name(const struct study *study, const struct study_point *point)
{
    return point->made.busiest_link == NETWORK_NONE
               ? "none"
               : study->network->links[point->made.busiest_link].name;
}

/* Says which points were made in small, and how far that may be from the whole. False: none. */
static bool print_reduced(const struct study *study, FILE *stream)
{
    bool is_any = false;
    for (size_t i = 0; i < study->point_count; i++) {
        const struct study_point *point = &study->points[i];
        if (point->made.is_reduced) {
            char sample[64];
            is_any = true;
            snprintf(sample, sizeof(sample), "%u workers stand for all", point->made.simulated);
            fprintf(stream, "\nIn %s among %u, %s: steps may be off by %.0f %%.",
                    mode_text(point->design.mode).text, point->workers,
                    point->made.simulated == 1               ? "one worker stands for all"
                    : point->made.simulated < point->workers ? sample
                    : point->made.simulated_servers < point->servers
                        ? "one server stands for all"
                        : "each flow has its share of a worker's link and no more",
                    100 * point->made.reduction_error);
        }
    }
    return is_any;
}

/* Says how many gradients backup workers make in vain. False: nothing. */
static bool print_late(const struct study *study, FILE *stream)
{
    bool is_any = false;
    for (size_t i = 0; i < study->point_count; i++) {
        const struct study_point *point = &study->points[i];
        if (study->job.backup > 0 && point->design.mode.kind == MODE_PS_SYNC &&
            !point->is_too_large) {
            is_any = true;
            fprintf(stream,
                    "\nIn %s among %u, %.1f %% of the gradients come too late for their update, "
                    "and their images do not count.",
                    study_design_text(point->design).text, point->workers, 100 * point->made.late);
        }
    }
    return is_any;
}

/* Nothing where the files do not say how sure costs are. */
static void print_intervals(const struct study *study, FILE *stream)
{
    for (size_t i = 0; i < study->point_count; i++) {
        const struct study_point *point = &study->points[i];
        if (point->has_interval) {
            fprintf(stream, "%s%s among %u: %.1f to %.1f images/s\n",
                    i == 0 ? "\nNine times of ten, as far as costs were measured:\n" : "",
                    study_design_text(point->design).text, point->workers, point->images_per_s_low,
                    point->images_per_s_high);
        }
    }
}

/* Nothing where the costs do not say it. */
static void print_starts(const struct study *study, FILE *stream)
{
    for (size_t i = 0; i < study->point_count; i++) {
        const struct study_point *point = &study->points[i];
        if (point->start_s > 0) {
            fprintf(stream, "%s%s among %u: %.3g s\n",
                    i == 0 ? "\nUntil the first step, from the command on:\n" : "",
                    study_design_text(point->design).text, point->workers, point->start_s);
        }
    }
}

/* Of images/s, against the same point as things are. */
static double change_percent(const struct study *study, const struct study_point *point)
{
    size_t index = (size_t)(point - study->points) % study->point_count;
    double before = study->points[index].made.images_per_s;
    return before > 0 ? 100 * (point->made.images_per_s / before - 1) : 0;
}

void study_print(const struct study *study, FILE *stream)
{
    study_print_basis(study, stream);
    fprintf(stream, "%-8s %7s%s %7s %10s %8s %6s %9s %9s %9s %9s %9s %9s%s  %-18s %s\n", "mode",
            "workers", study_batch_heading(study), "servers", "images/s", "speed-up", "eff. %",
            "step ms", "compute", "delays", "optimizer", "waiting", "staleness",
            study_target_heading(study), "limiter", "busiest link, MB a step");
    for (size_t i = 0; i < study->point_count; i++) {
        const struct study_point *point = &study->points[i];
        const struct prediction *made = &point->made;
        char limiter[32], target[STUDY_TARGET_BYTES], batch[STUDY_BATCH_BYTES], servers[16] = "-";
        study_target_cell(study, point, target);
        study_batch_cell(study, point->workers, batch);
        snprintf(limiter, sizeof(limiter), "%s (-%.1f %%)", point->limiter,
                 100 * point->limiter_gain);
        if (point->servers > 0) {
            snprintf(servers, sizeof(servers), "%u", point->servers);
        }
        if (point->is_too_large) {
            fprintf(stream, "%-8s %7u%s %7s  %s\n", mode_text(point->design.mode).text,
                    point->workers, batch, servers, STUDY_TOO_LARGE);
            continue;
        }
        fprintf(stream,
                "%-8s %7u%s %7s %10.1f %8.2f %6.1f %9.3f %9.3f %9.3f %9.3f %9.3f %9.3f%s  %-18s "
                "%s, %.3f (%.0f %% busy)\n",
                mode_text(point->design.mode).text, point->workers, batch, servers,
                made->images_per_s, point->speed_up, 100 * point->efficiency, 1e3 * made->step_s,
                1e3 * made->compute_s, 1e3 * made->delay_s, 1e3 * made->optimizer_s,
                1e3 * made->wait_s, staleness_mean(&made->staleness), target, limiter,
                link_name(study, point), made->busiest_bytes / 1e6, 100 * made->busiest_use);
    }
    bool has_late = print_late(study, stream), has_reduced = print_reduced(study, stream);
    if (has_late || has_reduced) {
        fputc('\n', stream);
    }
    study_links_print(study, stream);
    print_starts(study, stream);
    print_intervals(study, stream);
    study_target_print_unknown(study, stream);
    fprintf(stream, "\nThe limiter is the cost without which a step would be shortest, and by how "
                    "much.\n");
}

void study_print_what_ifs(const struct study *study, FILE *stream)
{
    static const char unchanged[] = "unchanged";
    int width = sizeof(unchanged) - 1;
    for (size_t i = 0; i < study->what_if_count; i++) {
        int size = (int)strlen(study->what_ifs[i].text);
        width = size > width ? size : width;
    }
    fprintf(stream, "\n%-*s  %-8s %7s %7s %10s %8s %6s %9s %9s %9s  %s\n", width, "what if", "mode",
            "workers", "servers", "images/s", "change", "eff. %", "step ms", "compute", "waiting",
            "limiter");
    for (size_t i = 0; i < study->point_count; i++) {
        for (size_t change = 0; change <= study->what_if_count; change++) {
            const struct study_point *point = &study->points[change * study->point_count + i];
            const struct prediction *made = &point->made;
            char servers[16] = "-", difference[24] = "";
            if (point->servers > 0) {
                snprintf(servers, sizeof(servers), "%u", point->servers);
            }
            if (point->is_too_large) {
                fprintf(stream, "%-*s  %-8s %7u %7s  %s\n", width,
                        change > 0 ? point->what_if->text : unchanged,
                        mode_text(point->design.mode).text, point->workers, servers,
                        STUDY_TOO_LARGE);
                continue;
            }
            if (change > 0) {
                snprintf(difference, sizeof(difference), "%+.1f %%", change_percent(study, point));
            }
            fprintf(stream,
                    "%-*s  %-8s %7u %7s %10.1f %8s %6.1f %9.3f %9.3f %9.3f  %s (-%.1f %%)\n", width,
                    change > 0 ? point->what_if->text : unchanged,
                    mode_text(point->design.mode).text, point->workers, servers, made->images_per_s,
                    difference, 100 * point->efficiency, 1e3 * made->step_s, 1e3 * made->compute_s,
                    1e3 * made->wait_s, point->limiter, 100 * point->limiter_gain);
        }
    }
    fprintf(stream, "\nA factor changes the value that the files have: of times 0.5x is quicker, "
                    "of bandwidths 2x is.\n");
    for (size_t i = 0; i < study->what_if_count; i++) {
        what_if_print_bandwidths(&study->what_ifs[i], stream);
    }
}

void study_print_left_out(const struct study *study, FILE *stream)
{
    char origin[ORIGIN_BYTES];
    format_origin(study, origin);
    fprintf(stream, "\nWhat the model leaves out:\n- %s\n- %s\n", origin, cores_gap(study));
    if (study_has_lines(study)) {
        fprintf(stream, "- %s\n", batch_gap);
    }
    if (missing_costs(study) != NULL) {
        fprintf(stream, "- %s\n", missing_costs(study));
    }
    for (size_t i = 0; i < LEFT_OUT_COUNT; i++) {
        fprintf(stream, "- %s\n", left_out[i]);
    }
}

/* As in summary.json. */
static json_t *staleness_json(const struct staleness *staleness)
{
    json_t *counts = json_array();
    for (uint32_t i = 0; counts != NULL && i < staleness_bins(staleness); i++) {
        json_array_append_new(counts, json_integer((json_int_t)staleness->counts[i]));
    }
    return json_pack("{s:f, s:I, s:o}", "mean", staleness_mean(staleness), "max",
                     (json_int_t)staleness->max, "histogram", counts);
}

static json_t *point_json(const struct study *study, const struct study_point *point)
{
    const struct prediction *made = &point->made;
    return json_pack(
        "{s:s, s:I, s:I, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:s, s:f, "
        "s:f, s:s, s:f, s:f, s:o, s:I, s:f, s:b, s:f, s:I, s:I}",
        "mode", mode_text(point->design.mode).text, "workers", (json_int_t)point->workers,
        "servers", (json_int_t)point->servers, "images_per_s", made->images_per_s, "speed_up",
        point->speed_up, "efficiency_percent", 100 * point->efficiency, "step_ms",
        1e3 * made->step_s, "compute_ms", 1e3 * made->compute_s, "delays_ms", 1e3 * made->delay_s,
        "optimizer_ms", 1e3 * made->optimizer_s, "waiting_ms", 1e3 * made->wait_s,
        "server_busy_percent", 100 * made->server_busy, "server_wait_ms", 1e3 * made->server_wait_s,
        "busiest_link", link_name(study, point), "busiest_link_bytes_per_step", made->busiest_bytes,
        "busiest_link_busy_percent", 100 * made->busiest_use, "limiter", point->limiter,
        "limiter_gain_percent", 100 * point->limiter_gain, "limiter_error_percent",
        100 * point->limiter_error, "staleness", staleness_json(&made->staleness), "lead_steps_max",
        (json_int_t)made->lead_max, "late_percent", 100 * made->late, "is_reduced",
        made->is_reduced, "reduction_error_percent", 100 * made->reduction_error,
        "simulated_workers", (json_int_t)made->simulated, "simulated_servers",
        (json_int_t)made->simulated_servers);
}

static json_t *too_large_json(const struct study_point *point)
{
    return json_pack("{s:s, s:I, s:I, s:s}", "mode", mode_text(point->design.mode).text, "workers",
                     (json_int_t)point->workers, "servers", (json_int_t)point->servers, "error",
                     STUDY_TOO_LARGE);
}

json_t *study_points_json(const struct study *study, const struct what_if *what_if)
{
    json_t *points = json_array();
    size_t total = study->point_count * (1 + study->what_if_count);
    for (size_t i = 0; i < total && points != NULL; i++) {
        const struct study_point *point = &study->points[i];
        if (point->what_if != what_if) {
            continue;
        }
        if (point->is_too_large) {
            json_array_append_new(points, too_large_json(point));
            continue;
        }
        json_t *object = point_json(study, point);
        json_object_set_new(object, "links", study_links_json(study, point));
        study_target_add_json(study, point, object);
        study_batch_add_json(study, point->workers, object);
        if (study->costs->launch.is_given) {
            json_object_set_new(object, "start_s", json_real(point->start_s));
        }
        if (point->has_interval) {
            json_object_set_new(object, "images_per_s_low", json_real(point->images_per_s_low));
            json_object_set_new(object, "images_per_s_high", json_real(point->images_per_s_high));
        }
        if (what_if != NULL) {
            json_object_set_new(object, "change_percent", json_real(change_percent(study, point)));
        }
        if (json_array_append_new(points, object) != 0) {
            json_decref(points);
            return NULL;
        }
    }
    return points;
}

static json_t *left_out_json(const struct study *study)
{
    json_t *gaps = json_array();
    char origin[ORIGIN_BYTES];
    format_origin(study, origin);
    json_array_append_new(gaps, json_string(origin));
    json_array_append_new(gaps, json_string(cores_gap(study)));
    if (study_has_lines(study)) {
        json_array_append_new(gaps, json_string(batch_gap));
    }
    if (missing_costs(study) != NULL) {
        json_array_append_new(gaps, json_string(missing_costs(study)));
    }
    for (size_t i = 0; i < LEFT_OUT_COUNT; i++) {
        json_array_append_new(gaps, json_string(left_out[i]));
    }
    return gaps;
}

json_t *study_json(const struct study *study)
{
    char codec[CODEC_TEXT_BYTES];
    json_t *what_ifs = json_array();
    for (size_t i = 0; i < study->what_if_count; i++) {
        const struct what_if *what_if = &study->what_ifs[i];
        json_array_append_new(what_ifs, json_pack("{s:s, s:o}", "what_if", what_if->text, "points",
                                                  study_points_json(study, what_if)));
    }
    // Without memory one of the parts is NULL, and then the whole is.
    codec_text(&study->job.compress, codec);
    json_t *object = json_pack(
        "{s:s, s:s, s:s, s:f, s:I, s:I, s:o, s:o, s:o}", "costs", study->costs_file, "network",
        study->network_file, "compress", codec, "bucket_mb", study->job.bucket_mb, "seed",
        (json_int_t)study->job.seed, "steps", (json_int_t)study->counted, "points",
        study_points_json(study, NULL), "what_ifs", what_ifs, "left_out", left_out_json(study));
    study_batches_add_json(study, object);
    return object;
}
