/* What a worker computes with: its datasets, device and trainer, opened for a job. */
#ifndef WORKER_WORKPLACE_H
#define WORKER_WORKPLACE_H

#include "common/base/status.h"
#include "common/job/job.h"
#include "worker/data/dataset.h"
#include "worker/data/normalized.h"
#include "worker/device/device.h"
#include "worker/train/trainer.h"

#include <stdint.h>

#define WORKPLACE_FIGURES_BYTES 128 // of a text of means and deviations

struct workplace {
    struct dataset *train, *test;
    struct loaders *loaders; // that read both
    struct device *device;
    struct trainer *trainer;
    struct kept_statistics kept;           // of the trainer before this one
    char figures[WORKPLACE_FIGURES_BYTES]; // M,M,M/D,D,D of pixels; "": they are not of bytes
    struct trace *trace;                   // borrowed; of the process, for a timeline; NULL: none
};

/* Which of the worker processes it is for. */
struct workplace_seat {
    uint32_t process;    // its number in the job
    uint32_t local_rank; // on this host: picks one of its GPUs
    uint32_t local_size; // workers that share this host's cores; 0: all of the job
};

/* Opens datasets and device. Borrows job. On failure everything is closed again. Logs. */
enum status workplace_open(struct workplace *workplace, const struct job *job,
                           const struct workplace_seat *seat);

/* Builds the trainer, after that: its programs are compiled. Logs. */
enum status workplace_build(struct workplace *workplace, const struct job *job, uint32_t process);
void workplace_clear(struct workplace *workplace); // of what was built
void workplace_close(struct workplace *workplace); // zeroed is fine

/* The parts of workplace_open. The job's options were checked. */
enum status workplace_open_data(struct workplace *workplace, const struct job *job,
                                const struct workplace_seat *seat); // and the device
struct normalization workplace_normalization(const struct job *job);

/* Which images of a job to open, and how. */
struct workplace_images {
    enum dataset_split split;
    const struct dataset *train; // borrowed, see dataset_options
    bool tells;                  // what is unusual about them is logged
    bool keeps;                  // those that are decoded, if the job asks for that
    bool tells_room;             // how many can be kept is logged
};

/* As the model sees them. *normalization is resolved to its figures. */
enum status workplace_open_images(const struct job *job, const struct workplace_images *wanted,
                                  struct normalization *normalization,
                                  struct dataset **ret_dataset);

/* What a trainer is made of; borrows from the workplace. */
struct trainer_tools workplace_tools(const struct workplace *workplace);

#endif
