/* The option table of `ps`. */
#include "ps-server/options.h"

#include "common/base/log.h"
#include "common/job/checkpoints.h"
#include "common/job/job_effects.h"
#include "common/job/job_options.h"
#include "common/job/job_resolve.h"
#include "common/live/live_options.h"
#include "common/options/log_level.h"
#include "common/transport/port_range.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define FIELD(kind, field) OPTION_FIELD(kind, ps_options, field)

static const struct option_choice progress_choices[] = {
    [PROGRESS_AUTO] = {"auto",
                       "a line that is updated in place on a terminal, plain lines elsewhere"},
    [PROGRESS_RANKS] = {"ranks", "the same, with a line for each rank above it on a terminal"},
    [PROGRESS_NONE] = {"none", "nothing on standard output"},
    {NULL, NULL},
};

static const struct option rows[] = {
    {.name = "shard-index",
     FIELD(U32, shard),
     .fallback = "0",
     OPTION_RANGE(0, JOB_SERVERS_MAX - 1),
     .metavar = "INDEX",
     .help =
         "which process of ps this is: 0 is the coordinator, which also holds shard 0 unless the "
         "job says --coordinator-role alone; each other one holds a shard"},
    {.name = "server",
     FIELD(TEXT, server),
     .fallback = "",
     .metavar = "ENDPOINT",
     .help = "where the coordinator listens; required for --shard-index above 0, and only there"},
    {.name = "join-timeout",
     FIELD(REAL, join_timeout),
     .fallback = "30",
     OPTION_RANGE(0.1, 86400),
     .metavar = "SECONDS",
     .help = "how long a shard above 0 waits for the coordinator's first answer"},
    {.name = "bind",
     FIELD(TEXT, bind),
     .fallback = "127.0.0.1",
     .metavar = "ADDRESS",
     .help =
         "address to listen on over tcp, which takes --keys; 0.0.0.0 for all of them. Without "
         "keys, "
         "and "
         "without this option and --port, processes of this user on this host can connect (ipc)"},
    {.name = "port",
     .letter = 'p',
     FIELD(U32, port),
     .fallback = "0",
     OPTION_RANGE(0, 65535),
     .metavar = "PORT",
     .help = "TCP port of the coordinator; 0 picks a free one. Takes --keys"},
    {.name = "port-range",
     FIELD(TEXT, port_range),
     .fallback = "",
     .is_valid = port_range_is_valid,
     .metavar = "A-B",
     .help = "TCP ports to choose from, for firewalls; by default any free one"},
    {.name = "out",
     .letter = 'o',
     FIELD(TEXT, out),
     .fallback = "",
     .is_valid = options_text_is_there,
     .metavar = "DIR",
     .help = "run folder to write; without it none is written"},
    {.name = "resume",
     FIELD(TEXT, resume),
     .fallback = "",
     .is_valid = options_text_is_there,
     .metavar = "DIR",
     .help = "go on from the newest checkpoint of this run folder. The job's options have to be "
             "given again: job.json there has them; --epochs may become more. Continues the folder "
             "unless --out names another one. auto: "
             "go on in the folder of --out, if it has a checkpoint, and begin otherwise"},
    {.name = "mirror",
     FIELD(TEXT, mirror),
     .fallback = "",
     .is_valid = options_text_is_there,
     .metavar = "FOLDER",
     .help = "write each copy that --on-loss redeal keeps in memory to this folder, too: an "
             "absolute path, in the host's memory (/dev/shm), on another disk, or on one that "
             "hosts share. With --resume auto, a coordinator that is started again goes on from "
             "it, if it is newer than the newest checkpoint. Removed when the job is completed"},
    {.name = "run-number",
     FIELD(TEXT, run),
     .fallback = "",
     .is_valid = options_text_is_there,
     .metavar = "NUMBER",
     .help = "of --mirror: says of which run copies are, for launchers"},
    {.name = "timeline-dir",
     FIELD(TEXT, timeline_dir),
     .fallback = "",
     .is_valid = options_text_is_there,
     .metavar = "DIR",
     .help = "folder for this process's part of the timeline, if its job asks for one "
             "(--timeline); the coordinator's default is DIR/timeline of its --out DIR"},
    {.name = "restarted",
     FIELD(TEXT, restarted),
     .fallback = "",
     .is_valid = options_text_is_there,
     .metavar = "REASON",
     .help = "why a launcher starts the job again in the folder of --out, as with --resume auto; "
             "details.json will say so"},
    {.name = "given-fault",
     FIELD(TEXT, given_fault),
     .fallback = "",
     .metavar = "LIST",
     .help = "of --restarted: --fault as the job was given it, for job.json; --fault itself leaves "
             "out what has struck"},
    {.name = "program",
     FIELD(TEXT, program),
     .fallback = "",
     .is_valid = options_text_is_there,
     .metavar = "COMMAND",
     .help = "of --model external:NAME: the command line of the program that the workers run, for "
             "job.json, so that reports can say how to repeat the run"},
    {.name = "announce-fd",
     FIELD(U32, announce_fd),
     .fallback = "0",
     OPTION_RANGE(0, 1 << 20),
     .metavar = "FD",
     .help = "open file descriptor that gets the coordinator's endpoint, for launchers; with "
             "--launcher-fd also signs of life"},
    {.name = "listen-at",
     FIELD(TEXT, listen_at),
     .fallback = "",
     .metavar = "ENDPOINT",
     .help = "listen at this Unix socket (ipc://...), for launchers: a coordinator that is started "
             "again is found where the one before it was"},
    {.name = "listen-fd",
     FIELD(U32, listen_fd),
     .fallback = "0",
     OPTION_RANGE(0, 1000000),
     .metavar = "FD",
     .help = "open socket that listens there already"},
    {.name = "launcher-fd",
     FIELD(U32, launcher_fd),
     .fallback = "0",
     OPTION_RANGE(0, 1 << 20),
     .metavar = "FD",
     .help = "open pipe on which a launcher reports how members ended; the job ends when the pipe "
             "closes"},
    {.name = "progress",
     FIELD(CHOICE, progress),
     .fallback = "auto",
     .choices = progress_choices,
     .help = "what to show of the job"},
    LIVE_OPTION_ROWS(ps_options),
    {.name = "health-port",
     FIELD(U32, health_port),
     .fallback = "0",
     OPTION_RANGE(0, 65535),
     .metavar = "PORT",
     .help =
         "TCP port that answers GET /ready and GET /alive over HTTP, for probes, and GET /metrics "
         "for Prometheus where the coordinator is; 0: none"},
    {.name = "log-level",
     FIELD(CHOICE, log_level),
     .fallback = "warn",
     .choices = log_level_choices,
     .help = "least severe lines to log on standard error"},
};

