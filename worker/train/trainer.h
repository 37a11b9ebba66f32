/* Training, as one worker sees it. START READING HERE, with trainer_step in training_step.c.
 *
 * The trainer owns the model, the batches and, where the exchange delivers gradients, the
 * optimizer. It knows nothing of sockets: what travels goes through the exchange, what is told to
 * the coordinator through the link. */
#ifndef WORKER_TRAIN_TRAINER_H
#define WORKER_TRAIN_TRAINER_H

#include "common/base/status.h"
#include "common/job/carriers.h"
#include "common/job/job.h"
#include "worker/data/dataset.h"
#include "worker/device/device.h"
#include "worker/link/link.h"
#include "worker/train/kept_statistics.h"

#include <stdint.h>

struct trainer;
struct loaders;

/* What a trainer works with. Borrowed. */
struct trainer_tools {
    struct device *device;
    const struct dataset *train, *test;
    struct loaders *loaders; // that read them; NULL: a thread for each
    struct trace *trace;     // for a timeline; NULL: none
};

/* For a process that carries these ranks. Logs. */
enum status trainer_create(const struct job *job, struct rank_block ranks,
                           const struct trainer_tools *tools, struct trainer **ret_trainer);
void trainer_destroy(struct trainer *trainer); // NULL is fine; after the link

/* After link_welcome, before link_prepare: a job that is resumed goes on with what its checkpoint
 * has, or its servers, and then with what this process has kept. Logs. */
enum status trainer_restore(struct trainer *trainer, struct link *link,
                            const struct kept_statistics *kept);

/* After trainer_run, which was to be followed by another generation: keeps the statistics of its
 * ranks in the place of others. Without effect if training had not begun. */
void trainer_keep_statistics(struct trainer *trainer, struct kept_statistics *kept);

/* What the link tells the coordinator. Borrowed from the trainer. */
void trainer_describe(const struct trainer *trainer, struct link_prepared *ret_prepared);

/* "program ...": what the device compiled. */
void trainer_describe_program(const struct trainer *trainer, char *ret_text, size_t text_size);

/* Bytes that the trainer has taken of its device's own memory; 0: that has none. */
uint64_t trainer_device_memory(const struct trainer *trainer);

/* All steps of the job, with the evaluations at the ends of epochs; tells the coordinator how it
 * goes, and that it is done, or why not. */
enum status trainer_run(struct trainer *trainer, struct link *link);

#endif
