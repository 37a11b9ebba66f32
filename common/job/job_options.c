/* The options of a job, a row each, and the checks of single values. */
#include "common/job/job_options.h"

#include "common/codec/codec.h"
#include "common/job/order.h"
#include "common/job/straggler.h"
#include "common/job/switches.h"
#include "common/options/names.h"
#include "common/transport/lanes.h"

#include <stdio.h>
#include <string.h>

#define FIELD(kind, field) OPTION_FIELD(kind, job, field)

// What an option of the optimizer's settings points to.
#define SETTING(field)                                                                     \
    .type = OPTION_REAL,                                                                   \
    .offset = offsetof(struct job, settings) + offsetof(struct optimizer_settings, field), \
    .size = sizeof(double)

static bool compress_parse(const char *text, void *ret_field, char *ret_why, size_t why_size)
{
    return codec_parse(text, ret_field, ret_why, why_size) == STATUS_OK;
}

static void compress_format(const void *field, char *ret_text, size_t text_size)
{
    char text[CODEC_TEXT_BYTES];
    codec_text(field, text);
    snprintf(ret_text, text_size, "%s", text);
}

static bool data_is_valid(const char *text, char *ret_why, size_t why_size)
{
    static const bool takes_path[] = {
#define X(identifier, name, takes, summary) takes,
        DATASET_MAP(X)
#undef X
    };
    char name[JOB_NAME_BYTES];
    const char *path, *known[sizeof(takes_path) / sizeof(takes_path[0])];
    job_split_data(text, name, &path);
    for (size_t i = 0; names_datasets[i].name != NULL; i++) {
        known[i] = names_datasets[i].name;
        if (strcmp(known[i], name) != 0) {
            continue;
        }
        if (takes_path[i] && path[0] == '\0') {
            snprintf(ret_why, why_size, "%s needs the folder of its files: %s:DIR", name, name);
            return false;
        }
        if (!takes_path[i] && strchr(text, ':') != NULL) {
            snprintf(ret_why, why_size, "%s takes no path", name);
            return false;
        }
        return true;
    }
    const char *nearest = options_nearest(name, known, sizeof(takes_path) / sizeof(takes_path[0]));
    snprintf(ret_why, why_size, "there is no dataset '%s'%s%s%s", name,
             nearest != NULL ? "; did you mean " : "", nearest != NULL ? nearest : "",
             nearest != NULL ? "?" : "; see --help for the list");
    return false;
}

static bool device_is_valid(const char *text, char *ret_why, size_t why_size)
{
    static const char *const known[] = {"auto", "ref", "cpu", "cuda"};
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        if (strcmp(known[i], text) == 0) {
            return true;
        }
    }
    size_t digits = strncmp(text, "cuda:", 5) == 0 ? strspn(text + 5, "0123456789") : 0;
    if (digits > 0 && digits < 5 && text[5 + digits] == '\0') {
        return true;
    }
    snprintf(ret_why, why_size, "a device is auto, ref, cpu, cuda or cuda:INDEX");
    return false;
}

static bool mode_is_valid(const char *text, char *ret_why, size_t why_size)
{
    struct mode mode;
    if (mode_parse(text, &mode) != STATUS_OK) {
        snprintf(ret_why, why_size,
                 "the bound of ps-ssp is a whole number of steps from 0 to %d: ps-ssp:2",
                 MODE_SLACK_MAX);
        return false;
    }
    return true;
}

static bool switch_is_valid(const char *text, char *ret_why, size_t why_size)
{
    struct switch_rules rules;
    return switch_parse(text, &rules, ret_why, why_size) == STATUS_OK;
}

static bool straggler_is_valid(const char *text, char *ret_why, size_t why_size)
{
    struct straggler straggler;
    return straggler_parse(text, &straggler, ret_why, why_size) == STATUS_OK;
}

static bool order_is_valid(const char *text, char *ret_why, size_t why_size)
{
    struct order order;
    return order_parse(text, &order, ret_why, why_size) == STATUS_OK;
}

