/* Predicts points without the processes that faults take. */
#include "deploy/predict/faults/fault_study.h"

#include "common/base/log.h"
#include "deploy/predict/basis/fields.h"

#include <string.h>

/* A point, with the same job in other processes. */
struct asked {
    const struct study *study;
    const struct study_point *point;
};

/* Why a job of such a point fails when it loses a process (docs/LOSSES.md); NULL: it goes on. */
static const char *find_obstacle(const struct study *study, const struct mode *mode)
{
    const struct job *job = &study->job;
    return job->backup > 0 && mode->kind == MODE_PS_SYNC                 ? "--backup"
           : job->sync_every > 1                                         ? "--sync-every"
           : job->compress.kind != CODEC_NONE && mode->kind == MODE_RING ? "--compress in ring"
                                                                         : NULL;
}

static struct fault_job job_of(const struct fault_study *faults, const struct study_point *point)
{
    bool is_sync = point->design.mode.kind == MODE_PS_SYNC;
    return (struct fault_job){.mode = point->design.mode,
                              .workers = point->workers,
                              .servers = point->design.servers,
                              .backup = is_sync ? faults->study->job.backup : 0,
                              .compresses = faults->study->job.compress.kind != CODEC_NONE,
                              .steps = faults->steps};
}

static enum status check_point(const struct fault_study *faults, const struct study_point *point)
{
    char why[256];
    const struct fault_job job = job_of(faults, point);
    const char *obstacle = find_obstacle(faults->study, &point->design.mode);
    if (fault_course_check(&job, &faults->faults, why, sizeof(why)) != STATUS_OK) {
        log_error("--fault %s (%s among %u)", why, study_design_text(point->design).text,
                  point->workers);
        return STATUS_INVALID;
    }
    if (faults_next_kill(&faults->faults) != NULL && obstacle != NULL) {
        log_error("--fault: a job with %s fails when it loses a process; leave one of them out",
                  obstacle);
        return STATUS_INVALID;
    }
    return STATUS_OK;
}

enum status fault_study_take(const struct study *study, const char *faults, uint64_t steps,
                             struct fault_study *ret_study)
{
    char why[256];
    enum status status = faults_parse(faults, &ret_study->faults, why, sizeof(why));
    if (status != STATUS_OK) {
        log_error("--fault: %s", why);
        return STATUS_INVALID;
    }
    ret_study->study = study;
    ret_study->steps = steps;
    for (size_t i = 0; i < study->point_count && status == STATUS_OK; i++) {
        status = check_point(ret_study, &study->points[i]);
    }
    return status;
}

/* Appends a rule that has a rank take several times as long. False if there is no room. */
static bool slow_down(struct job *job, uint32_t rank, uint32_t factor)
{
    size_t used = strcmp(job->straggler, "none") == 0 ? 0 : strlen(job->straggler);
    size_t room = sizeof(job->straggler) - used;
    int size = snprintf(job->straggler + used, room, "%srank=%u,factor=%u", used > 0 ? ";" : "",
                        rank, factor);
    return size > 0 && (size_t)size < room;
}

/* The ranks of lost workers are carried by the others: those that share a process with another take
 * turns. Where workers wait for each other, one such process is what all wait for. */
static bool share_ranks(uint32_t lost, struct job *job)
{
    uint32_t processes = job->workers - lost, each = job->workers / processes,
             more = job->workers % processes;
    bool fits = true;
    if (lost == 0) {
        return true;
    }
    if (!mode_updates_on_push(job->mode.kind)) {
        return slow_down(job, 0, each + (more > 0));
    }
    for (uint32_t rank = 0; rank < job->workers && fits; rank++) {
        uint32_t factor = rank < more * (each + 1) ? each + 1 : each;
        fits = factor == 1 || slow_down(job, rank, factor);
    }
    return fits;
}

static enum status step_without(void *context, uint32_t lost_workers, uint32_t lost_servers,
                                double *ret_step_s)
{
    const struct asked *asked = context;
    struct basis *basis = NULL;
    struct prediction made;
    if (lost_workers == 0 && lost_servers == 0) {
        *ret_step_s = asked->point->made.step_s;
        return STATUS_OK;
    }
    enum status status = study_make_basis(asked->study, asked->point, &basis);
    if (status != STATUS_OK) {
        return status;
    }
    basis->job.servers -= lost_servers;
    if (!share_ranks(lost_workers, &basis->job)) {
        log_error("--fault: too many ranks of %s among %u would share a process",
                  study_design_text(asked->point->design).text, asked->point->workers);
        status = STATUS_INVALID;
    }
    if (status == STATUS_OK) {
        status = study_predict(asked->study, basis, &made);
        *ret_step_s = status == STATUS_OK ? made.step_s : 0;
    }
    basis_destroy(basis);
    return status;
}

