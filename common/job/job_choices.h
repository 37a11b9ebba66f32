/* The choices that a job makes: an enum for each, and the table of its names. The modes are in
 * mode.h, optimizers, models and datasets in names.h. */
#ifndef COMMON_JOB_JOB_CHOICES_H
#define COMMON_JOB_JOB_CHOICES_H

#include "common/job/all_reduce.h"
#include "common/optimizer/schedule.h"
#include "common/options/options.h"
#include "common/transport/transport_kind.h"

/* How the learning rate follows the number of workers. */
enum lr_scale { LR_SCALE_NONE, LR_SCALE_LINEAR };

/* How samples are dealt to workers. */
enum sample_split {
    SAMPLE_SPLIT_GLOBAL, // slices of one permutation of all samples
    SAMPLE_SPLIT_LOCAL,  // each worker keeps to a fixed part
};

/* What is done about files of images that cannot be decoded. */
enum bad_images { BAD_IMAGES_FAIL, BAD_IMAGES_SKIP };

/* Where decoded images are kept, for all processes of a host. */
enum job_cache { JOB_CACHE_NONE, JOB_CACHE_RAM, JOB_CACHE_DISK };

/* When the test set is evaluated. */
enum evaluation { EVALUATION_EPOCH, EVALUATION_END, EVALUATION_NONE };

/* What workers ask of their device: see worker/device/device.h. */
enum job_conv { JOB_CONV_AUTO, JOB_CONV_DIRECT, JOB_CONV_WINOGRAD };
enum job_engines { JOB_ENGINES_HEURISTIC, JOB_ENGINES_TIMED };
enum job_precision { JOB_PRECISION_FP32, JOB_PRECISION_TF32, JOB_PRECISION_BF16 };

/* What keys are used for. */
enum security_kind {
    SECURITY_CURVE,     // all connections are encrypted
    SECURITY_AUTH_ONLY, // headers of data messages are authenticated, values travel in clear
};

/* What is done to stale gradients: see ps-server/shard/remedy/remedy.h. */
enum remedy_kind {
    REMEDY_NONE,
    REMEDY_STALENESS_LR,
    REMEDY_DC,
    REMEDY_DC_ADAPTIVE,
    REMEDY_MOMENTUM,
};

/* What becomes of a job that loses a process. */
enum on_loss {
    ON_LOSS_AUTO,   // until the job is resolved: redeal where that keeps its bits, otherwise fail
    ON_LOSS_FAIL,   // it fails
    ON_LOSS_REDEAL, // it goes on: the others carry what the lost one had
    ON_LOSS_SHRINK, // it goes on without the lost one's ranks
    ON_LOSS_COMMIT, // its program goes on from its last commit, in the processes that are left
};

/* What the coordinator's process is besides, in modes with servers. */
enum coordinator_role {
    COORDINATOR_WITH_SHARD, // the first server
    COORDINATOR_APART,      // nothing: servers are processes of their own
};

/* What servers do with the mean gradient of a step. */
enum server_optimizer {
    SERVER_OPTIMIZER_JOB,  // they make the job's update, and answer with parameters
    SERVER_OPTIMIZER_NONE, // they hand it back, and each process makes the update
};

/* Whose delay a seeded order draws. */
enum delay_model { DELAY_MODEL_SERVER, DELAY_MODEL_PER_WORKER };

/* How often a job writes checkpoints. */
#define CHECKPOINT_STEPS_MAX   UINT64_C(1000000000000000)
#define CHECKPOINT_MINUTES_MAX UINT64_C(100000)

enum checkpoint_kind {
    CHECKPOINT_NEVER,
    CHECKPOINT_STEPS,
    CHECKPOINT_MINUTES,
    CHECKPOINT_EPOCH,
};

struct checkpoint_every {
    enum checkpoint_kind kind;
    uint64_t number; // of steps or minutes
};

/* Each table is by its enum, and ends with a row whose name is NULL. */
extern const struct option_choice lr_scale_choices[];
extern const struct option_choice lr_schedule_choices[]; // enum schedule_kind
extern const struct option_choice sample_split_choices[];
extern const struct option_choice evaluation_choices[];
extern const struct option_choice conv_choices[];
extern const struct option_choice precision_choices[];
extern const struct option_choice engines_choices[];    // enum job_engines
extern const struct option_choice security_choices[];   // enum security_kind
extern const struct option_choice transport_choices[];  // enum transport_kind
extern const struct option_choice all_reduce_choices[]; // enum all_reduce_choice
extern const struct option_choice bad_images_choices[];
extern const struct option_choice cache_choices[];
extern const struct option_choice remedy_choices[];
extern const struct option_choice on_loss_choices[];
extern const struct option_choice coordinator_role_choices[];
extern const struct option_choice server_optimizer_choices[];
extern const struct option_choice delay_model_choices[];

#endif
