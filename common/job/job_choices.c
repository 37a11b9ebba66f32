/* Names the choices of a job, with a line of --help for each. */
#include "common/job/job_choices.h"

#include <stddef.h>

const struct option_choice lr_scale_choices[] = {
    [LR_SCALE_NONE] = {"none", "the rate as given"},
    [LR_SCALE_LINEAR] = {"linear", "the rate times the number of workers"},
    {NULL, NULL},
};

const struct option_choice lr_schedule_choices[] = {
    [SCHEDULE_CONSTANT] = {"constant", "the same rate in every step"},
    [SCHEDULE_STEP] = {"step", "times --lr-gamma every --lr-step-epochs"},
    [SCHEDULE_COSINE] = {"cosine", "down to 0 at the last step, along half a cosine"},
    {NULL, NULL},
};

const struct option_choice sample_split_choices[] = {
    [SAMPLE_SPLIT_GLOBAL] = {"global",
                             "every worker takes a slice of one permutation of all samples"},
    [SAMPLE_SPLIT_LOCAL] = {"local", "every worker keeps a fixed part of the samples"},
    {NULL, NULL},
};

const struct option_choice evaluation_choices[] = {
    [EVALUATION_EPOCH] = {"epoch", "on the test set, at the end of every epoch"},
    [EVALUATION_END] = {"end", "on the test set, after the last step"},
    [EVALUATION_NONE] = {"none", "never"},
    {NULL, NULL},
};

const struct option_choice conv_choices[] = {
    [JOB_CONV_AUTO] = {"auto", "by the shape of each convolution"},
    [JOB_CONV_DIRECT] = {"direct", "direct convolution throughout"},
    [JOB_CONV_WINOGRAD] = {"winograd", "Winograd wherever oneDNN has it; 3 has none for x86-64"},
    {NULL, NULL},
};

const struct option_choice precision_choices[] = {
    [JOB_PRECISION_FP32] = {"fp32", "float throughout"},
    [JOB_PRECISION_TF32] = {"tf32", "float, with products taken in 10 bits on tensor cores; cuda"},
    [JOB_PRECISION_BF16] =
        {"bf16",
         "bfloat16 between layers; parameters, gradients and sums stay float; cuda, and cpu "
         "where the processor has it"},
    {NULL, NULL},
};

const struct option_choice engines_choices[] = {
    [JOB_ENGINES_HEURISTIC] = {"heuristic", "the one that cuDNN proposes first"},
    [JOB_ENGINES_TIMED] =
        {"timed",
         "the fastest of the first 8, timed once for each convolution on a GPU and kept, where "
         "there "
         "is a folder for that (RINGSIDE_CACHE): the first job takes seconds to minutes longer to "
         "start, at most 2 minutes"},
    {NULL, NULL},
};

const struct option_choice security_choices[] = {
    [SECURITY_CURVE] = {"curve", "all tcp connections are encrypted and authenticated"},
    [SECURITY_AUTH_ONLY] =
        {"auth-only",
         "those to the coordinator are; on those for data headers are authenticated, and "
         "gradients and parameters travel in clear"},
    {NULL, NULL},
};

const struct option_choice transport_choices[] = {
    [TRANSPORT_AUTO] = {"auto", "shared memory or ipc on one host, tcp across hosts"},
    [TRANSPORT_TCP] = {"tcp", "TCP throughout"},
    [TRANSPORT_IPC] = {"ipc", "Unix sockets: all processes on one host"},
    [TRANSPORT_SHM] = {"shm",
                       "shared memory: values are read where they lie; all processes on one host"},
    {NULL, NULL},
};

const struct option_choice all_reduce_choices[] = {
    [ALL_REDUCE_CHOICE_AUTO] =
        {"auto",
         "direct in shared memory on one host; by messages ring, halving-doubling or direct for "
         "all buckets of a step, whichever takes the least time by what was measured of the "
         "network"},
    [ALL_REDUCE_CHOICE_RING] = {"ring", "each worker sends to the next, 2(N-1) times, by messages"},
    [ALL_REDUCE_CHOICE_DIRECT] =
        {"direct",
         "one worker adds up each part and sends the mean to all; in shared memory on one host"},
    [ALL_REDUCE_CHOICE_HALVING] =
        {"halving-doubling", "the same, but values and means pass through other workers, so that "
                             "each sends 2 log2 N messages; by messages, even on one host"},
    [ALL_REDUCE_CHOICE_NCCL] = {"nccl",
                                "among GPUs by NVIDIA's NCCL, which is loaded if it is there: "
                                "fast across many GPUs, but in an order of summation of its "
                                "own, so with bits of its own"},
    {NULL, NULL},
};

