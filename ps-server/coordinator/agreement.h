/* Checks that all workers would train the same model on the same data. */
#ifndef PS_SERVER_COORDINATOR_AGREEMENT_H
#define PS_SERVER_COORDINATOR_AGREEMENT_H

#include "ps-server/coordinator/coordinator.h"

/* Compares a worker that is ready with those that were ready before it: model, data, first
 * parameters. If something differs, returns false and writes what. */
bool agreement_check(const struct coordinator *coordinator, const struct message *message,
                     char *ret_why, size_t why_size);

/* The first worker that is ready, of a job that is resumed: whether it has the model and the data
 * of the checkpoint. Of another job: true. */
bool agreement_check_resume(const struct coordinator *coordinator, const struct message *message,
                            char *ret_why, size_t why_size);

#endif
