/* The folder `tensorboard` of a run: what TensorBoard shows of it, as it is trained.
 *
 * It has a folder for the mean over all ranks, and one for each rank, so TensorBoard draws them as
 * runs beside each other. What is written are the lines of metrics.jsonl, so as many; the mean once
 * every rank has a new one. The mean has the job's options as well, as a text and as
 * hyper-parameters, and how the job ended. */
#ifndef PS_SERVER_RECORD_TENSORBOARD_H
#define PS_SERVER_RECORD_TENSORBOARD_H

#include "common/base/status.h"
#include "common/job/job.h"
#include "ps-server/record/metrics.h"

#include <stdbool.h>
#include <stdint.h>

#define TENSORBOARD_RANKS_MAX  64 // of more ranks, the first ones have folders of their own
#define TENSORBOARD_PATH_BYTES 4160

struct tensorboard;

/* Writes nothing. Borrows the job until the end. STATUS_NO_MEMORY. */
enum status tensorboard_create(const char *run_folder, const struct job *job,
                               struct tensorboard **ret_tensorboard);
void tensorboard_destroy(struct tensorboard *tensorboard); // NULL is fine

/* Makes the folder below the run folder, and begins. This and those that follow: STATUS_IO and
 * errno, STATUS_NO_MEMORY. */
enum status tensorboard_begin(struct tensorboard *tensorboard);

/* The job goes on at a step: what was written of later ones is replaced by what comes. */
enum status tensorboard_go_on(struct tensorboard *tensorboard, uint64_t step);

/* A line of metrics.jsonl. */
enum status tensorboard_add(struct tensorboard *tensorboard, uint32_t rank,
                            const struct metrics_line *line);

/* An evaluation at a step. */
enum status tensorboard_add_test(struct tensorboard *tensorboard, uint64_t step, double accuracy,
                                 double loss);

/* The job has ended. */
enum status tensorboard_end(struct tensorboard *tensorboard, bool is_completed);

/* The file or folder that could not be written last. */
const char *tensorboard_path(const struct tensorboard *tensorboard);

#endif
