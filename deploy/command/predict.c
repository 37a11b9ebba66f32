/* ringside predict: how fast a job would be, from what its steps cost and how its hosts are
 * connected. */
#include "common/base/log.h"
#include "common/job/job.h"
#include "common/job/job_choices.h"
#include "common/job/job_options.h"
#include "common/job/job_values.h"
#include "common/options/options.h"
#include "deploy/command/commands.h"
#include "deploy/command/predict_results.h"
#include "deploy/predict/advise/advice.h"
#include "deploy/predict/basis/cost_batches.h"
#include "deploy/predict/faults/fault_study.h"
#include "deploy/predict/study/parallel.h"
#include "deploy/predict/study/study.h"
#include "deploy/predict/study/study_lists.h"
#include "deploy/system/command_text.h"
#include "deploy/system/folder.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ADVICE_MODES "ring,ps-sync,ps-ssp:2,ps-async" // that advice chooses among

struct predict_options {
    char costs[JOB_PATH_BYTES], network[JOB_PATH_BYTES];
    char convergence[JOB_PATH_BYTES], out[JOB_PATH_BYTES];
    char modes[STUDY_LIST_BYTES], workers[STUDY_LIST_BYTES], servers[STUDY_LIST_BYTES];
    char what_ifs[WHAT_IFS_MAX * WHAT_IF_TEXT_BYTES];
    uint32_t batch, steps, gradients_per_update, backup, sync_every, threads;
    enum all_reduce_choice all_reduce;
    enum transport_kind transport;
    struct codec compress;
    double bucket_mb;
    char straggler[JOB_PATH_BYTES], faults[JOB_PATH_BYTES];
    uint64_t job_steps;
    uint64_t seed;
    bool approximate, advise, json;
    bool is_kept[ADVICE_AXES]; // of the axes of advice: a value was given
    bool takes_places;         // as many workers as the network has places for
    char command[COMMAND_TEXT_BYTES];
};

static bool all_reduce_is_valid(const char *text, char *ret_why, size_t why_size)
{
    bool is_valid = strcmp(text, "nccl") != 0;
    if (!is_valid) {
        snprintf(ret_why, why_size, "NCCL's way of adding up is not in the model");
    }
    return is_valid;
}

#define FIELD(kind, field) OPTION_FIELD(kind, predict_options, field)