/* Chooses how members reach the coordinator: ipc or tcp. Logs. */
static enum status choose_way(const struct option_program *program, struct ps_options *options,
                              const struct job *job)
{
    bool asks_for_tcp = options_was_given(program, "bind") || options_was_given(program, "port") ||
                        options_was_given(program, "port-range");
    bool is_keyless = options->security.keys[0] == '\0' && !options->security.insecure;
    if (options->shard == 0 && is_keyless && job->transport == TRANSPORT_TCP) {
        log_error("--transport tcp needs keys, because every user of this host could connect: give "
                  "--keys FILE to all processes of the job (`ringside keygen FILE` makes it), "
                  "leave --transport out to exchange through ipc and shared memory, or say "
                  "--insecure if every user may take part");
        return STATUS_INVALID;
    }
    options->is_local = is_keyless && !asks_for_tcp;
    return security_check_options(&options->security);
}

/* Refuses options that would do nothing. Logs. Not called if a launcher started this process,
 * because a launcher passes every option of the job and has checked those that it was given. */
static enum status check_effects(const struct option_program *program, const struct job *asked)
{
    char error[OPTION_ERROR_BYTES];
    struct job job = *asked;
    const struct job_list jobs = {&job, 1, sizeof(job)};
    enum status status = job_resolve(&job, error, sizeof(error));
    if (status == STATUS_OK) {
        status = job_check_effects(program, asked, &jobs, error, sizeof(error));
    }
    if (status != STATUS_OK) {
        log_error("%s", error);
    }
    return status;
}

/* Where the coordinator's part of a timeline goes. Logs. */
static enum status choose_timeline(struct ps_options *options, struct job *job)
{
    char error[OPTION_ERROR_BYTES];
    struct job resolved = *job;
    if (job_resolve(&resolved, error, sizeof(error)) != STATUS_OK || !resolved.timeline ||
        options->timeline_dir[0] != '\0') {
        return STATUS_OK; // what cannot be resolved is said where it is run
    }
    if (options->out[0] == '\0') {
        log_error("--timeline needs a folder to write to: --out DIR, or --timeline-dir DIR");
        return STATUS_INVALID;
    }
    int size =
        snprintf(options->timeline_dir, sizeof(options->timeline_dir), "%s/timeline", options->out);
    if (size >= (int)sizeof(options->timeline_dir)) {
        log_error("--out is too long for a timeline below it; --timeline-dir names another place");
        return STATUS_INVALID;
    }
    return STATUS_OK;
}

