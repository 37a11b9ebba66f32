/* What a job had when its generation began, on the disk: for a coordinator that takes over members
 * of that generation (ps-server/returning) when the checkpoint that it went on from was in the
 * memory of the one before, or is not there any more. */
#ifndef PS_SERVER_CHECKPOINT_BEGINNING_H
#define PS_SERVER_CHECKPOINT_BEGINNING_H

#include "common/base/status.h"
#include "common/job/job.h"
#include "ps-server/checkpoint/job_part.h"

#include <jansson.h>

#include <stdint.h>

#define BEGINNING_FILE "begin.json"

/* Writes the job's part of the checkpoint of a step into the run folder, as a whole or not at all.
 * STATUS_IO and errno. */
enum status beginning_write(const char *folder, uint64_t step, const json_t *part);

/* Reads it. STATUS_INVALID, if there is none of that step, or of another job. Until
 * job_part_finish. */
enum status beginning_read(const char *folder, uint64_t step, const struct job *job,
                           struct job_part *ret_part);

/* What is to be noted later, on a thread that may wait for the disk. Copies; NULL: no memory. */
struct beginning;
struct beginning *beginning_create(const char *folder, uint64_t step, const json_t *part);
void beginning_destroy(struct beginning *beginning);

/* Notes it, and ends it. What cannot be written is logged, and does no harm otherwise. */
void beginning_note(void *data);

#endif