enum status fault_study_make(struct fault_study *faults)
{
    enum status status = STATUS_OK;
    for (size_t i = 0; i < faults->study->point_count && status == STATUS_OK; i++) {
        struct asked asked = {faults->study, &faults->study->points[i]};
        if (asked.point->is_too_large) {
            continue;
        }
        const struct fault_job job = job_of(faults, asked.point);
        const struct fault_steps steps = {step_without, &asked};
        status = fault_course_make(&job, &faults->faults, &faults->study->costs->recovery, &steps,
                                   &faults->courses[i]);
    }
    return status;
}

/* Of all images of the job, each of which counts once. */
static double images_per_s(const struct fault_study *faults, size_t index, double seconds)
{
    const struct study_point *point = &faults->study->points[index];
    double images = (double)faults->steps * point->made.images_per_s * point->made.step_s;
    return seconds > 0 ? images / seconds : 0;
}

static void print_assumed(const struct recovery *recovery, FILE *stream)
{
    const struct {
        const char *name, *what;
        double seconds;
        bool is_given;
    } parts[] = {
        {"notice", "a loss is noticed", recovery->notice_s, recovery->has_notice},
        {"go-on", "processes that are left go on", recovery->go_on_s, recovery->has_go_on},
        {"join", "they go on with a worker that comes", recovery->join_s, recovery->has_join},
        {"copy-every", "a copy is made", recovery->copy_every_s, recovery->has_copy_every},
    };
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        char text[QUANTITY_BYTES];
        quantity_format(parts[i].seconds, QUANTITY_TIME, text);
        fprintf(stream, "%s %s %s %s.\n",
                parts[i].is_given ? "As given:" : "ASSUMED:", parts[i].what,
                strcmp(parts[i].name, "copy-every") == 0 ? "every" : "after", text);
    }
}

void fault_study_print(const struct fault_study *faults, FILE *stream)
{
    char text[FAULTS_MAX * FAULT_TEXT_BYTES];
    faults_format(&faults->faults, text, sizeof(text));
    fprintf(stream,
            "\nWith --fault %s, in a job of %llu steps:\n%-8s %7s %7s %10s %10s %9s %9s %9s %9s "
            "%9s %9s %9s\n",
            text, (unsigned long long)faults->steps, "mode", "workers", "servers", "images/s",
            "with", "job s", "lost s", "notice", "go on", "again", "stopped", "slower");
    for (size_t i = 0; i < faults->study->point_count; i++) {
        const struct study_point *point = &faults->study->points[i];
        const struct fault_course *course = &faults->courses[i];
        char servers[16] = "-";
        if (point->is_too_large) {
            continue;
        }
        if (point->servers > 0) {
            snprintf(servers, sizeof(servers), "%u", point->servers);
        }
        fprintf(stream, "%-8s %7u %7s %10.1f %10.1f %9.3f %9.3f %9.3f %9.3f %9.3f %9.3f %9.3f\n",
                mode_text(point->design.mode).text, point->workers, servers,
                point->made.images_per_s, images_per_s(faults, i, course->all_s), course->all_s,
                course->all_s - course->plain_s, course->notice_s, course->go_on_s, course->again_s,
                course->stopped_s, course->slower_s);
    }
    fprintf(stream, "\n");
    print_assumed(&faults->study->costs->recovery, stream);
    fprintf(stream, "Who carries two ranks computes for both, and sends messages for one.\n");
}

json_t *fault_study_json(const struct fault_study *faults)
{
    json_t *points = json_array();
    char text[FAULTS_MAX * FAULT_TEXT_BYTES];
    const struct recovery *recovery = &faults->study->costs->recovery;
    faults_format(&faults->faults, text, sizeof(text));
    for (size_t i = 0; i < faults->study->point_count && points != NULL; i++) {
        const struct study_point *point = &faults->study->points[i];
        const struct fault_course *course = &faults->courses[i];
        if (point->is_too_large) {
            continue;
        }
        json_array_append_new(
            points, json_pack("{s:s, s:I, s:I, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f}",
                              "mode", mode_text(point->design.mode).text, "workers",
                              (json_int_t)point->workers, "servers", (json_int_t)point->servers,
                              "images_per_s", point->made.images_per_s, "images_per_s_with_faults",
                              images_per_s(faults, i, course->all_s), "job_s", course->plain_s,
                              "job_s_with_faults", course->all_s, "notice_s", course->notice_s,
                              "go_on_s", course->go_on_s, "steps_again", course->steps_again,
                              "steps_again_s", course->again_s, "stopped_s", course->stopped_s,
                              "slower_s", course->slower_s));
    }
    return json_pack("{s:s, s:I, s:o, s:b, s:b, s:b, s:b}", "faults", text, "job_steps",
                     (json_int_t)faults->steps, "points", points, "is_notice_assumed",
                     !recovery->has_notice, "is_go_on_assumed", !recovery->has_go_on,
                     "is_join_assumed", !recovery->has_join, "is_copy_every_assumed",
                     !recovery->has_copy_every);
}
