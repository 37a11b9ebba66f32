/* Opens a run folder and its timeline, and checks whether costs can be read from them. */
#include "deploy/calibrate/calibration_run.h"

#include "common/base/log.h"
#include "common/job/job.h"
#include "common/job/mode.h"
#include "deploy/calibrate/calibration_launch.h"
#include "deploy/trace/timeline_merge.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void calibration_run_option(const struct calibration_run *run, const char *name, char *ret_text,
                            size_t text_size)
{
    const json_t *value = json_object_get(json_object_get(run->folder.job, "options"), name);
    ret_text[0] = '\0';
    if (json_is_string(value)) {
        snprintf(ret_text, text_size, "%s", json_string_value(value));
    } else if (json_is_number(value)) {
        snprintf(ret_text, text_size, "%.9g", json_number_value(value));
    }
}

enum status calibration_run_job(const struct calibration_run *run, const char *const *names,
                                size_t count, struct job *ret_job,
                                char ret_error[OPTION_ERROR_BYTES])
{
    char value[OPTION_VALUE_BYTES];
    const struct option_set set = job_option_set(ret_job);
    options_reset(&set);
    for (size_t i = 0; i < count; i++) {
        calibration_run_option(run, names[i], value, sizeof(value));
        bool is_there = value[0] != '\0'; // a run of before may lack some
        if (is_there && options_set_text(&set, 1, names[i], value, ret_error, OPTION_ERROR_BYTES) !=
                            STATUS_OK) {
            return STATUS_INVALID;
        }
    }
    return STATUS_OK;
}

bool calibration_run_has_one_machine(const struct calibration_run *run)
{
    for (uint32_t i = 1; i < run->host_count; i++) {
        if (run->hosts[i].machine == 0 || run->hosts[i].machine != run->hosts[0].machine) {
            return false;
        }
    }
    return true;
}

bool calibration_run_has_codes(const struct calibration_run *run)
{
    return run->compress[0] != '\0' && strcmp(run->compress, "none") != 0;
}

double calibration_run_coded_share(const struct calibration_run *run)
{
    struct codec codec = {.kind = CODEC_NONE};
    char why[OPTION_ERROR_BYTES];
    if (run->parameters == 0 || codec_parse(run->compress, &codec, why, sizeof(why)) != STATUS_OK) {
        return 1;
    }
    return (double)codec_bytes(&codec, run->parameters) / (4.0 * (double)run->parameters);
}

bool calibration_run_moves_values(const struct calibration_run *run)
{
    return run->transport[0] != '\0' && strcmp(run->transport, "none") != 0;
}

bool calibration_run_lends(const struct calibration_run *run)
{
    return strcmp(run->transport, "shm") == 0;
}

bool calibration_refuses(const char *option, const char *value)
{
    static const struct {
        const char *option, *value; // with which steps are plain ones
    } plain[] = {{"backup", "0"}, {"sync-every", "1"}, {"switch", "none"}, {"fault", "none"}};
    for (size_t i = 0; i < sizeof(plain) / sizeof(plain[0]); i++) {
        if (strcmp(option, plain[i].option) == 0) {
            return value[0] != '\0' && strcmp(value, plain[i].value) != 0;
        }
    }
    // "auto" tries several sizes.
    return strcmp(option, "bucket-mb") == 0 && strtod(value, NULL) <= 0;
}

static enum status check_options(struct calibration_run *run)
{
    const char *name = NULL;
    json_t *value = NULL;
    char text[256];
    run->is_apart = false;
    json_object_foreach(json_object_get(run->folder.job, "options"), name, value)
    {
        calibration_run_option(run, name, text, sizeof(text));
        bool is_refused = calibration_refuses(name, text);
        if (is_refused && strcmp(name, "sync-every") == 0) {
            double steps = run_folder_number(&run->folder, "steps");
            run->is_apart = run->workers > 1 && steps > 0 && strtod(text, NULL) >= steps;
            is_refused = !run->is_apart;
        }
        if (is_refused) {
            log_error("%s was run with --%s %.60s, and does not show what plain steps cost; "
                      "calibrate from a run without it",
                      run->folder.path, name, text);
            return STATUS_INVALID;
        }
    }
    calibration_run_option(run, "compress", run->compress, sizeof(run->compress));
    run_folder_value(&run->folder, "mode", text, sizeof(text));
    if (calibration_run_has_codes(run) && strcmp(text, "ps-sync") != 0) {
        log_error("%s was run with --compress %s in mode %s; what codes take is calibrated from a "
                  "run in ps-sync, beside one without them",
                  run->folder.path, run->compress, text);
        return STATUS_INVALID;
    }
    calibration_run_option(run, "processes", text, sizeof(text));
    if (strtoul(text, NULL, 10) != 0 && strtoul(text, NULL, 10) != run->workers) {
        log_error("%s was run with --processes %s: its processes compute for several workers; "
                  "calibrate from a run with one process for each worker",
                  run->folder.path, text);
        return STATUS_INVALID;
    }
    return STATUS_OK;
}

