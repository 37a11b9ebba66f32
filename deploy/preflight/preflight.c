/* Tries hosts, clocks, data, devices and connections before a job starts. */
#include "deploy/preflight/preflight.h"

#include "common/base/log.h"
#include "common/job/job_text.h"
#include "deploy/hosts/placement.h"
#include "deploy/preflight/host_check.h"
#include "deploy/sweep/grid.h"
#include "deploy/system/programs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LINE_BYTES 4096 // of what a worker that was tried prints

void preflight_begin(struct preflight *preflight, struct launcher *launcher,
                     const struct launcher_options *options,
                     const struct host_options *host_options)
{
    *preflight =
        (struct preflight){.launcher = launcher, .mirror = memory_said_mirror(options->mirror)};
    preflight->status = launcher_open(launcher, options, host_options, &preflight->findings);
    if (preflight->status == STATUS_UNREACHABLE) {
        preflight->status = STATUS_OK; // the findings say so
    }
}

/* Returns whether a job's data, model and device still need a probe. Remembers them as tried. */
static bool take_turn(struct preflight *preflight, const struct job *job)
{
    char text[JOB_TEXT_BYTES];
    if (grid_describe_probe(job, text) != STATUS_OK) {
        return true;
    }
    for (size_t i = 0; i < preflight->tried_count; i++) {
        if (strcmp(preflight->tried[i], text) == 0) {
            return false;
        }
    }
    char **tried =
        realloc(preflight->tried, (preflight->tried_count + 1) * sizeof(*preflight->tried));
    char *copy = tried != NULL ? strdup(text) : NULL;
    preflight->tried = tried != NULL ? tried : preflight->tried;
    if (copy != NULL) {
        preflight->tried[preflight->tried_count++] = copy;
    }
    return true; // if memory is short, equal jobs are probed again
}

/* On this host alone, with all processes on it. */
static enum status try_here(struct preflight *preflight, const struct programs *programs,
                            const struct job *job)
{
    char line[LINE_BYTES] = "";
    enum status status = programs_try(programs, job, line, sizeof(line));
    for (size_t i = 0; i < preflight->launcher->hosts.count && status == STATUS_OK; i++) {
        memory_said_take(line, &preflight->memory[i]);
    }
    return status;
}

static enum status try_job(struct preflight *preflight, const struct job *job)
{
    struct launcher *launcher = preflight->launcher;
    char error[OPTION_ERROR_BYTES];
    struct placement placement;
    bool is_first = take_turn(preflight, job), tries_data = is_first && !job_is_external(job);
    enum status status =
        placement_make(&launcher->hosts, job, launcher->coordinator, &placement, error);
    if (status != STATUS_OK) {
        log_error("%s", error);
        return status;
    }
    if (launcher->has_others) {
        const struct host_check_wish wish = {job, &placement, is_first, preflight->program};
        return launcher->host_options->preflight
                   ? host_check_run(launcher, &wish, &preflight->findings, preflight->memory)
                   : STATUS_OK;
    }
    return tries_data && preflight->findings.count == 0
               ? try_here(preflight, &launcher->crew.links[0].facts.programs, job)
               : STATUS_OK;
}

void preflight_try(struct preflight *preflight, const struct job *job)
{
    if (preflight->status == STATUS_OK) {
        preflight->status = try_job(preflight, job);
    }
}

void preflight_say_memory(const struct preflight *preflight, const struct job *job)
{
    const struct launcher *launcher = preflight->launcher;
    char text[MEMORY_SAID_BYTES], error[OPTION_ERROR_BYTES];
    struct placement placement;
    if (placement_make(&launcher->hosts, job, launcher->coordinator, &placement, error) ==
        STATUS_OK) {
        const struct memory_scene scene = {job, &launcher->hosts, &placement, preflight->mirror,
                                           preflight->memory};
        memory_said_write(&scene, text);
        fputs(text, stdout);
        fflush(stdout);
    }
}

static void forget_tried(struct preflight *preflight)
{
    for (size_t i = 0; i < preflight->tried_count; i++) {
        free(preflight->tried[i]);
    }
    free(preflight->tried);
    preflight->tried = NULL;
    preflight->tried_count = 0;
}

/* Sorts findings in the order of the hosts. */
static void sort(struct findings *findings, const struct hosts *hosts)
{
    for (size_t i = 1; i < findings->count; i++) {
        const struct finding row = findings->list[i];
        size_t place = hosts_find(hosts, row.host), at = i;
        for (; at > 0 && hosts_find(hosts, findings->list[at - 1].host) > place; at--) {
            findings->list[at] = findings->list[at - 1];
        }
        findings->list[at] = row;
    }
}

enum status preflight_end(struct preflight *preflight)
{
    struct findings *findings = &preflight->findings;
    forget_tried(preflight);
    if (preflight->status == STATUS_OK && preflight->launcher->crew.interrupts > 0) {
        preflight->status = STATUS_INTERRUPTED;
    }
    if (preflight->status == STATUS_INTERRUPTED) {
        log_warn("interrupted before the job began: nothing was started or written");
    }
    if (preflight->status != STATUS_OK || findings->count == 0) {
        return preflight->status;
    }
    if (preflight->launcher->has_others) {
        sort(findings, &preflight->launcher->hosts);
        findings_join(findings);
        size_t count = findings->count + findings->left_out;
        fprintf(stderr, "preflight: %zu problem%s; nothing was started\n\n", count,
                count == 1 ? "" : "s");
        findings_print(findings, stderr);
    } else {
        log_error("%s; %s", findings->list[0].problem, findings->list[0].advice);
    }
    return findings->has_misuse ? STATUS_MISMATCH : STATUS_INVALID;
}
