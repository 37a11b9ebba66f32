/* The option table of a job. */
#include "common/codec/codec.h"
#include "common/job/consistency.h"
#include "common/job/job.h"
#include "common/job/order.h"
#include "common/job/phases.h"
#include "common/job/straggler.h"
#include "common/options/names.h"
#include "common/transport/lanes.h"

#include <stdio.h>
#include <string.h>

#define FIELD(name) offsetof(struct job, name), sizeof(((struct job *)0)->name)

// What an option of the optimizer's settings points to.
#define SETTING(name) \
    offsetof(struct job, settings) + offsetof(struct optimizer_settings, name), sizeof(double)

static const struct option_choice modes[] = {
    {"local", "one worker with the whole global batch, no exchange: the baseline"},
    {"ring", "ring all-reduce among the workers"},
    {"ps-sync", "parameter server: one update a step, from the gradients of all workers"},
    {"ps-ssp:S",
     "parameter server: an update for each gradient; nobody is more than S steps ahead of "
     "the slowest (stale synchronous parallel)"},
    {"ps-async", "parameter server: an update for each gradient; nobody waits for others"},
    {NULL, NULL},
};

static const struct option_choice lr_scales[] = {
    {"none", "the rate as it is given"},
    {"linear", "the rate times the number of workers"},
    {NULL, NULL},
};

static const struct option_choice lr_schedules[] = {
    {"constant", "the same rate in every step"},
    {"step", "times --lr-gamma every --lr-step-epochs"},
    {"cosine", "down to 0 at the last step, along half a cosine"},
    {NULL, NULL},
};

static const struct option_choice shards[] = {
    {"global", "every worker takes its slice of one permutation of all samples"},
    {"local", "every worker keeps to a fixed part of the samples"},
    {NULL, NULL},
};

static const struct option_choice evals[] = {
    {"epoch", "on the test set, at the end of every epoch"},
    {"end", "on the test set, after the last step"},
    {"none", "never"},
    {NULL, NULL},
};

static const struct option_choice convs[] = {
    {"auto", "by the shape of each convolution"},
    {"direct", "direct convolution throughout"},
    {"winograd", "Winograd wherever oneDNN has it; 3 has none for x86-64"},
    {NULL, NULL},
};

static const struct option_choice precisions[] = {
    {"fp32", "float throughout"},
    {"tf32", "float whose products are taken in 10 bits on tensor cores; cuda"},
    {"bf16", "bfloat16 between layers; parameters, gradients and sums stay float; cuda, and cpu "
             "where the processor has it"},
    {NULL, NULL},
};

static const struct option_choice securities[] = {
    {"curve", "all tcp connections are encrypted and authenticated"},
    {"auth-only", "those to the coordinator are; on those for data headers are authenticated, and "
                  "gradients and parameters travel in clear"},
    {NULL, NULL},
};

static const struct option_choice transports[] = {
    {"auto", "shared memory or ipc on one host, tcp across hosts"},
    {"tcp", "TCP throughout"},
    {"ipc", "Unix sockets: all processes on one host"},
    {"shm", "shared memory: values are read where they lie; all processes on one host"},
    {NULL, NULL},
};

static bool compress_is_valid(const char *text, char *ret_why, size_t why_size)
{
    struct codec codec;
    return codec_parse(text, &codec, ret_why, why_size) == STATUS_OK;
}

static const struct option_choice all_reduces[] = {
    {"auto",
     "direct in shared memory on one host; by messages halving-doubling or direct for small "
     "buckets and ring for large ones, by what the network was measured to take"},
    {"ring", "each gives to the next, 2(N-1) times, by messages"},
    {"direct",
     "each part is added up by one worker, who gives the mean to all; in shared memory on "
     "one host"},
    {"halving-doubling",
     "the same, but values and means go by way of others, so that each worker sends 2 log2 N "
     "messages; by messages also on one host"},
    {NULL, NULL},
};

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
    struct consistency consistency;
    if (strncmp(text, "ps-ssp:", 7) == 0 && consistency_find(text, &consistency) != STATUS_OK) {
        snprintf(ret_why, why_size,
                 "the bound of ps-ssp is a whole number of steps from 0 to %d: ps-ssp:2",
                 CONSISTENCY_SLACK_MAX);
        return false;
    }
    return true;
}

static const struct option_choice remedies[] = {
    {"none", "gradients as they come"},
    {"staleness-lr", "a gradient that is tau updates old counts 1/tau (Zhang et al. 2015)"},
    {"dc", "delay compensation (DC-ASGD; Zheng et al. 2017), constant lambda"},
    {"dc-adaptive", "the same, lambda over the root of mean squares"},
    {"momentum", "momentum is lowered by what staleness adds to it (after Mitliagkas et al. 2016)"},
    {NULL, NULL},
};

