/* What a worker computes with: its datasets, device and trainer, opened for a job. */
#ifndef WORKER_WORKPLACE_H
#define WORKER_WORKPLACE_H

#include "common/base/status.h"
#include "common/job/job.h"
#include "worker/data/dataset.h"
#include "worker/device/device.h"
#include "worker/train/trainer.h"

#include <stdint.h>

#define WORKPLACE_FIGURES_BYTES 128 // of a text of means and deviations

struct workplace {
    struct dataset *train, *test;
    struct loaders *loaders; // that read both
    struct device *device;
    struct trainer *trainer;
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

/* --probe: opens the job's workplace as the first worker would, prints one JSON line. Reads the job
 * from standard input. */
enum status workplace_probe(void);

/* --evaluate: opens the newest whole checkpoint in the folder and evaluates it as the job on
 * standard input did, whose data and device may be others. Prints one JSON line. */
enum status workplace_evaluate(const char *folder);

/* --describe-model: prints the layers of the model of the job on standard input, as
 * description_make has them. */
enum status workplace_describe_model(void);

/* --pack: writes the images of the job on standard input to a pack, as JPEG files of this quality
 * (0: pixels), and prints what it has. */
enum status workplace_pack(const char *path, uint32_t quality);

/* --preview: which training images of the job on standard input are drawn, and where to. */
struct workplace_preview {
    const char *path;
    uint32_t epoch, sheet; // from 0
    uint32_t zoom;         // 0: as it fits
};

/* Prints what the sheet has. */
enum status workplace_preview(const struct workplace_preview *preview);

/* --backends: one JSON line each. */
enum status workplace_print_backends(void);

#endif