const struct option_choice cache_choices[] = {
    [JOB_CACHE_NONE] = {"none", "each process decodes what it needs, each time"},
    [JOB_CACHE_RAM] = {"ram", "in memory, as long as the job runs"},
    [JOB_CACHE_DISK] = {"disk", "in the user's folder of caches, for later jobs, too"},
    {NULL, NULL},
};

const struct option_choice bad_images_choices[] = {
    [BAD_IMAGES_FAIL] = {"fail", "the job ends, and names the first"},
    [BAD_IMAGES_SKIP] =
        {"skip",
         "they are left out, counted and named, by a look at the beginning and the end of each "
         "file "
         "before the job starts; in the place of one whose middle is broken comes the next image"},
    {NULL, NULL},
};

const struct option_choice remedy_choices[] = {
    [REMEDY_NONE] = {"none", "nothing"},
    [REMEDY_STALENESS_LR] =
        {"staleness-lr",
         "a gradient that is tau updates old is weighted by 1/tau (Zhang et al. 2015)"},
    [REMEDY_DC] = {"dc", "delay compensation (DC-ASGD; Zheng et al. 2017), constant lambda"},
    [REMEDY_DC_ADAPTIVE] = {"dc-adaptive",
                            "the same, with lambda divided by the root of mean squares"},
    [REMEDY_MOMENTUM] =
        {"momentum",
         "momentum is lowered by what staleness adds to it (after Mitliagkas et al. 2016)"},
    {NULL, NULL},
};

const struct option_choice on_loss_choices[] = {
    [ON_LOSS_AUTO] = {"auto", "redeal in jobs that it is for, fail in others"},
    [ON_LOSS_FAIL] = {"fail", "the job fails, and says which process was lost, and how"},
    [ON_LOSS_REDEAL] =
        {"redeal",
         "the job goes on within a second, from the newest copy of what it had, or, where "
         "gradients "
         "race each other, from what its servers have: the other workers carry the ranks of a lost "
         "one, the other servers the parameters. It ends with the bits of an undisturbed job, "
         "unless gradients race"},
    [ON_LOSS_SHRINK] =
        {"shrink",
         "the job goes on likewise, but without the ranks of a lost worker: nobody computes their "
         "part of the batch, and the mean is over the others, so the bits are others. Modes ring "
         "and ps-sync"},
    [ON_LOSS_COMMIT] =
        {"commit",
         "the processes of a program of its own that are left go on from what it has committed "
         "(ringside.torch.elastic, ringside_commit), and the mean is over them"},
    {NULL, NULL},
};

const struct option_choice coordinator_role_choices[] = {
    [COORDINATOR_WITH_SHARD] = {"shard", "its process is the first server, and holds shard 0"},
    [COORDINATOR_APART] =
        {"alone",
         "its process holds no shard, and there is one process more: when it is killed, all shards "
         "are there still, and training goes on"},
    {NULL, NULL},
};

const struct option_choice server_optimizer_choices[] = {
    [SERVER_OPTIMIZER_JOB] = {"job", "they update the parameters by --optimizer, or by what the "
                                     "program has named, and hand these back"},
    [SERVER_OPTIMIZER_NONE] =
        {"none",
         "they hand back the mean gradient, and hold no parameters: every process makes the "
         "update, by any optimizer that it has; ps-sync, for a program of your own"},
    {NULL, NULL},
};

const struct option_choice delay_model_choices[] = {
    [DELAY_MODEL_SERVER] =
        {"server", "the age, in updates, of the parameters that a gradient is computed on"},
    [DELAY_MODEL_PER_WORKER] = {"per-worker",
                                "how many steps later each worker sees a change made by each (Dai "
                                "et al. 2018); the server "
                                "keeps the parameters and the optimizer of every worker"},
    {NULL, NULL},
};
