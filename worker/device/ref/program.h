/* A program of the reference backend: operations run one by one, each result in a buffer of its
 * own. */
#ifndef WORKER_DEVICE_REF_PROGRAM_H
#define WORKER_DEVICE_REF_PROGRAM_H

#include "worker/device/device.h"

/* Logs if there is not enough memory. */
enum status ref_program_create(const struct program_options *options, struct program **ret_program);

void ref_program_describe(const struct program *base, char *ret_text, size_t text_size);

#endif