static const struct option rows[] = {
    {.name = "costs",
     FIELD(TEXT, costs),
     .fallback = "",
     .metavar = "FILE",
     .help = "JSON file with what a worker's step costs (docs/PREDICT-FILES.md)"},
    {.name = "network",
     FIELD(TEXT, network),
     .fallback = "",
     .metavar = "FILE",
     .help = "JSON file with hosts, switches and links (docs/PREDICT-FILES.md)"},
    {.name = "mode",
     .letter = 'm',
     FIELD(TEXT, modes),
     .fallback = "ps-sync,ring",
     .metavar = "LIST",
     .help = "the designs to predict, separated by commas: ps-sync, ps-ssp:S, ps-async, ring"},
    {.name = "workers",
     .letter = 'n',
     FIELD(TEXT, workers),
     .fallback = "2",
     .metavar = "LIST",
     .help = "numbers of workers, separated by commas, each at most 16384"},
    {.name = "servers",
     .letter = 's',
     FIELD(TEXT, servers),
     .fallback = "1",
     .metavar = "LIST",
     .help = "numbers of parameter-server processes, each with a shard of the parameters, "
             "separated by commas; not in ring"},
    {.name = "batch",
     FIELD(U32, batch),
     .fallback = "0",
     OPTION_RANGE(0, JOB_BATCH_MAX),
     .metavar = "IMAGES",
     .help = "images of a worker's step; 0 takes the batch of the costs. Another batch needs costs "
             "of several batches, as ringside calibrate --batches measures them"},
    {.name = "bucket-mb",
     FIELD(REAL, bucket_mb),
     .fallback = "1",
     OPTION_RANGE(0.001, 65536),
     .metavar = "MIB",
     .help = "size of the buckets in which gradients travel"},
    {.name = "all-reduce",
     FIELD(CHOICE, all_reduce),
     .fallback = "auto",
     .choices = all_reduce_choices,
     .is_valid = all_reduce_is_valid,
     .help = "how ring mode adds up gradients; nccl is not in the model"},
    {.name = "transport",
     FIELD(CHOICE, transport),
     .fallback = "auto",
     .choices = transport_choices,
     .help = "what gradients and parameters travel over; shm and ipc need all places on one host"},
    {.name = "compress",
     FIELD(PARSED, compress),
     .fallback = "none",
     .parse = job_compress_parse,
     .format = job_compress_format,
     .metavar = "KIND",
     .help = "send gradients in fewer bytes: none, fp16, bf16, int8 or topk:SHARE; what that takes "
             "are encode and decode of the costs"},
    {.name = "gradients-per-update",
     FIELD(U32, gradients_per_update),
     .fallback = "1",
     OPTION_RANGE(1, JOB_WORKERS_MAX),
     .metavar = "COUNT",
     .help =
         "gradients averaged into one update in ps-ssp and ps-async, at most one of each worker"},
    {.name = "backup",
     FIELD(U32, backup),
     .fallback = "0",
     OPTION_RANGE(0, JOB_WORKERS_MAX - 1),
     .metavar = "COUNT",
     .help = "backup workers in ps-sync: an update waits for the gradients of all workers but this "
             "many, and late ones are dropped"},
    {.name = "sync-every",
     FIELD(U32, sync_every),
     .fallback = "1",
     OPTION_RANGE(1, 1000000),
     .metavar = "STEPS",
     .help = "local SGD: every worker takes this many steps with its own optimizer, then workers "
             "exchange changes of parameters instead of gradients"},
    {.name = "straggler",
     FIELD(LIST, straggler),
     .fallback = "none",
     .is_valid = job_straggler_is_valid,
     .metavar = "WHO",
     .help = "slows workers down, as of ringside run: rank=R,factor=F, or "
             "dist=exponential:mean=20ms,share=P; may be repeated"},
    {.name = "fault",
     FIELD(LIST, faults),
     .fallback = "none",
     .is_valid = job_faults_are_valid,
     .metavar = "WHAT",
     .help = "also predicts what faults cost a whole job, as of ringside run: "
             "rank=2,step=100,kill, rank=2,step=100,stop=5s, after=step:150,join; may be repeated"},
    {.name = "job-steps",
     FIELD(U64, job_steps),
     .fallback = "1000",
     OPTION_RANGE(1, 1e9),
     .metavar = "COUNT",
     .help = "steps of the whole job that --fault strikes"},
    {.name = "seed",
     FIELD(U64, seed),
     .fallback = "1",
     OPTION_RANGE(0, 9007199254740992.0),
     .metavar = "SEED",
     .help = "of all delays that are drawn"},
    {.name = "steps",
     FIELD(U32, steps),
     .fallback = "10",
     OPTION_RANGE(1, 1000000),
     .metavar = "COUNT",
     .help = "steps of each worker that are counted, behind three that are not"},
    {.name = "approximate",
     FIELD(FLAG, approximate),
     .fallback = "false",
     .help =
         "one worker or server stands for all in large jobs, also where steps may be off by more "
         "than 1 %; the output says by how much"},
    {.name = "what-if",
     FIELD(LIST, what_ifs),
     .fallback = "",
     .is_valid = study_what_ifs_are_valid,
     .metavar = "CHANGES",
     .help = "predicts the same with other costs, network or servers, as link=2x,compute=0.5x or "
             "latency=50us,servers=4; may be repeated"},
    {.name = "convergence",
     FIELD(TEXT, convergence),
     .fallback = "",
     .metavar = "FILE",
     .help = "sweep.csv of a sweep with --target-accuracy: adds the time that training takes to "
             "the target, by the steps that it took at such staleness"},
    {.name = "advise",
     FIELD(FLAG, advise),
     .fallback = "false",
     .help = "search for the best mode, servers and their places, bucket size and all-reduce; what "
             "other options give stays. Without --workers: as many as the network has places for"},
    {.name = "out",
     .letter = 'o',
     FIELD(TEXT, out),
     .fallback = "",
     .metavar = "DIR",
     .help =
         "folder to write: report.html, predictions.json, and plots as SVG and PNG, among them a "
         "map of the fastest design over workers and bandwidth"},
    {.name = "jobs",
     .letter = 'j',
     FIELD(U32, threads),
     .fallback = "0",
     OPTION_RANGE(0, PARALLEL_THREADS_MAX),
     .metavar = "COUNT",
     .help = "threads that predict at the same time; 0 is one for each core. Changes no figure"},
    {.name = "json",
     FIELD(FLAG, json),
     .fallback = "false",
     .help = "print one JSON object, with all digits, for scripts"},
};
#define ROW_COUNT (sizeof(rows) / sizeof(rows[0]))