static const struct option_choice bucket_sizes[] = {
    {"auto", "tries 0.25, 1, 4 and 16 in the first steps of the job and keeps the fastest; the "
             "choice depends on timing, and the bits of sums on the choice"},
    {NULL, NULL},
};

const struct option job_options[] = {
    {.name = "mode",
     .letter = 'm',
     FIELD(CHOICE, mode),
     .fallback = "ps-sync",
     OPTION_RANGE(0, MODE_SLACK_MAX),
     .choices = mode_choices,
     .is_valid = mode_is_valid,
     .help = "the design: how gradients are exchanged"},
    {.name = "workers",
     .letter = 'n',
     FIELD(U32, workers),
     .fallback = "2",
     OPTION_RANGE(1, JOB_WORKERS_MAX),
     .metavar = "COUNT",
     .help = "training processes"},
    {.name = "servers",
     .letter = 's',
     FIELD(U32, servers),
     .fallback = "1",
     OPTION_RANGE(0, JOB_SERVERS_MAX),
     .metavar = "COUNT",
     .help = "parameter-server processes, each with a shard of the parameters; ps modes only"},
    {.name = "server-threads",
     FIELD(U32, server_threads),
     .fallback = "1",
     OPTION_RANGE(1, JOB_SERVERS_MAX),
     .metavar = "COUNT",
     .help = "threads of each server; each holds a shard of its own, with a socket of its own"},
    {.name = "model",
     FIELD(NAME, model),
     .fallback = "cnn",
     .choices = names_models,
     .help = "the network"},
    {.name = "data",
     FIELD(TEXT, data),
     .fallback = "shapes",
     .choices = names_data,
     .is_valid = data_is_valid,
     .metavar = "NAME[:DIR]",
     .help = "the images"},
    {.name = "image-size",
     FIELD(U32, image_size),
     .fallback = "0",
     OPTION_RANGE(0, JOB_IMAGE_SIZE_MAX),
     .metavar = "PIXELS",
     .help = "scale images to this many rows and columns (bilinear); 0: keep their size"},
    {.name = "batch",
     .letter = 'b',
     FIELD(U32, batch),
     .fallback = "0",
     OPTION_RANGE(0, JOB_BATCH_MAX),
     .metavar = "IMAGES",
     .help = "images per worker and step; 0: from --global-batch, or 32"},
    {.name = "global-batch",
     FIELD(U32, global_batch),
     .fallback = "0",
     OPTION_RANGE(0, JOB_BATCH_MAX),
     .metavar = "IMAGES",
     .help = "images per step of all workers together; 0: workers times --batch"},
    {.name = "epochs",
     .letter = 'e',
     FIELD(U32, epochs),
     .fallback = "0",
     OPTION_RANGE(0, 1000000),
     .metavar = "COUNT",
     .help = "passes over the training images; 0: from --steps, or 1"},
    {.name = "steps",
     FIELD(U64, steps),
     .fallback = "0",
     OPTION_RANGE(0, 1e15),
     .metavar = "COUNT",
     .help = "steps to train instead of whole epochs"},
    {.name = "optimizer",
     FIELD(CHOICE, optimizer),
     .fallback = "momentum",
     .choices = names_optimizers,
     .help = "how a gradient changes the parameters"},
    {.name = "lr",
     FIELD(REAL, lr),
     .fallback = "0",
     OPTION_RANGE(0, 1e6),
     .metavar = "RATE",
     .help = "learning rate; 0: the optimizer's default"},
    {.name = "momentum",
     SETTING(momentum),
     .fallback = "0.9",
     OPTION_RANGE(0, 0.999999),
     .metavar = "FACTOR",
     .help = "of momentum and nesterov"},
    {.name = "beta1",
     SETTING(beta1),
     .fallback = "0.9",
     OPTION_RANGE(0, 0.999999),
     .metavar = "FACTOR",
     .help = "decay of the first moment, of adam and adamw"},
    {.name = "beta2",
     SETTING(beta2),
     .fallback = "0.999",
     OPTION_RANGE(0, 0.9999999),
     .metavar = "FACTOR",
     .help = "decay of the second moment, of adam and adamw"},
    {.name = "decay",
     SETTING(decay),
     .fallback = "0",
     OPTION_RANGE(0, 0.9999999),
     .metavar = "FACTOR",
     .help = "alpha of rmsprop, rho of adadelta; 0: the optimizer's default"},
    {.name = "epsilon",
     SETTING(epsilon),
     .fallback = "0",
     OPTION_RANGE(0, 1),
     .metavar = "VALUE",
     .help = "added to denominators of the adaptive optimizers; 0: the optimizer's default"},
    {.name = "weight-decay",
     SETTING(weight_decay),
     .fallback = "0",
     OPTION_RANGE(0, 1),
     .metavar = "FACTOR",
     .help = "L2 penalty on the parameters; decoupled for adamw"},
    {.name = "lr-scale",
     FIELD(CHOICE, lr_scale),
     .fallback = "none",
     .choices = lr_scale_choices,
     .help = "how the rate follows the number of workers"},
    {.name = "lr-workers",
     FIELD(U32, lr_workers),
     .fallback = "0",
     OPTION_RANGE(0, JOB_WORKERS_MAX),
     .metavar = "COUNT",
     .help = "number of workers that --lr-scale linear counts; 0: --workers, even where mode local "
             "runs with one"},
    {.name = "warmup-epochs",
     FIELD(REAL, warmup_epochs),
     .fallback = "0",
     OPTION_RANGE(0, 1e6),
     .metavar = "EPOCHS",
     .help = "linear warm-up: from the rate of one worker to the scaled rate, or from near 0 if "
             "the rate is not scaled"},
    {.name = "lr-schedule",
     FIELD(CHOICE, lr_schedule),
     .fallback = "constant",
     .choices = lr_schedule_choices,
     .help = "the rate after the warm-up"},
    {.name = "lr-step-epochs",
     FIELD(REAL, lr_step_epochs),
     .fallback = "30",
     OPTION_RANGE(0.001, 1e6),
     .metavar = "EPOCHS",
     .help = "period of the step schedule"},
    {.name = "lr-gamma",
     FIELD(REAL, lr_gamma),
     .fallback = "0.1",
     OPTION_RANGE(0, 1),
     .metavar = "FACTOR",
     .help = "factor of the step schedule"},
    {.name = "seed",
     FIELD(U64, seed),
     .fallback = "1",
     OPTION_RANGE(0, 9007199254740992.0),
     .metavar = "SEED",
     .help = "of everything random: first parameters, order of samples, dropout, drawn images"},
    {.name = "shard",
     FIELD(CHOICE, shard),
     .fallback = "global",
     .choices = sample_split_choices,
     .help = "how samples are dealt to workers"},
    {.name = "eval",
     FIELD(CHOICE, eval),
     .fallback = "epoch",
     .choices = evaluation_choices,
     .help = "when to evaluate"},
    {.name = "eval-every",
     FIELD(U64, eval_every),
     .fallback = "0",
     OPTION_RANGE(0, 1e15),
     .metavar = "STEPS",
     .help = "steps between evaluations, the last one at the end; 0: at the end of each epoch"},
    {.name = "target-accuracy",
     FIELD(REAL, target_accuracy),
     .fallback = "0",
     OPTION_RANGE(0, 1),
     .metavar = "FRACTION",
     .help = "end the job at the first evaluation that reaches this accuracy, such as 0.9; 0: no "
             "target"},
    {.name = "limit-train",
     FIELD(U64, limit_train),
     .fallback = "0",
     OPTION_RANGE(0, 1e12),
     .metavar = "IMAGES",
     .help = "use only this many training images, from the first; 0: all"},
    {.name = "limit-test",
     FIELD(U64, limit_test),
     .fallback = "0",
     OPTION_RANGE(0, 1e12),
     .metavar = "IMAGES",
     .help = "use only this many test images, from the first; 0: all"},
    {.name = "device",
     FIELD(TEXT, device),
     .fallback = "auto",
     .is_valid = device_is_valid,
     .metavar = "NAME",
     .help = "what workers compute on: auto, ref, cpu, cuda or cuda:INDEX"},
    {.name = "threads",
     .letter = 't',
     FIELD(U32, threads),
     .fallback = "0",
     OPTION_RANGE(0, 1024),
     .metavar = "COUNT",
     .help = "compute threads of each worker; 0: the host's cores shared out among its workers"},
    {.name = "conv",
     FIELD(CHOICE, conv),
     .fallback = "auto",
     .choices = conv_choices,
     .help = "algorithm of convolutions on cpu"},
    {.name = "precision",
     FIELD(CHOICE, precision),
     .fallback = "fp32",
     .choices = precision_choices,
     .help = "what is computed in"},
    {.name = "allow-nondeterministic",
     FIELD(FLAG, allow_nondeterministic),
     .fallback = "false",
     .help = "allow faster algorithms whose bits differ from run to run; cuda"},
    {.name = "cuda-graphs",
     FIELD(FLAG, cuda_graphs),
     .fallback = "true",
     .help = "capture what a step launches on a GPU, and replay it as a few CUDA graphs; the same "
             "bits as "
             "kernel by kernel (--no-cuda-graphs)"},
    {.name = "cuda-sync-check",
     FIELD(FLAG, cuda_sync_check),
     .fallback = "false",
     .help = "wait for each operation on a GPU, and name the one that fails with its shapes; slow, "
             "and without CUDA graphs"},
    {.name = "bucket-mb",
     FIELD(REAL, bucket_mb),
     .fallback = "1",
     OPTION_RANGE(0.001, 65536),
     .choices = bucket_sizes,
     .metavar = "MIB",
     .help = "size of the buckets in which gradients travel"},
    {.name = "order",
     FIELD(TEXT, order),
     .fallback = "free",
     .is_valid = order_is_valid,
     .metavar = "ORDER",
     .help = "of updates in ps-ssp and ps-async: free (races decide), or drawn from --seed: "
             "seeded:round-robin, seeded:constant:S, seeded:uniform:A..B, seeded:geometric:P"},
    {.name = "delay-model",
     FIELD(CHOICE, delay_model),
     .fallback = "server",
     .choices = delay_model_choices,
     .help = "whose delay a seeded order draws"},
    {.name = "switch",
     FIELD(LIST, switches),
     .fallback = "none",
     .is_valid = switch_is_valid,
     .metavar = "WHEN=MODE",
     .help = "change the mode during the job: epoch:3=ps-async after three epochs, step:2000=ring "
             "after 2000 steps; may be repeated"},
    {.name = "backup",
     FIELD(U32, backup),
     .fallback = "0",
     OPTION_RANGE(0, JOB_WORKERS_MAX - 1),
     .metavar = "COUNT",
     .help = "backup workers in ps-sync: an update waits for the gradients of all workers but this "
             "many, and late ones are dropped (Chen et al. 2016)"},
    {.name = "sync-bn",
     FIELD(FLAG, sync_bn),
     .fallback = "false",
     .help = "batch normalisation over the batches of all workers instead of each worker's own; in "
             "ring "
             "and ps-sync"},
    {.name = "sync-every",
     FIELD(U32, sync_every),
     .fallback = "1",
     OPTION_RANGE(1, 1000000),
     .metavar = "STEPS",
     .help = "local SGD: every worker takes this many steps with its own optimizer, then workers "
             "exchange changes of parameters instead of gradients; 1: gradients at every step"},
    {.name = "gradients-per-update",
     FIELD(U32, gradients_per_update),
     .fallback = "1",
     OPTION_RANGE(1, JOB_WORKERS_MAX),
     .metavar = "COUNT",
     .help = "gradients averaged into one update in ps-ssp and ps-async (n-softsync; Gupta et al. "
             "2016)"},
    {.name = "remedy",
     FIELD(CHOICE, remedy),
     .fallback = "none",
     .choices = remedy_choices,
     .help = "what is done to stale gradients in ps-ssp and ps-async"},
    {.name = "remedy-lambda",
     FIELD(REAL, remedy_lambda),
     .fallback = "0",
     OPTION_RANGE(0, 1e6),
     .metavar = "LAMBDA",
     .help = "weight of delay compensation; 0: 0.04 for dc, 2 for dc-adaptive"},
    {.name = "straggler",
     FIELD(LIST, straggler),
     .fallback = "none",
     .is_valid = straggler_is_valid,
     .metavar = "WHO",
     .help = "slows workers down, in every mode alike: rank=R,factor=F (worker R takes F times as "
             "long), or dist=exponential:mean=20ms,share=P (each step is late with probability P); "
             "may be repeated"},
    {.name = "all-reduce",
     FIELD(CHOICE, all_reduce),
     .fallback = "auto",
     .choices = all_reduce_choices,
     .help = "how ring mode adds up gradients; every algorithm ends with the same bits"},
    {.name = "compress",
     FIELD(PARSED, compress),
     .fallback = "none",
     .parse = compress_parse,
     .format = compress_format,
     .metavar = "KIND",
     .help = "send gradients in fewer bytes: none, fp16, bf16, int8 or topk:SHARE; what is lost is "
             "added to the next gradient"},
    {.name = "transport",
     FIELD(CHOICE, transport),
     .fallback = "auto",
     .choices = transport_choices,
     .help = "what gradients and parameters travel over"},
    {.name = "connections",
     FIELD(U32, connections),
     .fallback = "1",
     OPTION_RANGE(1, LANES_MAX),
     .metavar = "COUNT",
     .help = "connections between each pair of processes that exchange over a network: several "
             "help where one does not fill the link, such as where each flow is limited"},
    {.name = "security",
     FIELD(CHOICE, security),
     .fallback = "curve",
     .choices = security_choices,
     .help = "what keys are used for, if there are any"},
    {.name = "report-every",
     FIELD(U32, report_every),
     .fallback = "10",
     OPTION_RANGE(1, 1000000000),
     .metavar = "STEPS",
     .help = "steps between lines of metrics.jsonl at first; intervals grow in a long job"},
    {.name = "start-timeout",
     FIELD(REAL, start_timeout),
     .fallback = "30",
     OPTION_RANGE(0.1, 86400),
     .metavar = "SECONDS",
     .help = "how long to wait for the next process to join or get ready; longer in proportion "
             "where a host has more processes than cores"},
    {.name = "lost-after",
     FIELD(REAL, lost_after),
     .fallback = "5",
     OPTION_RANGE(1, 86400),
     .metavar = "SECONDS",
     .help =
         "silence after which a process counts as lost; longer in proportion where its host has "
         "more processes of the job than cores. A process that is killed is noticed at once; one "
         "that merely gets no processor time on the coordinator's host has --stall-fail"},
    {.name = "stall-warn",
     FIELD(REAL, stall_warn),
     .fallback = "10",
     OPTION_RANGE(0.1, 86400),
     .metavar = "SECONDS",
     .help = "time without a step after which the log says which process waits for which"},
    {.name = "stall-fail",
     FIELD(REAL, stall_fail),
     .fallback = "120",
     OPTION_RANGE(0.1, 86400),
     .metavar = "SECONDS",
     .help = "time without a step after which the job fails"},
};
const size_t job_option_count = sizeof(job_options) / sizeof(job_options[0]);

struct option_set job_option_set(struct job *job)
{
    return (struct option_set){
        .title = "The job", .rows = job_options, .count = job_option_count, .values = job};
}