/* A job that is resumed goes on in its folder. Logs. */
static enum status choose_folder(struct ps_options *options, const struct job *job)
{
    char path[sizeof(options->resume) + 16];
    bool is_auto = strcmp(options->resume, "auto") == 0;
    options->goes_on = is_auto || options->restarted[0] != '\0';
    if (options->goes_on && options->out[0] == '\0') {
        log_error("%s needs a run folder to go on in: --out DIR",
                  is_auto ? "--resume auto" : "--restarted");
        return STATUS_INVALID;
    }
    if (is_auto) {
        options->resume[0] = '\0';
    }
    snprintf(path, sizeof(path), "%s/job.json", options->resume);
    if (options->resume[0] != '\0' && options->out[0] == '\0') {
        if (access(path, F_OK) != 0) {
            log_error("--resume %s: it is not the folder of a run, which has a job.json; name one, "
                      "or say with --out where to go on",
                      options->resume);
            return STATUS_INVALID;
        }
        memcpy(options->out, options->resume, sizeof(options->out));
    }
    if (job->checkpoint_every.kind != CHECKPOINT_NEVER && options->out[0] == '\0') {
        log_error("--checkpoint-every needs a run folder to write to: --out DIR");
        return STATUS_INVALID;
    }
    if (options->tensorboard && options->out[0] == '\0') {
        log_error("--tensorboard needs a run folder to write to: --out DIR");
        return STATUS_INVALID;
    }
    return STATUS_OK;
}

/* A mirror is of a run, and of one that has copies in memory. Logs. */
static enum status check_mirror(const struct ps_options *options, const struct job *job)
{
    char error[OPTION_ERROR_BYTES];
    struct job resolved = *job;
    if (options->mirror[0] == '\0') {
        return STATUS_OK;
    }
    if (options->mirror[0] != '/') {
        log_error("--mirror %s is no absolute path, such as /dev/shm/%s", options->mirror,
                  options->mirror);
        return STATUS_INVALID;
    }
    if (options->shard > 0 || options->out[0] == '\0') {
        log_error(options->shard > 0 ? "--mirror is for the coordinator"
                                     : "--mirror needs the folder of the run: --out DIR");
        return STATUS_INVALID;
    }
    if (job_resolve(&resolved, error, sizeof(error)) != STATUS_OK) {
        return STATUS_OK; // which is said where it is run
    }
    enum status status = checkpoints_check_mirror(&resolved, error, sizeof(error));
    if (status != STATUS_OK) {
        log_error("%s", error);
    }
    return status;
}

enum status ps_options_parse(int argc, char *const *argv, struct ps_options *ret_options,
                             struct job *ret_job, bool *ret_is_done)
{
    struct option_program program = {
        .name = "ps",
        .usage = "ps [OPTION ...]",
        .summary = "Coordinates a job and, in the ps modes, holds its parameters.",
        .example =
            "  ps --workers 2 --mode ring --model lenet5 --data shapes\n"
            "  worker --server " SECURITY_LOCAL_ENDPOINT "   (twice; ps prints the command)\n",
        .sets = {job_option_set(ret_job),
                 {.title = "This process",
                  .rows = rows,
                  .count = sizeof(rows) / sizeof(rows[0]),
                  .values = ret_options},
                 security_option_set(&ret_options->security)},
        .set_count = 3,
    };
    enum status status = options_parse(&program, argc, argv, ret_is_done);
    if (status != STATUS_OK || *ret_is_done) {
        return status;
    }
    if ((ret_options->shard > 0) != (ret_options->server[0] != '\0')) {
        log_error(
            ret_options->shard > 0
                ? "--shard-index above 0 needs --server: the endpoint that the coordinator prints"
                : "--server is for --shard-index above 0; process 0 is the coordinator itself");
        return STATUS_INVALID;
    }
    if (ret_options->shard == 0 && ret_options->announce_fd == 0 &&
        check_effects(&program, ret_job) != STATUS_OK) {
        return STATUS_INVALID;
    }
    if (ret_options->shard == 0 && choose_folder(ret_options, ret_job) != STATUS_OK) {
        return STATUS_INVALID;
    }
    if (ret_options->shard == 0 && choose_timeline(ret_options, ret_job) != STATUS_OK) {
        return STATUS_INVALID;
    }
    if (check_mirror(ret_options, ret_job) != STATUS_OK) {
        return STATUS_INVALID;
    }
    if (ret_options->program[0] != '\0' && (ret_options->shard > 0 || !job_is_external(ret_job))) {
        log_error("--program is for the coordinator of a job with --model external:NAME");
        return STATUS_INVALID;
    }
    bool has_seals = ret_job->security == SECURITY_AUTH_ONLY;
    if (ret_options->shard == 0 && has_seals && ret_options->security.keys[0] == '\0') {
        log_error("--security auth-only needs --keys FILE: the key that authenticates data is "
                  "handed out under those keys; `ringside keygen FILE` makes them");
        return STATUS_INVALID;
    }
    return choose_way(&program, ret_options, ret_job);
}
