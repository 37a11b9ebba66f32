/* The options of `ringside run` and `ringside compare` that are not the job's. */
#include "deploy/hosts/launcher_options.h"

#include "common/job/checkpoints.h"
#include "common/live/live_options.h"
#include "common/options/log_level.h"

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define SAME_SECOND_MAX 1000

#define FIELD(kind, field) OPTION_FIELD(kind, launcher_options, field)

static const struct option rows[] = {
    {.name = "out",
     .letter = 'o',
     FIELD(TEXT, out),
     .fallback = "",
     .is_valid = options_text_is_there,
     .metavar = "DIR",
     .help = "folder to write, new or empty; the default is runs/DATE-TIME-..."},
    {.name = "bind",
     FIELD(TEXT, bind),
     .fallback = "127.0.0.1",
     .metavar = "ADDRESS",
     .help = "address that the processes listen on; with the default, processes of one host do "
             "without tcp, unless another option asks for it"},
    {.name = "port",
     .letter = 'p',
     FIELD(U32, port),
     .fallback = "0",
     OPTION_RANGE(0, 65535),
     .metavar = "PORT",
     .help = "TCP port of the coordinator; 0 picks a free one"},
    {.name = "log-level",
     FIELD(CHOICE, log_level),
     .fallback = "warn",
     .choices = log_level_choices,
     .help = "least severe lines in the logs"},
};

#define RESTARTS_ROW                                                                             \
    {                                                                                            \
        .name = "restarts", FIELD(U32, restarts), .fallback = "0", OPTION_RANGE(0, 1000),        \
        .metavar = "COUNT",                                                                      \
        .help =                                                                                  \
            "how often what was lost is started again, soon at first, and after longer each "    \
            "time if losses follow quickly: a worker or the coordinator, where the job goes on " \
            "without it; otherwise the whole job, from its newest checkpoint"                    \
    }

/* Which folder each run has, what else starts a coordinator again, and when it is removed. */
#define MIRROR_ROW(share, again, end)                                                              \
    {                                                                                              \
        .name = "mirror", FIELD(TEXT, mirror), .fallback = "", .is_valid = options_text_is_there,  \
        .metavar = "FOLDER|memory",                                                                \
        .help = "write each copy that --on-loss redeal keeps in memory to this folder of the "     \
                "coordinator's host, too" share                                                    \
                ": an absolute path, in the host's memory (/dev/shm), on another disk, or on one " \
                "that hosts share; memory: a folder of its own in /dev/shm, removed when the "     \
                "command ends. A coordinator that is started again (--restarts" again              \
                ") goes on from it, if it is newer than the newest checkpoint. " end               \
    }

static const struct option run_rows[] = {
    {.name = "resume",
     FIELD(TEXT, resume),
     .fallback = "",
     .is_valid = options_text_is_there,
     .metavar = "DIR",
     .help = "go on from the newest checkpoint of this run folder. The job's options have to be "
             "given again: job.json there has them; --epochs may become more. Continues the folder "
             "unless --out names another one. auto: "
             "go on in the folder of --out, if it has a checkpoint, and begin otherwise"},
    MIRROR_ROW("", ", --resume auto", "Removed when the job is completed"),
    RESTARTS_ROW,
    LIVE_OPTION_ROWS(launcher_options),
    {.name = "health-port",
     FIELD(U32, health_port),
     .fallback = "0",
     OPTION_RANGE(0, 65535),
     .metavar = "PORT",
     .help =
         "TCP port at which the coordinator answers GET /metrics, for Prometheus, and GET /ready "
         "and GET /alive over HTTP; 0: none"},
    {.name = "show-ranks",
     FIELD(FLAG, shows_ranks),
     .fallback = "false",
     .help = "on a terminal: a line for each rank, above that of the job"},
};

struct option_set launcher_run_option_set(struct launcher_options *options)
{
    return (struct option_set){.title = "The run",
                               .rows = run_rows,
                               .count = sizeof(run_rows) / sizeof(run_rows[0]),
                               .values = options};
}

static const struct option series_rows[] = {
    MIRROR_ROW(", each run to FOLDER/RUN there", "",
               "Removed when a run is completed. Runs that have no such copies have no mirror"),
    RESTARTS_ROW,
    {.name = "dashboard",
     FIELD(TEXT, dashboard),
     .fallback = "",
     .alone = "0",
     .is_valid = live_address_is_valid,
     .metavar = "[ADDRESS:]PORT",
     .help = "serve a page of all runs to browsers, over HTTP, and print its address, which has a "
             "secret; without a value at a free port of the loopback interface"},
};

struct option_set launcher_series_option_set(struct launcher_options *options)
{
    return (struct option_set){.title = "The runs",
                               .rows = series_rows,
                               .count = sizeof(series_rows) / sizeof(series_rows[0]),
                               .values = options};
}

bool launcher_resumes_itself(const struct launcher_options *options)
{
    return strcmp(options->resume, "auto") == 0;
}

enum status launcher_resume_folder(struct launcher_options *options)
{
    char path[sizeof(options->resume) + 16];
    if (launcher_resumes_itself(options) && options->out[0] == '\0') {
        log_error("--resume auto needs a run folder to go on in: --out DIR");
        return STATUS_INVALID;
    }
    if (options->resume[0] == '\0' || options->out[0] != '\0') {
        return STATUS_OK;
    }
    snprintf(path, sizeof(path), "%s/job.json", options->resume);
    if (access(path, F_OK) != 0) {
        log_error("--resume %s: it is not the folder of a run, which has a job.json; name one, or "
                  "say with --out where to go on",
                  options->resume);
        return STATUS_INVALID;
    }
    memcpy(options->out, options->resume, sizeof(options->out));
    return STATUS_OK;
}

bool launcher_mirror_is_memory(const char *mirror)
{
    return strcmp(mirror, "memory") == 0;
}

enum status launcher_check_mirror(const struct launcher_options *options, const struct job *job)
{
    char error[OPTION_ERROR_BYTES];
    if (options->mirror[0] == '\0') {
        return STATUS_OK;
    }
    if (options->mirror[0] != '/' && !launcher_mirror_is_memory(options->mirror)) {
        log_error("--mirror %s is no absolute path, such as /dev/shm/%s, nor memory",
                  options->mirror, options->mirror);
        return STATUS_INVALID;
    }
    enum status status = checkpoints_check_mirror(job, error, sizeof(error));
    if (status != STATUS_OK) {
        log_error("%s", error);
    }
    return status;
}

struct option_set launcher_option_set(struct launcher_options *options)
{
    return (struct option_set){.title = "The launcher",
                               .rows = rows,
                               .count = sizeof(rows) / sizeof(rows[0]),
                               .values = options};
}

void launcher_default_folder(struct launcher_options *options, const char *what)
{
    if (options->out[0] != '\0') {
        return;
    }
    time_t now = time(NULL);
    struct tm parts;
    char stamp[32];
    localtime_r(&now, &parts);
    strftime(stamp, sizeof(stamp), "%Y%m%d-%H%M%S", &parts);
    snprintf(options->out, sizeof(options->out), "runs/%s-%s", stamp, what);
    // A script may start several jobs in one second.
    for (unsigned i = 2; i < SAME_SECOND_MAX && access(options->out, F_OK) == 0; i++) {
        snprintf(options->out, sizeof(options->out), "runs/%s-%s-%u", stamp, what, i);
    }
}
