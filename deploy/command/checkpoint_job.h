/* What the commands that read checkpoints have in common: the folder in the first place of the
 * command line, the checkpoint in it, and the job that wrote it, given to a worker. */
#ifndef DEPLOY_COMMAND_CHECKPOINT_JOB_H
#define DEPLOY_COMMAND_CHECKPOINT_JOB_H

#include "common/base/status.h"
#include "common/checkpoint/checkpoint_reader.h"
#include "common/job/job.h"
#include "common/options/options.h"

#include <jansson.h>

#include <stdbool.h>
#include <stddef.h>

/* Reads what follows the folder, which is argv[1], as options. STATUS_INVALID, logged, also if
 * there is no folder; *ret_is_done as options_parse has it. */
enum status checkpoint_job_parse(struct option_program *program, int argc, char **argv,
                                 bool *ret_is_done);

/* The newest whole checkpoint in the folder; those that were passed over are warned of. Logs. */
enum status checkpoint_job_open(const char *folder, struct checkpoint_reader **ret_checkpoint);

/* What was opened could not be read: whether that is because a job that goes on has removed it, as
 * it does with its older ones, so that there is a newer one to be opened. False after some `tries`,
 * from 0 on. Logs. */
bool checkpoint_job_was_removed(const struct checkpoint_reader *checkpoint, unsigned tries);

/* The job that wrote the checkpoint. Logs. */
enum status checkpoint_job_read(const struct checkpoint_reader *checkpoint, struct job *ret_job);

/* Runs a worker with the arguments (NULL-terminated, argv[0] left free) and the job on its standard
 * input; its output. Its log goes to error_fd (0: to our standard error). What fails has been
 * logged, by the worker or here. */
enum status checkpoint_job_ask(const char **argv, const struct job *job, int error_fd,
                               char *ret_output, size_t output_size);

/* The layers of the job's model, as a worker describes them (worker/model/description.h), which
 * opens the job's data for that. NULL, logged. The caller owns it. */
json_t *checkpoint_job_describe(const struct job *job);

#endif
