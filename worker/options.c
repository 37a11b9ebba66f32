/* The option table of `worker`. */
#include "worker/options.h"

#include "common/job/job.h"
#include "common/options/log_level.h"
#include "common/transport/port_range.h"
#include "worker/link/rank.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#define FIELD(name) \
    offsetof(struct worker_options, name), sizeof(((struct worker_options *)0)->name)

static const struct option rows[] = {
    {"server", 0, OPTION_TEXT, FIELD(server), "", 0, 0, NULL, NULL, "ENDPOINT",
     "where the coordinator listens, as `ps` prints it; everything about the job comes from there"},
    {"rank", 0, OPTION_U32, FIELD(rank), "0", 0, JOB_WORKERS_MAX - 1, NULL, NULL, "RANK",
     "number of this worker; otherwise from the launcher's environment, or the coordinator's "
     "choice"},
    {"local-rank", 0, OPTION_U32, FIELD(local_rank), "0", 0, JOB_WORKERS_MAX - 1, NULL, NULL,
     "RANK", "number of this worker on its host: picks the GPU"},
    {"local-size", 0, OPTION_U32, FIELD(local_size), "0", 0, JOB_WORKERS_MAX, NULL, NULL, "COUNT",
     "workers of this job on this host, which share its cores; 0: all of them"},
    {"launcher", 0, OPTION_CHOICE, FIELD(launcher), "auto", 0, 0, rank_launchers, NULL, NULL,
     "whose environment says which rank this is, and how many there are"},
    {"rank-offset", 0, OPTION_U32, FIELD(rank_offset), "0", 0, 65535, NULL, NULL, "COUNT",
     "processes that the same command of the launcher starts before worker 0, such as ps: a rank "
     "is the launcher's number less this"},
    {"bind", 0, OPTION_TEXT, FIELD(bind), "127.0.0.1", 0, 0, NULL, NULL, "ADDRESS",
     "address to listen on for other workers (ring) over tcp, which takes --keys; 0.0.0.0 for all "
     "of them. Without keys they connect by ipc, on one host"},
    {"port-range", 0, OPTION_TEXT, FIELD(port_range), "", 0, 0, NULL, port_range_is_valid, "A-B",
     "TCP ports to choose from, for firewalls; otherwise any that is free"},
    {"data", 0, OPTION_TEXT, FIELD(data), "", 0, 0, NULL, NULL, "NAME[:PATH]",
     "the job's data where they lie on this host; must be the same data"},
    {"device", 0, OPTION_TEXT, FIELD(device), "", 0, 0, NULL, NULL, "NAME",
     "device of this worker instead of the job's: auto, ref, cpu, cuda, cuda:I"},
    {"threads", 0, OPTION_U32, FIELD(threads), "0", 0, 1024, NULL, NULL, "COUNT",
     "compute threads of this worker instead of the job's; 0: as the job says"},
    {"join-timeout", 0, OPTION_REAL, FIELD(join_timeout), "30", 0.1, 86400, NULL, NULL, "SECONDS",
     "how long to wait for the coordinator's first answer"},
    {"probe", 0, OPTION_FLAG, FIELD(probe), "false", 0, 0, NULL, NULL, NULL,
     "read a job from standard input, try its data, model and device, print what they are, end"},
    {"backends", 0, OPTION_FLAG, FIELD(backends), "false", 0, 0, NULL, NULL, NULL,
     "print the device backends of this build, one JSON object a line, end"},
    {"health-port", 0, OPTION_U32, FIELD(health_port), "0", 0, 65535, NULL, NULL, "PORT",
     "TCP port that answers GET /ready and GET /alive over HTTP, for probes; 0: none"},
    {"log-level", 0, OPTION_CHOICE, FIELD(log_level), "warn", 0, 0, log_level_choices, NULL, NULL,
     "least severe lines to log on standard error"},
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

enum status worker_options_parse(int argc, char *const *argv, struct worker_options *ret_options,
                                 bool *ret_is_done)
{
    const struct option_program program = {
        .name = "worker",
        .usage = "worker --server ENDPOINT [OPTION ...]",
        .summary = "Trains as one worker of a job.",
        .example = "  worker --server ipc://@ringside-NAME      (as ps prints it)\n"
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
    if (status != STATUS_OK || *ret_is_done || options->probe || options->backends) {
        return status;
    }
    if (options->server[0] == '\0') {
        log_error("--server is missing: the endpoint that `ps` prints, such as "
                  "ipc://@ringside-NAME or tcp://10.0.0.7:5555");
        return STATUS_INVALID;
    }
    status = find_number(&program, "rank", rank_variables, &options->has_rank, &options->rank);
    if (status == STATUS_OK) {
        status = find_number(&program, "local-rank", rank_local_variables, &options->has_local_rank,
                             &options->local_rank);
    }
    if (status == STATUS_OK) {
        status = find_number(&program, "local-size", rank_local_size_variables,
                             &options->has_local_size, &options->local_size);
    }
    return status == STATUS_OK ? security_check_options(&options->security) : status;
}