static bool has_row(const struct option *list, size_t count, const char *name, size_t size)
{
    for (size_t i = 0; i < count; i++) {
        if (strlen(list[i].name) == size && strncmp(list[i].name, name, size) == 0) {
            return true;
        }
    }
    return false;
}

/* Refuses options of jobs that the model does not read: they would change nothing. */
static enum status check_model(int argc, char *const *argv)
{
    for (int i = 1; i < argc; i++) {
        const char *name = strncmp(argv[i], "--", 2) == 0 ? argv[i] + 2 : "";
        name += strncmp(name, "no-", 3) == 0 ? 3 : 0;
        size_t size = strcspn(name, "=");
        if (has_row(job_options, job_option_count, name, size) &&
            !has_row(rows, ROW_COUNT, name, size)) {
            log_error(
                "--%.*s is an option of jobs that predictions do not read; leave it out (what "
                "a step costs, whatever is trained, is in the file of --costs)",
                (int)size, name);
            return STATUS_INVALID;
        }
    }
    return STATUS_OK;
}

/* Refuses options that no point reads. */
static enum status check_effects(const struct option_program *program, const struct study *study,
                                 bool is_advice)
{
    bool has_ring = false, has_servers = false, has_staleness = false, has_sync = false,
         exchanges = study->workers[study->worker_count - 1] > 1;
    for (size_t i = 0; i < study->design_count; i++) {
        enum mode_kind kind = study->designs[i].mode.kind;
        has_ring = has_ring || kind == MODE_RING;
        has_servers = has_servers || mode_has_servers(kind);
        has_staleness = has_staleness || mode_updates_on_push(kind);
        has_sync = has_sync || kind == MODE_PS_SYNC;
        exchanges = exchanges || mode_has_servers(kind);
    }
    for (size_t i = 0; i < study->what_if_count; i++) {
        if (what_if_has_servers(&study->what_ifs[i]) && !has_servers) {
            log_error("--what-if %s: no mode of --mode has servers; leave them out",
                      study->what_ifs[i].text);
            return STATUS_INVALID;
        }
    }
    if (has_staleness && study->job.gradients_per_update > study->workers[0]) {
        log_error("--gradients-per-update %u is more than the %u workers: no update would have as "
                  "many",
                  study->job.gradients_per_update, study->workers[0]);
        return STATUS_INVALID;
    }
    if (has_sync && study->job.backup >= study->workers[0]) {
        log_error("--backup %u of %u workers leaves no gradient for an update: at most %u",
                  study->job.backup, study->workers[0], study->workers[0] - 1);
        return STATUS_INVALID;
    }
    for (size_t i = 0; i < study->what_if_count && is_advice; i++) {
        if (what_if_has_servers(&study->what_ifs[i])) {
            log_error("--what-if %s: --advise searches for the servers; leave them out",
                      study->what_ifs[i].text);
            return STATUS_INVALID;
        }
    }
    const char *idle =
        options_was_given(program, "servers") && !has_servers   ? "servers"
        : options_was_given(program, "all-reduce") && !has_ring ? "all-reduce"
        : options_was_given(program, "transport") && !exchanges ? "transport"
        : options_was_given(program, "compress") && !exchanges  ? "compress"
        : options_was_given(program, "gradients-per-update") && !has_staleness
            ? "gradients-per-update"
        : options_was_given(program, "job-steps") && !options_was_given(program, "fault")
            ? "job-steps"
        : options_was_given(program, "backup") && !has_sync      ? "backup"
        : options_was_given(program, "sync-every") && !exchanges ? "sync-every"
                                                                 : NULL;
    if (idle != NULL) {
        log_error("--%s has no effect in the modes of --mode%s; leave it out", idle,
                  exchanges ? "" : " with one worker");
        return STATUS_INVALID;
    }
    return STATUS_OK;
}

