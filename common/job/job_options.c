/* The options of a job, a row each: one table, in the order of --help. Rows lie in a file for each
 * topic; here are those of who takes part. */
#include "common/job/job_options.h"

#include "common/job/job_values.h"
#include "common/options/names.h"
#include "common/transport/lanes.h"

#include <assert.h>
#include <string.h>

#define FIELD(kind, field) OPTION_FIELD(kind, job, field)

// What an option of the optimizer's settings points to.
#define SETTING(field)                                                                     \
    .type = OPTION_REAL,                                                                   \
    .offset = offsetof(struct job, settings) + offsetof(struct optimizer_settings, field), \
    .size = sizeof(double)

static const struct option_choice bucket_sizes[] = {
    {"auto", "tries 0.25, 1, 4 and 16 in the first steps of the job and keeps the fastest; the "
             "choice depends on timing, and the bits of sums on the choice"},
    {NULL, NULL},
};

static const struct option_choice loader_threads[] = {
    {"auto", "begins with one, and adds threads while training waits for images and the worker "
             "uses less than its share of the host's cores"},
    {NULL, NULL},
};

const struct option job_options[] = {
    {.name = "mode",
     .letter = 'm',
     FIELD(CHOICE, mode),
     .fallback = "ps-sync",
     OPTION_RANGE(0, MODE_SLACK_MAX),
     .choices = mode_choices,
     .is_valid = job_mode_is_valid,
     .help = "the design: how gradients are exchanged"},
    {.name = "workers",
     .letter = 'n',
     FIELD(U32, workers),
     .fallback = "2",
     OPTION_RANGE(1, JOB_WORKERS_MAX),
     .metavar = "COUNT",
     .help = "workers among which each step is dealt; usually each is a process"},
    {.name = "processes",
     FIELD(U32, processes),
     .fallback = "0",
     OPTION_RANGE(0, JOB_WORKERS_MAX),
     .metavar = "COUNT",
     .help = "worker processes, where they are fewer than --workers: each carries several workers' "
             "ranks and computes one after the other, so a smaller machine ends with the same "
             "bits (with the same --threads), or in a race with as many gradients of each rank; 0: "
             "one for each worker"},
    {.name = "servers",
     .letter = 's',
     FIELD(U32, servers),
     .fallback = "1",
     OPTION_RANGE(0, JOB_SERVERS_MAX),
     .metavar = "COUNT",
     .help = "parameter-server processes, each with a shard of the parameters; ps modes only"},
    {.name = "coordinator-role",
     FIELD(CHOICE, coordinator_role),
     .fallback = "shard",
     .choices = coordinator_role_choices,
     .help = "what the coordinator's process is in ps modes"},
    {.name = "server-threads",
     FIELD(U32, server_threads),
     .fallback = "1",
     OPTION_RANGE(1, JOB_SERVERS_MAX),
     .metavar = "COUNT",
     .help = "threads of each server; each holds a shard of its own, with a socket of its own"},
// clang-format off
#include "common/job/rows/training.inc" // in the order of --help
#include "common/job/rows/computing.inc"
#include "common/job/rows/exchange.inc"
#include "common/job/rows/course.inc"
    // clang-format on
};
const size_t job_option_count = sizeof(job_options) / sizeof(job_options[0]);

const struct option *job_option_find(const char *name)
{
    const struct option *row = job_options;
    while (row < job_options + job_option_count && strcmp(row->name, name) != 0) {
        row++;
    }
    assert(row < job_options + job_option_count);
    return row;
}

const char *job_option_default(const struct option *row, bool is_external)
{
    bool is_resolved = strcmp(row->name, "optimizer") == 0 && !is_external;
    return is_resolved ? names_optimizers[OPTIMIZER_MOMENTUM].name : row->fallback;
}

struct option_set job_option_set(struct job *job)
{
    return (struct option_set){
        .title = "The job", .rows = job_options, .count = job_option_count, .values = job};
}
