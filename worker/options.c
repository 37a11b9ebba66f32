/* The option table of `worker`. */
#include "worker/options.h"

#include "common/job/job.h"
#include "common/job/job_values.h"
#include "common/options/log_level.h"
#include "common/transport/port_range.h"
#include "worker/data/preview/sheet.h"
#include "worker/link/rank.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIELD(kind, field) OPTION_FIELD(kind, worker_options, field)

static const struct option rows[] = {
    {.name = "server",
     FIELD(TEXT, server),
     .fallback = "",
     .metavar = "ENDPOINT",
     .help = "where the coordinator listens, as `ps` prints it; the job comes from there"},
    {.name = "rank",
     FIELD(U32, rank),
     .fallback = "0",
     OPTION_RANGE(0, JOB_WORKERS_MAX - 1),
     .metavar = "RANK",
     .help = "number of this worker process; the default comes from the launcher's environment, or "
             "is the "
             "coordinator's choice"},
    {.name = "local-rank",
     FIELD(U32, local_rank),
     .fallback = "0",
     OPTION_RANGE(0, JOB_WORKERS_MAX - 1),
     .metavar = "RANK",
     .help = "number of this worker on its host: picks the GPU"},
    {.name = "local-size",
     FIELD(U32, local_size),
     .fallback = "0",
     OPTION_RANGE(0, JOB_WORKERS_MAX),
     .metavar = "COUNT",
     .help = "workers of this job on this host, which share its cores; 0: all of them"},
    {.name = "launcher",
     FIELD(CHOICE, launcher),
     .fallback = "auto",
     .choices = rank_launchers,
     .help = "whose environment says which rank this is, and how many there are"},
    {.name = "rank-offset",
     FIELD(U32, rank_offset),
     .fallback = "0",
     OPTION_RANGE(0, 65535),
     .metavar = "COUNT",
     .help = "processes that the same command of the launcher starts before worker 0, such as ps: "
             "a rank "
             "is the launcher's number less this"},
    {.name = "bind",
     FIELD(TEXT, bind),
     .fallback = "127.0.0.1",
     .metavar = "ADDRESS",
     .help = "address to listen on for other workers (ring) over tcp, which takes --keys; 0.0.0.0 "
             "for all "
             "of them. Without keys they connect by ipc, on one host"},
    {.name = "port-range",
     FIELD(TEXT, port_range),
     .fallback = "",
     .is_valid = port_range_is_valid,
     .metavar = "A-B",
     .help = "TCP ports to choose from, for firewalls; otherwise any that is free"},
    {.name = "data",
     FIELD(TEXT, data),
     .fallback = "",
     .complete = job_data_complete,
     .is_not_ours = job_data_is_folder,
     .metavar = "NAME[:PATH]",
     .help = "where the job's data are on this host; must be the same data"},
    {.name = "device",
     FIELD(TEXT, device),
     .fallback = "",
     .metavar = "NAME",
     .help = "device of this worker instead of the job's: auto, ref, cpu, cuda, cuda:I"},
    {.name = "threads",
     FIELD(U32, threads),
     .fallback = "0",
     OPTION_RANGE(0, 1024),
     .metavar = "COUNT",
     .help = "compute threads of this worker instead of the job's; 0: as the job says"},
    {.name = "join-timeout",
     FIELD(REAL, join_timeout),
     .fallback = "30",
     OPTION_RANGE(0.1, 86400),
     .metavar = "SECONDS",
     .help = "how long to wait for the coordinator's first answer"},
    {.name = "stall-warn",
     FIELD(REAL, stall_warn),
     .fallback = "10",
     OPTION_RANGE(0.1, 86400),
     .metavar = "SECONDS",
     .help = "how often the log says for whom this worker waits, and why, until that answer has "
             "come (first after one second); then the job's own --stall-warn holds"},
    {.name = "probe",
     FIELD(FLAG, probe),
     .fallback = "false",
     .help = "read a job from standard input, try its data, model and device, print what they are, "
             "end"},
    {.name = "evaluate",
     FIELD(TEXT, evaluate),
     .fallback = "",
     .metavar = "FOLDER",
     .help = "read a job from standard input, evaluate the newest checkpoint in this folder on its "
             "test data, print the result, end"},
    {.name = "describe-model",
     FIELD(FLAG, describe_model),
     .fallback = "false",
     .help = "read a job from standard input, print the layers of its model as JSON, end"},
    {.name = "pack",
     FIELD(TEXT, pack),
     .fallback = "",
     .metavar = "FILE",
     .help = "read a job from standard input, write its images to this file, end; `ringside pack` "
             "does that"},
    {.name = "pack-jpeg",
     FIELD(U32, pack_jpeg),
     .fallback = "90",
     OPTION_RANGE(0, 100),
     .metavar = "QUALITY",
     .help = "quality of the JPEG files that --pack writes; 0: pixels as they are"},
    {.name = "preview",
     FIELD(TEXT, preview),
     .fallback = "",
     .metavar = "FILE",
     .help = "read a job from standard input, draw training images as its model sees them to this "
             "PNG file, end; `ringside preview` does that"},
    {.name = "preview-epoch",
     FIELD(U32, preview_epoch),
     .fallback = "1",
     OPTION_RANGE(1, UINT32_MAX),
     .metavar = "EPOCH",
     .help = "epoch whose images --preview draws"},
    {.name = "preview-sheet",
     FIELD(U32, preview_sheet),
     .fallback = "1",
     OPTION_RANGE(1, UINT32_MAX),
     .metavar = "NUMBER",
     .help = "which of the sheets of that epoch --preview draws"},
    {.name = "preview-zoom",
     FIELD(U32, preview_zoom),
     .fallback = "0",
     OPTION_RANGE(0, SHEET_ZOOM_MAX),
     .metavar = "FACTOR",
     .help =
         "rows and columns of the sheet for each pixel of an image of --preview; 0: as it fits"},
    {.name = "backends",
     FIELD(FLAG, backends),
     .fallback = "false",
     .help = "print the device backends of this build, one JSON object a line, end"},
    {.name = "timeline-dir",
     FIELD(TEXT, timeline_dir),
     .fallback = "",
     .is_valid = options_text_is_there,
     .metavar = "DIR",
     .help =
         "folder for this process's part of the timeline, if its job asks for one (--timeline)"},
    {.name = "health-port",
     FIELD(U32, health_port),
     .fallback = "0",
     OPTION_RANGE(0, 65535),
     .metavar = "PORT",
     .help = "TCP port that answers GET /ready and GET /alive over HTTP, for probes; 0: none"},
    {.name = "log-level",
     FIELD(CHOICE, log_level),
     .fallback = "warn",
     .choices = log_level_choices,
     .help = "least severe lines to log on standard error"},
};