static enum status check_outputs(const struct predict_options *options)
{
    if (strcmp(options->faults, "none") != 0 && options->advise) {
        log_error("--fault has no effect with --advise, which searches without faults; leave it "
                  "out");
        return STATUS_INVALID;
    }
    if (options->out[0] != '\0' && options->advise) {
        log_error("--out has no effect with --advise, whose result is text; leave it out");
        return STATUS_INVALID;
    }
    if (options->out[0] != '\0' && options->json) {
        log_error("--out writes predictions.json, which is what --json prints; leave --json out");
        return STATUS_INVALID;
    }
    return STATUS_OK;
}

static enum status check_files(const struct predict_options *options)
{
    if (options->costs[0] == '\0' || options->network[0] == '\0') {
        log_error("--%s is missing: name a file (docs/PREDICT-FILES.md says how)",
                  options->costs[0] == '\0' ? "costs" : "network");
        return STATUS_INVALID;
    }
    return STATUS_OK;
}

static void take_places(const struct network *network, struct study *study)
{
    uint32_t places = 0;
    for (uint32_t i = 0; i < network->host_count && places < STUDY_WORKERS_MAX; i++) {
        places += network->hosts[i].workers;
    }
    study->workers[0] = places < STUDY_WORKERS_MAX ? places : STUDY_WORKERS_MAX;
    study_cross(study);
}

static bool has_faults(const struct predict_options *options)
{
    return strcmp(options->faults, "none") != 0;
}

/* Files that were measured under other conditions than those of the jobs that are predicted. */
static void warn_of_conditions(const struct predict_options *options, const struct costs *costs,
                               const struct network *network)
{
    char why[CONDITIONS_TEXT_BYTES + 64];
    const struct conditions_job job = {options->transport, network->host_count == 1,
                                       options->compress.kind != CODEC_NONE};
    if (conditions_clash(&costs->conditions, &network->conditions, &job, why, sizeof(why))) {
        log_warn("%s and %s: %s; measure both as the job will run (ringside calibrate)",
                 options->costs, options->network, why);
    }
}

static enum status predict(const struct predict_options *options, struct study *study,
                           struct fault_study *faults, struct costs *costs)
{
    struct network network = {0};
    enum status status = cost_batches_take(options->costs, options->batch, costs);
    if (status == STATUS_OK) {
        status = network_read(options->network, &network);
    }
    if (status != STATUS_OK) {
        return status;
    }
    warn_of_conditions(options, costs, &network);
    struct convergence convergence = {NULL, 0};
    study->costs = costs;
    study->network = &network;
    if (options->convergence[0] != '\0') {
        status = convergence_read(options->convergence, &convergence);
        study->convergence = &convergence;
    }
    if (status == STATUS_OK && options->takes_places) {
        take_places(&network, study);
    }
    if (status == STATUS_OK && options->out[0] != '\0') {
        status = folder_make(options->out, NULL);
    }
    if (status == STATUS_OK) {
        status = options->advise ? predict_results_advise(study, options->is_kept, options->json)
                                 : predict_results_make(study, faults, options->json, options->out,
                                                        options->command);
    }
    convergence_finish(&convergence);
    network_finish(&network);
    return status;
}

