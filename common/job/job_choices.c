/* What the choices of a job are called, and what --help says of each. */
#include "common/job/job_choices.h"

#include <stddef.h>

const struct option_choice mode_choices[] = {
    {"local", "one worker with the whole global batch, no exchange: the baseline"},
    {"ring", "ring all-reduce among the workers"},
    {"ps-sync", "parameter server: one update a step, from the gradients of all workers"},
    {"ps-ssp:S",
     "parameter server: an update for each gradient; nobody is more than S steps ahead of "
     "the slowest (stale synchronous parallel)"},
    {"ps-async", "parameter server: an update for each gradient; nobody waits for others"},
    {NULL, NULL},
};

const struct option_choice lr_scale_choices[] = {
    {"none", "the rate as it is given"},
    {"linear", "the rate times the number of workers"},
    {NULL, NULL},
};

const struct option_choice lr_schedule_choices[] = {
    {"constant", "the same rate in every step"},
    {"step", "times --lr-gamma every --lr-step-epochs"},
    {"cosine", "down to 0 at the last step, along half a cosine"},
    {NULL, NULL},
};

const struct option_choice sample_split_choices[] = {
    {"global", "every worker takes its slice of one permutation of all samples"},
    {"local", "every worker keeps to a fixed part of the samples"},
    {NULL, NULL},
};

const struct option_choice evaluation_choices[] = {
    {"epoch", "on the test set, at the end of every epoch"},
    {"end", "on the test set, after the last step"},
    {"none", "never"},
    {NULL, NULL},
};

const struct option_choice conv_choices[] = {
    {"auto", "by the shape of each convolution"},
    {"direct", "direct convolution throughout"},
    {"winograd", "Winograd wherever oneDNN has it; 3 has none for x86-64"},
    {NULL, NULL},
};

const struct option_choice precision_choices[] = {
    {"fp32", "float throughout"},
    {"tf32", "float whose products are taken in 10 bits on tensor cores; cuda"},
    {"bf16", "bfloat16 between layers; parameters, gradients and sums stay float; cuda, and cpu "
             "where the processor has it"},
    {NULL, NULL},
};

const struct option_choice security_choices[] = {
    {"curve", "all tcp connections are encrypted and authenticated"},
    {"auth-only", "those to the coordinator are; on those for data headers are authenticated, and "
                  "gradients and parameters travel in clear"},
    {NULL, NULL},
};

const struct option_choice transport_choices[] = {
    {"auto", "shared memory or ipc on one host, tcp across hosts"},
    {"tcp", "TCP throughout"},
    {"ipc", "Unix sockets: all processes on one host"},
    {"shm", "shared memory: values are read where they lie; all processes on one host"},
    {NULL, NULL},
};

const struct option_choice all_reduce_choices[] = {
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

const struct option_choice remedy_choices[] = {
    {"none", "gradients as they come"},
    {"staleness-lr", "a gradient that is tau updates old counts 1/tau (Zhang et al. 2015)"},
    {"dc", "delay compensation (DC-ASGD; Zheng et al. 2017), constant lambda"},
    {"dc-adaptive", "the same, lambda over the root of mean squares"},
    {"momentum", "momentum is lowered by what staleness adds to it (after Mitliagkas et al. 2016)"},
    {NULL, NULL},
};

const struct option_choice delay_model_choices[] = {
    {"server", "how many updates old the parameters are that a gradient is computed on"},
    {"per-worker",
     "how many steps later each worker sees a change made by each (Dai et al. 2018); the server "
     "keeps the parameters and the optimizer of every worker"},
    {NULL, NULL},
};
