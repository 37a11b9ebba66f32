/* What a worker is asked for in the place of training: by `ringside`, which has not what it takes.
 */
#ifndef WORKER_ERRANDS_H
#define WORKER_ERRANDS_H

#include "common/base/signals.h"
#include "common/base/status.h"

#include <stdint.h>

/* --probe: opens the job's workplace as the first worker would, prints one JSON line. Reads the job
 * from standard input. EXIT_USAGE: a fault names a step that the job does not have with these
 * data. */
enum exit_code errand_probe(void);

/* --evaluate: opens the newest whole checkpoint in the folder and evaluates it as the job on
 * standard input did, whose data and device may be others. Prints one JSON line. */
enum status errand_evaluate(const char *folder);

/* --describe-model: prints the layers of the model of the job on standard input, as
 * description_make has them. */
enum status errand_describe_model(void);

/* --pack: writes the images of the job on standard input to a pack, as JPEG files of this quality
 * (0: pixels), and prints what it has. */
enum status errand_pack(const char *path, uint32_t quality);

/* --preview: which training images of the job on standard input are drawn, and where to. */
struct errand_preview {
    const char *path;
    uint32_t epoch, sheet; // from 0
    uint32_t zoom;         // 0: as it fits
};

/* Prints what the sheet has. */
enum status errand_preview(const struct errand_preview *preview);

/* --backends: one JSON line each. */
enum status errand_print_backends(void);

#endif