static bool is_count(double value)
{
    return value >= 1 && value <= UINT32_MAX && floor(value) == value;
}

/* What the summary says, in numbers. */
static enum status take_summary(struct calibration_run *run)
{
    char mode_name[MODE_TEXT_BYTES], model[JOB_NAME_BYTES];
    struct mode mode;
    double batch = run_folder_number(&run->folder, "batch_per_worker");
    double workers = run_folder_number(&run->folder, "workers");
    double parameters = run_folder_number(&run->folder, "parameters");
    const char *path = run->folder.path;
    run_folder_value(&run->folder, "mode", mode_name, sizeof(mode_name));
    if (!run_folder_is_completed(&run->folder)) {
        char outcome[64], *reason = run_folder_text(&run->folder, "reason");
        run_folder_outcome(&run->folder, outcome, sizeof(outcome));
        log_error("%s cannot be calibrated from: the run %s%s%s", path,
                  outcome[0] != '\0' ? outcome : "has no outcome in its summary.json",
                  reason != NULL && reason[0] != '\0' ? ": " : "", reason != NULL ? reason : "");
        free(reason);
        return STATUS_INVALID;
    }
    if (run_folder_number(&run->folder, "workers_lost") > 0 ||
        json_array_size(json_object_get(run->folder.details, "recoveries")) > 0) {
        log_error("%s has lost processes, or taken new ones in: some of its steps were made with "
                  "others than the rest; calibrate from a run that has not",
                  path);
        return STATUS_INVALID;
    }
    run_folder_value(&run->folder, "model", model, sizeof(model));
    if (strncmp(model, JOB_EXTERNAL_PREFIX, strlen(JOB_EXTERNAL_PREFIX)) == 0) {
        log_error("%s is of a program of one's own (%s), whose layers Ringside does not see; "
                  "calibrate from a run of one of its models, or write the costs by hand "
                  "(docs/PREDICT-FILES.md)",
                  path, model);
        return STATUS_INVALID;
    }
    if (mode_parse(mode_name, &mode) != STATUS_OK || mode_updates_on_push(mode.kind)) {
        log_error("%s is of mode %s; calibrate from runs in local, ring or ps-sync, whose workers "
                  "are in step",
                  path, mode_name);
        return STATUS_INVALID;
    }
    if (!is_count(batch) || !is_count(workers) || !is_count(parameters)) {
        log_error("%s has %g workers with %g images of each step and %g parameters; calibrate from "
                  "a run in which all workers have the same whole number of images",
                  path, workers, batch, parameters);
        return STATUS_INVALID;
    }
    run_folder_value(&run->folder, "transport", run->transport, sizeof(run->transport));
    run->batch = (uint32_t)batch;
    run->workers = (uint32_t)workers;
    run->parameters = (uint64_t)parameters;
    return STATUS_OK;
}

static enum status take_job(struct calibration_run *run)
{
    char text[64];
    if (run->folder.job == NULL) {
        log_error("%s has no job.json, which says what the run was", run->folder.path);
        return STATUS_INVALID;
    }
    calibration_run_option(run, "bucket-mb", text, sizeof(text));
    run->bucket_mb = strtod(text, NULL); // "auto" is 0
    calibration_run_option(run, "threads", text, sizeof(text));
    run->threads = (uint32_t)strtoul(text, NULL, 10); // likewise
    const char *security = json_string_value(json_object_get(run->folder.job, "security"));
    if (security != NULL && conditions_know_security(security) &&
        strcmp(run->transport, "tcp") == 0) {
        snprintf(run->security, sizeof(run->security), "%s", security);
    }
    return check_options(run);
}