/* What advice takes where the command line does not say it. */
static void fill_advice(const struct option_program *program, struct predict_options *options)
{
    if (!options_was_given(program, "mode")) {
        snprintf(options->modes, sizeof(options->modes), "%s", ADVICE_MODES);
    }
    if (!options_was_given(program, "workers")) {
        options->takes_places = true;
        snprintf(options->workers, sizeof(options->workers), "%d", STUDY_WORKERS_MAX);
    }
    for (size_t axis = 0; axis < ADVICE_AXES; axis++) {
        const char *name = advice_axes[axis].option;
        options->is_kept[axis] = name != NULL && options_was_given(program, name);
    }
}

static void fill_study(const struct predict_options *options, struct study *study)
{
    struct option_set set = job_option_set(&study->job);
    options_reset(&set);
    study->job.bucket_mb = options->bucket_mb;
    study->job.all_reduce = options->all_reduce;
    study->job.transport = options->transport;
    study->job.compress = options->compress;
    study->job.gradients_per_update = options->gradients_per_update;
    study->job.backup = options->backup;
    study->job.sync_every = options->sync_every;
    study->job.seed = options->seed;
    snprintf(study->job.straggler, sizeof(study->job.straggler), "%s", options->straggler);
    study->costs_file = options->costs;
    study->network_file = options->network;
    study->counted = options->steps;
    study->is_approximate = options->approximate;
    study->threads = options->threads;
}

static enum exit_code run(int argc, char **argv, struct study *study, struct fault_study *faults,
                          struct costs *costs)
{
    struct predict_options options = {.advise = false};
    bool is_done = false;
    struct option_program program = {
        .name = "ringside predict",
        .usage = "ringside predict --costs FILE --network FILE [-m LIST] [-n LIST] [OPTION ...]",
        .summary =
            "Predicts how fast a job would be: goes through the steps of all its workers in "
            "virtual time, with\nthe buckets, ring plans and windows of the product, over costs "
            "and a network that you describe.\nBelow the table stands what the model leaves out. "
            "Options of jobs that it does not read are refused.",
        .example = "  ringside predict --costs costs.json --network network.json -n 8,64\n"
                   "  ringside predict --costs costs.json --network network.json --mode ps-sync "
                   "--servers 1,4 -n 16,64 --what-if link=2x --json\n"
                   "  ringside predict --costs costs.json --network network.json --advise\n",
        .sets = {{.title = "Options", .rows = rows, .count = ROW_COUNT, .values = &options}},
        .set_count = 1,
        .takes_arguments_alone = true,
    };
    if (check_model(argc, argv) != STATUS_OK ||
        options_parse(&program, argc, argv, &is_done) != STATUS_OK) {
        return EXIT_USAGE;
    }
    if (is_done) {
        return EXIT_COMPLETED;
    }
    if (options.advise) {
        fill_advice(&program, &options);
    }
    command_text_write(argc, argv, options.command);
    fill_study(&options, study);
    if (check_files(&options) != STATUS_OK || check_outputs(&options) != STATUS_OK ||
        study_take_what_ifs(options.what_ifs, study) != STATUS_OK ||
        study_take_lists(options.modes, options.servers, options.workers, study) != STATUS_OK ||
        check_effects(&program, study, options.advise) != STATUS_OK ||
        (has_faults(&options) &&
         fault_study_take(study, options.faults, options.job_steps, faults) != STATUS_OK)) {
        return EXIT_USAGE;
    }
    return exit_code(predict(&options, study, faults, costs));
}

enum exit_code command_predict(int argc, char **argv)
{
    struct study *study = calloc(1, sizeof(*study));
    struct fault_study *faults = calloc(1, sizeof(*faults));
    struct costs *costs = calloc(1, sizeof(*costs));
    enum exit_code code = EXIT_FAILED;
    if (study != NULL && faults != NULL && costs != NULL) {
        code = run(argc, argv, study, faults, costs);
    }
    if (study != NULL) {
        study_finish(study);
    }
    free(costs);
    free(faults);
    free(study);
    return code;
}
