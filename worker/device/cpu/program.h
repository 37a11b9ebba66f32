/* A program of the oneDNN backend: nodes run one after the other, their tensors in one arena. */
#ifndef WORKER_DEVICE_CPU_PROGRAM_H
#define WORKER_DEVICE_CPU_PROGRAM_H

#include "worker/device/cpu/node.h"

/* Borrows engine and stream. Logs. */
enum status cpu_program_create(const struct program_options *options, dnnl_engine_t engine,
                               dnnl_stream_t stream, uint32_t threads,
                               struct program **ret_program);

void cpu_program_describe(const struct program *base, char *ret_text, size_t text_size);

#endif
