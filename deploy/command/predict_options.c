/* The table of the options of ringside predict. */
#include "deploy/command/predict_options.h"

#include "common/base/log.h"
#include "common/job/job_choices.h"
#include "common/job/job_options.h"
#include "common/job/job_values.h"
#include "deploy/predict/study/parallel.h"

#include <stdio.h>
#include <string.h>

static bool all_reduce_is_valid(const char *text, char *ret_why, size_t why_size)
{
    bool is_valid = strcmp(text, "nccl") != 0;
    if (!is_valid) {
        snprintf(ret_why, why_size, "NCCL's way of adding up is not in the model");
    }
    return is_valid;
}

#define FIELD(kind, field) OPTION_FIELD(kind, predict_options, field)

const struct option predict_option_rows[] = {
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
    {.name = "global-batch",
     FIELD(U32, global_batch),
     .fallback = "0",
     OPTION_RANGE(0, JOB_BATCH_MAX),
     .metavar = "IMAGES",
     .help = "images per step of all workers together, who share them out evenly (strong scaling); "
             "0: workers times --batch. Needs costs of several batches"},
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
const size_t predict_option_count = sizeof(predict_option_rows) / sizeof(predict_option_rows[0]);

static bool has_row(const struct option *list, size_t count, const char *name, size_t size)
{
    for (size_t i = 0; i < count; i++) {
        if (strlen(list[i].name) == size && strncmp(list[i].name, name, size) == 0) {
            return true;
        }
    }
    return false;
}

enum status predict_options_check_model(int argc, char *const *argv)
{
    for (int i = 1; i < argc; i++) {
        const char *name = strncmp(argv[i], "--", 2) == 0 ? argv[i] + 2 : "";
        name += strncmp(name, "no-", 3) == 0 ? 3 : 0;
        size_t size = strcspn(name, "=");
        if (has_row(job_options, job_option_count, name, size) &&
            !has_row(predict_option_rows, predict_option_count, name, size)) {
            log_error(
                "--%.*s is an option of jobs that predictions do not read; leave it out (what "
                "a step costs, whatever is trained, is in the file of --costs)",
                (int)size, name);
            return STATUS_INVALID;
        }
    }
    return STATUS_OK;
}
