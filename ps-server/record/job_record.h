/* What job.json says, as JSON. The keys are the contract with scripts. */
#ifndef PS_SERVER_RECORD_JOB_RECORD_H
#define PS_SERVER_RECORD_JOB_RECORD_H

#include "ps-server/coordinator/coordinator.h"

#include <jansson.h>

/* A tree that the caller owns, or NULL if there is no memory. `given`: the job as somebody has
 * asked for it, whatever it has lost since. `program`: the command line of a program of its own;
 * NULL or "": not known. `has_keys`: its tcp connections have, as --security says. */
json_t *job_record_json(const struct coordinator *coordinator, const struct job *given,
                        const char *program, bool has_keys);

/* The name of an option that says that a job.json is of another job: it may not change when a job
 * is resumed, and has another value than in `given`. NULL: there is none. */
const char *job_record_stranger(const json_t *record, const struct job *given);

/* In whose order gradients were added up. */
const char *job_record_bits_of(const struct job *job);

#endif