static struct calibration_host *find_host(struct calibration_run *run, const char *name)
{
    for (uint32_t i = 0; i < run->host_count; i++) {
        if (strcmp(run->hosts[i].name, name) == 0) {
            return &run->hosts[i];
        }
    }
    if (run->host_count == CALIBRATION_HOSTS_MAX) {
        return NULL;
    }
    struct calibration_host *host = &run->hosts[run->host_count++];
    snprintf(host->name, sizeof(host->name), "%s", name);
    return host;
}

/* A host has the workers whose threads compute there, and the servers that hold a shard. */
static enum status list_hosts(struct calibration_run *run, const struct timeline *timeline)
{
    uint32_t process = UINT32_MAX; // whose shard was counted last
    for (size_t i = 0; i < timeline->thread_count; i++) {
        const struct timeline_thread *thread = &timeline->threads[i];
        bool is_shard = thread->thread == TRACE_SHARD && thread->process != process;
        if (thread->thread != TRACE_COMPUTE && !is_shard) {
            continue;
        }
        struct calibration_host *host = find_host(run, timeline->processes[thread->process].host);
        if (host == NULL) {
            log_error("%s has more than %d hosts; calibrate from a run on fewer", run->folder.path,
                      CALIBRATION_HOSTS_MAX);
            return STATUS_INVALID;
        }
        uint32_t cores = timeline->processes[thread->process].cores;
        host->cores = cores > host->cores ? cores : host->cores;
        host->machine = timeline->processes[thread->process].machine;
        host->workers += !is_shard;
        host->servers += is_shard;
        process = is_shard ? thread->process : process;
    }
    return STATUS_OK;
}

/* Whether the first hop of each all-reduce brings values that are added up. */
static bool adds_in_first_hop(const struct calibration_run *run)
{
    const char *algorithm = json_string_value(json_object_get(run->folder.details, "all_reduce"));
    return run->workers == 2 || algorithm == NULL || strstr(algorithm, "halving") == NULL;
}

static enum status observe(struct calibration_run *run)
{
    char path[TIMELINE_PATH_BYTES];
    struct timeline timeline = {0};
    const struct observation_options options = {adds_in_first_hop(run), run->threads == 1,
                                                calibration_run_lends(run)};
    enum status status = timeline_find(run->folder.path, path);
    if (status == STATUS_OK) {
        status = timeline_read(path, &timeline);
    }
    if (status != STATUS_OK) {
        return status;
    }
    status = observation_make(&timeline, &options, &run->observation);
    if (status == STATUS_END_OF_DATA) {
        log_error("%s has no worker that computes in its timeline; calibrate from a run with a "
                  "timeline of all its processes (--timeline)",
                  run->folder.path);
        status = STATUS_INVALID;
    } else if (status == STATUS_INVALID) {
        log_error("%s has too few steps: the first %d and the last are not counted, nor are those "
                  "before an evaluation, and at least 2 have to be left; run more (--steps)",
                  run->folder.path, OBSERVATION_WARM_STEPS);
    }
    if (status == STATUS_OK) {
        status = list_hosts(run, &timeline);
    }
    timeline_finish(&timeline);
    return status;
}

enum status calibration_run_read(const char *path, struct calibration_run *ret_run)
{
    enum status status = run_folder_open(path, &ret_run->folder);
    if (status == STATUS_OK) {
        status = take_summary(ret_run);
    }
    if (status == STATUS_OK) {
        status = take_job(ret_run);
    }
    if (status == STATUS_OK) {
        status = observe(ret_run);
        calibration_launch_read(ret_run);
    }
    if (status != STATUS_OK) {
        calibration_run_finish(ret_run);
        return status;
    }
    snprintf(ret_run->name, sizeof(ret_run->name), "%.80s (%.60s)", path, ret_run->folder.label);
    return STATUS_OK;
}

void calibration_run_tell(const struct calibration_run *run, struct conditions *conditions)
{
    calibration_run_option(run, "model", conditions->model, sizeof(conditions->model));
    if (conditions_know_transport(run->transport)) {
        snprintf(conditions->transport, sizeof(conditions->transport), "%s", run->transport);
    }
    if (run->security[0] != '\0') {
        snprintf(conditions->security, sizeof(conditions->security), "%s", run->security);
    }
    for (uint32_t i = 0; i < run->host_count; i++) {
        conditions_add_host(conditions, run->hosts[i].name);
    }
}

void calibration_run_finish(struct calibration_run *run)
{
    observation_finish(&run->observation);
    run_folder_close(&run->folder);
}