static enum status find_number(const struct option_program *program, const char *option,
                               const struct rank_variable *variables, bool *has, uint32_t *value)
{
    const struct worker_options *options = program->sets[0].values;
    char flag[32];
    snprintf(flag, sizeof(flag), "--%s", option);
    char error[OPTION_ERROR_BYTES];
    const struct rank_sources sources = {
        .option = options_was_given(program, option) ? flag : NULL,
        .option_value = *value,
        .launcher = options->launcher,
        .offset = variables == rank_variables ? options->rank_offset : 0,
        .variables = variables,
        .get = getenv,
    };
    enum status status = rank_resolve(&sources, has, value, error, sizeof(error));
    if (status != STATUS_OK) {
        log_error("%s", error);
    }
    return status;
}

/* What it is asked for in the place of training, and so joins no job: one thing at most, and
 * options of that alone. */
static enum status find_errand(const struct option_program *program,
                               const struct worker_options *options, const char **ret_errand)
{
    const struct {
        const char *name;
        bool is_asked;
    } errands[] = {{"probe", options->probe},
                   {"evaluate", options->evaluate[0] != '\0'},
                   {"describe-model", options->describe_model},
                   {"pack", options->pack[0] != '\0'},
                   {"preview", options->preview[0] != '\0'},
                   {"backends", options->backends}};
    static const struct {
        const char *option, *errand;
    } parts[] = {{"pack-jpeg", "pack"},
                 {"preview-epoch", "preview"},
                 {"preview-sheet", "preview"},
                 {"preview-zoom", "preview"}};
    const char *found = NULL;
    for (size_t i = 0; i < sizeof(errands) / sizeof(errands[0]); i++) {
        if (errands[i].is_asked && found != NULL) {
            log_error("--%s and --%s are two things: give one of them", found, errands[i].name);
            return STATUS_INVALID;
        }
        found = errands[i].is_asked ? errands[i].name : found;
    }
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        bool has_errand = found != NULL && strcmp(found, parts[i].errand) == 0;
        if (options_was_given(program, parts[i].option) && !has_errand) {
            log_error("--%s would do nothing here: it takes --%s", parts[i].option,
                      parts[i].errand);
            return STATUS_INVALID;
        }
    }
    *ret_errand = found;
    return STATUS_OK;
}

enum status worker_options_parse(int argc, char *const *argv, struct worker_options *ret_options,
                                 bool *ret_is_done)
{
    struct option_program program = {
        .name = "worker",
        .usage = "worker --server ENDPOINT [OPTION ...]",
        .summary = "Trains as one worker of a job.",
        .example = "  worker --server " SECURITY_LOCAL_ENDPOINT "      (as ps prints it)\n"
                   "  worker --server tcp://10.0.0.7:5555 --bind 10.0.0.8 --keys job.keys\n",
        .sets = {{.title = "Options",
                  .rows = rows,
                  .count = sizeof(rows) / sizeof(rows[0]),
                  .values = ret_options},
                 security_option_set(&ret_options->security)},
        .set_count = 2,
    };
    struct worker_options *options = ret_options;
    enum status status = options_parse(&program, argc, argv, ret_is_done);
    const char *errand = NULL;
    if (status == STATUS_OK && !*ret_is_done) {
        status = find_errand(&program, options, &errand);
    }
    if (status != STATUS_OK || *ret_is_done || errand != NULL) {
        return status;
    }
    if (options->server[0] == '\0') {
        log_error(
            "--server is missing: the endpoint that `ps` prints, such as " SECURITY_LOCAL_ENDPOINT
            " or tcp://10.0.0.7:5555");
        return STATUS_INVALID;
    }
    status = find_number(&program, "rank", rank_variables, &options->has_rank, &options->rank);
    if (status != STATUS_OK) {
        return status;
    }
    status = find_number(&program, "local-rank", rank_local_variables, &options->has_local_rank,
                         &options->local_rank);
    if (status != STATUS_OK) {
        return status;
    }
    status = find_number(&program, "local-size", rank_local_size_variables,
                         &options->has_local_size, &options->local_size);
    return status == STATUS_OK ? security_check_options(&options->security) : status;
}
