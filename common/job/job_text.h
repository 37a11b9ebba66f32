/* A job as text, for the wire: "name=value\n" for every row. Pure. */
#ifndef COMMON_JOB_JOB_TEXT_H
#define COMMON_JOB_JOB_TEXT_H

#include "common/base/status.h"
#include "common/job/job.h"

#include <stdbool.h>
#include <stddef.h>

#define JOB_TEXT_BYTES (16 * 1024)

/* STATUS_INVALID if the text does not fit. */
enum status job_encode(const struct job *job, char *ret_text, size_t text_size);

/* The optimizer of a program of its own, as its processes tell it: "name=value\n" for the rows that
 * make an update; or that the program makes the updates; "": as the job's options say. The row
 * --compress may follow, as the last line. */
#define JOB_OPTIMIZER_TEXT_BYTES 512
#define JOB_OPTIMIZER_OWN        "own\n"

/* Whether a row is one of those. */
bool job_option_is_of_optimizer(const char *name);

void job_encode_optimizer(const struct job *job, char ret_text[JOB_OPTIMIZER_TEXT_BYTES]);

/* Adds the line for how gradients are compressed to such a text, and finds it: where the text ends,
 * if there is none. */
void job_encode_codec(const struct codec *codec, char text[JOB_OPTIMIZER_TEXT_BYTES]);
const char *job_text_codec(const char *text);

/* Takes such a text into a resolved job. The learning rate that it says is the job's, unless the
 * job's options give one, which has to be the same but for its rounding; so is the codec. If the
 * program makes the updates, the job's optimizer is OPTIMIZER_AUTO. STATUS_INVALID, and why, if the
 * job's options name an optimizer, if they do not and the text does not either, if a value is none
 * that an option could have, or if the text is too long or says a row twice. */
enum status job_take_optimizer(struct job *job, const char *whole, char *ret_error,
                               size_t error_size);

/* Checks every value, fails on names that it does not know, and resolves: a job from a peer is as
 * sound as one from the command line. */
enum status job_decode(const char *text, struct job *ret_job, char *ret_error, size_t error_size);

#endif