static const struct option_choice delay_models[] = {
    {"server", "how many updates old the parameters are that a gradient is computed on"},
    {"per-worker",
     "how many steps later each worker sees a change made by each (Dai et al. 2018); the server "
     "keeps the parameters and the optimizer of every worker"},
    {NULL, NULL},
};

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
    {"auto", "tries 0.25, 1, 4 and 16 in the job's first steps, and goes on with the fastest; "
             "which that is depends on timing, and the bits of sums on it"},
    {NULL, NULL},
};

#define NO_RANGE 0, 0

const struct option job_options[] = {
    {"mode", 'm', OPTION_CHOICE, FIELD(mode), "ps-sync", NO_RANGE, modes, mode_is_valid, NULL,
     "the design: how gradients are exchanged"},
    {"workers", 'n', OPTION_U32, FIELD(workers), "2", 1, JOB_WORKERS_MAX, NULL, NULL, "COUNT",
     "training processes"},
    {"servers", 's', OPTION_U32, FIELD(servers), "1", 0, JOB_SERVERS_MAX, NULL, NULL, "COUNT",
     "parameter-server processes, each with a shard of the parameters; ps modes only"},
    {"server-threads", 0, OPTION_U32, FIELD(server_threads), "1", 1, JOB_SERVERS_MAX, NULL, NULL,
     "COUNT", "threads of each server; each holds a shard of its own, with a socket of its own"},
    {"model", 0, OPTION_CHOICE, FIELD(model), "cnn", NO_RANGE, names_models, NULL, NULL,
     "the network"},
    {"data", 0, OPTION_TEXT, FIELD(data), "shapes", NO_RANGE, names_data, data_is_valid,
     "NAME[:DIR]", "the images"},
    {"image-size", 0, OPTION_U32, FIELD(image_size), "0", 0, JOB_IMAGE_SIZE_MAX, NULL, NULL,
     "PIXELS", "scale images to so many rows and columns (bilinear); 0: as the data have them"},
    {"batch", 'b', OPTION_U32, FIELD(batch), "0", 0, JOB_BATCH_MAX, NULL, NULL, "IMAGES",
     "images per worker and step; 0: from --global-batch, or 32"},
    {"global-batch", 0, OPTION_U32, FIELD(global_batch), "0", 0, JOB_BATCH_MAX, NULL, NULL,
     "IMAGES", "images per step of all workers together; 0: workers times --batch"},
    {"epochs", 'e', OPTION_U32, FIELD(epochs), "0", 0, 1000000, NULL, NULL, "COUNT",
     "passes over the training images; 0: from --steps, or 1"},
    {"steps", 0, OPTION_U64, FIELD(steps), "0", 0, 1e15, NULL, NULL, "COUNT",
     "steps to train instead of whole epochs"},
    {"optimizer", 0, OPTION_CHOICE, FIELD(optimizer), "momentum", NO_RANGE, names_optimizers, NULL,
     NULL, "how a gradient changes the parameters"},
    {"lr", 0, OPTION_REAL, FIELD(lr), "0", 0, 1e6, NULL, NULL, "RATE",
     "learning rate; 0: the optimizer's default"},
    {"momentum", 0, OPTION_REAL, SETTING(momentum), "0.9", 0, 0.999999, NULL, NULL, "FACTOR",
     "of momentum and nesterov"},
    {"beta1", 0, OPTION_REAL, SETTING(beta1), "0.9", 0, 0.999999, NULL, NULL, "FACTOR",
     "decay of the first moment, of adam and adamw"},
    {"beta2", 0, OPTION_REAL, SETTING(beta2), "0.999", 0, 0.9999999, NULL, NULL, "FACTOR",
     "decay of the second moment, of adam and adamw"},
    {"decay", 0, OPTION_REAL, SETTING(decay), "0", 0, 0.9999999, NULL, NULL, "FACTOR",
     "alpha of rmsprop, rho of adadelta; 0: the optimizer's default"},
    {"epsilon", 0, OPTION_REAL, SETTING(epsilon), "0", 0, 1, NULL, NULL, "VALUE",
     "added to denominators of the adaptive optimizers; 0: the optimizer's default"},
    {"weight-decay", 0, OPTION_REAL, SETTING(weight_decay), "0", 0, 1, NULL, NULL, "FACTOR",
     "L2 penalty on the parameters; decoupled for adamw"},
    {"lr-scale", 0, OPTION_CHOICE, FIELD(lr_scale), "none", NO_RANGE, lr_scales, NULL, NULL,
     "how the rate follows the number of workers"},
    {"lr-workers", 0, OPTION_U32, FIELD(lr_workers), "0", 0, JOB_WORKERS_MAX, NULL, NULL, "COUNT",
     "number of workers that --lr-scale linear counts; 0: --workers, also where mode local "
     "replaces them by one"},
    {"warmup-epochs", 0, OPTION_REAL, FIELD(warmup_epochs), "0", 0, 1e6, NULL, NULL, "EPOCHS",
     "linear warm-up: from the rate of one worker to the scaled one, or from near 0 if it is not "
     "scaled"},
    {"lr-schedule", 0, OPTION_CHOICE, FIELD(lr_schedule), "constant", NO_RANGE, lr_schedules, NULL,
     NULL, "the rate after the warm-up"},
    {"lr-step-epochs", 0, OPTION_REAL, FIELD(lr_step_epochs), "30", 0.001, 1e6, NULL, NULL,
     "EPOCHS", "period of the step schedule"},
    {"lr-gamma", 0, OPTION_REAL, FIELD(lr_gamma), "0.1", 0, 1, NULL, NULL, "FACTOR",
     "factor of the step schedule"},
    {"seed", 0, OPTION_U64, FIELD(seed), "1", 0, 9007199254740992.0, NULL, NULL, "SEED",
     "of everything random: first parameters, order of samples, dropout, drawn images"},
    {"shard", 0, OPTION_CHOICE, FIELD(shard), "global", NO_RANGE, shards, NULL, NULL,
     "how samples are dealt to workers"},
    {"eval", 0, OPTION_CHOICE, FIELD(eval), "epoch", NO_RANGE, evals, NULL, NULL,
     "when to evaluate"},
    {"eval-every", 0, OPTION_U64, FIELD(eval_every), "0", 0, 1e15, NULL, NULL, "STEPS",
     "steps between evaluations, the last one at the end; 0: at the end of each epoch"},
    {"target-accuracy", 0, OPTION_REAL, FIELD(target_accuracy), "0", 0, 1, NULL, NULL, "FRACTION",
     "end the job at the first evaluation that reaches it, such as 0.9; 0: no target"},
    {"limit-train", 0, OPTION_U64, FIELD(limit_train), "0", 0, 1e12, NULL, NULL, "IMAGES",
     "use only the first so many training images; 0: all"},
    {"limit-test", 0, OPTION_U64, FIELD(limit_test), "0", 0, 1e12, NULL, NULL, "IMAGES",
     "use only the first so many test images; 0: all"},
    {"device", 0, OPTION_TEXT, FIELD(device), "auto", NO_RANGE, NULL, device_is_valid, "NAME",
     "what workers compute on: auto, ref, cpu, cuda or cuda:INDEX"},
    {"threads", 't', OPTION_U32, FIELD(threads), "0", 0, 1024, NULL, NULL, "COUNT",
     "compute threads of each worker; 0: the host's cores shared out among its workers"},
    {"conv", 0, OPTION_CHOICE, FIELD(conv), "auto", NO_RANGE, convs, NULL, NULL,
     "algorithm of convolutions on cpu"},
    {"precision", 0, OPTION_CHOICE, FIELD(precision), "fp32", NO_RANGE, precisions, NULL, NULL,
     "what is computed in"},
    {"allow-nondeterministic", 0, OPTION_FLAG, FIELD(allow_nondeterministic), "false", NO_RANGE,
     NULL, NULL, NULL,
     "also use algorithms whose bits differ from run to run, where they are faster; cuda"},
    {"cuda-graphs", 0, OPTION_FLAG, FIELD(cuda_graphs), "true", NO_RANGE, NULL, NULL, NULL,
     "capture what a step launches on a GPU, and replay it as a few CUDA graphs; the same bits as "
     "kernel by kernel (--no-cuda-graphs)"},
    {"bucket-mb", 0, OPTION_REAL, FIELD(bucket_mb), "1", 0.001, 65536, bucket_sizes, NULL, "MIB",
     "size of the buckets in which gradients travel"},
    {"order", 0, OPTION_TEXT, FIELD(order), "free", NO_RANGE, NULL, order_is_valid, "ORDER",
     "of updates in ps-ssp and ps-async: free (races decide), or drawn from --seed: "
     "seeded:round-robin, seeded:constant:S, seeded:uniform:A..B, seeded:geometric:P"},
    {"delay-model", 0, OPTION_CHOICE, FIELD(delay_model), "server", NO_RANGE, delay_models, NULL,
     NULL, "whose delay a seeded order draws"},
    {"switch", 0, OPTION_LIST, FIELD(switches), "none", NO_RANGE, NULL, switch_is_valid,
     "WHEN=MODE",
     "go on in another mode: epoch:3=ps-async after three epochs, step:2000=ring after so many "
     "steps; may be given several times"},
    {"backup", 0, OPTION_U32, FIELD(backup), "0", 0, JOB_WORKERS_MAX - 1, NULL, NULL, "COUNT",
     "backup workers in ps-sync: an update needs the gradients of all workers but so many, and "
     "drops those that come late (Chen et al. 2016)"},
    {"sync-bn", 0, OPTION_FLAG, FIELD(sync_bn), "false", NO_RANGE, NULL, NULL, NULL,
     "batch normalisation over the batches of all workers instead of each worker's own; in ring "
     "and ps-sync"},
    {"sync-every", 0, OPTION_U32, FIELD(sync_every), "1", 1, 1000000, NULL, NULL, "STEPS",
     "local SGD: every worker makes so many steps with an optimizer of its own, then their "
     "changes are exchanged instead of gradients; 1: gradients in every step"},
    {"gradients-per-update", 0, OPTION_U32, FIELD(gradients_per_update), "1", 1, JOB_WORKERS_MAX,
     NULL, NULL, "COUNT",
     "gradients whose mean is an update in ps-ssp and ps-async (n-softsync; Gupta et al. 2016)"},
    {"remedy", 0, OPTION_CHOICE, FIELD(remedy), "none", NO_RANGE, remedies, NULL, NULL,
     "what is done to stale gradients in ps-ssp and ps-async"},
    {"remedy-lambda", 0, OPTION_REAL, FIELD(remedy_lambda), "0", 0, 1e6, NULL, NULL, "LAMBDA",
     "weight of delay compensation; 0: 0.04 for dc, 2 for dc-adaptive"},
    {"straggler", 0, OPTION_LIST, FIELD(straggler), "none", NO_RANGE, NULL, straggler_is_valid,
     "WHO",
     "slows workers down, alike in every mode: rank=R,factor=F (R takes F times as long), or "
     "dist=exponential:mean=20ms,share=P (each step is late with probability P); may be "
     "given several times"},
    {"all-reduce", 0, OPTION_CHOICE, FIELD(all_reduce), "auto", NO_RANGE, all_reduces, NULL, NULL,
     "how ring mode adds up gradients; every algorithm ends with the same bits"},
    {"compress", 0, OPTION_TEXT, FIELD(compress), "none", NO_RANGE, NULL, compress_is_valid, "KIND",
     "gradients in fewer bytes: none, fp16, bf16, int8 or topk:SHARE; what that loses is "
     "added to the next gradient"},
    {"transport", 0, OPTION_CHOICE, FIELD(transport), "auto", NO_RANGE, transports, NULL, NULL,
     "what gradients and parameters travel over"},
    {"connections", 0, OPTION_U32, FIELD(connections), "1", 1, LANES_MAX, NULL, NULL, "COUNT",
     "connections of each two that exchange over a network: several where one does not fill the "
     "link, as where each flow has a limit of its own"},
    {"security", 0, OPTION_CHOICE, FIELD(security), "curve", NO_RANGE, securities, NULL, NULL,
     "what keys are used for, where there are some"},
    {"report-every", 0, OPTION_U32, FIELD(report_every), "10", 1, 1000000000, NULL, NULL, "STEPS",
     "steps between the first lines of metrics.jsonl; a long job has longer intervals later"},
    {"start-timeout", 0, OPTION_REAL, FIELD(start_timeout), "30", 0.1, 86400, NULL, NULL, "SECONDS",
     "how long to wait for the next process to come or to get ready, as many times longer where a "
     "host has more of them than cores"},
    {"lost-after", 0, OPTION_REAL, FIELD(lost_after), "5", 1, 86400, NULL, NULL, "SECONDS",
     "silence of a process after which it counts as lost, as many times longer where its host has "
     "more processes of the job than cores; who is killed is missed at once, and who only starves "
     "on the coordinator's host is given --stall-fail"},
    {"stall-warn", 0, OPTION_REAL, FIELD(stall_warn), "10", 0.1, 86400, NULL, NULL, "SECONDS",
     "time without a step after which the log says who waits for whom"},
    {"stall-fail", 0, OPTION_REAL, FIELD(stall_fail), "120", 0.1, 86400, NULL, NULL, "SECONDS",
     "time without a step after which the job fails"},
};
const size_t job_option_count = sizeof(job_options) / sizeof(job_options[0]);

struct option_set job_option_set(struct job *job)
{
    return (struct option_set){
        .title = "The job", .rows = job_options, .count = job_option_count, .values = job};
}
