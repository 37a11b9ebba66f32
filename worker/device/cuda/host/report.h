/* Lines for the log, handed to the program that has loaded this backend: it has the log. */
#ifndef WORKER_DEVICE_CUDA_HOST_REPORT_H
#define WORKER_DEVICE_CUDA_HOST_REPORT_H

#include "common/base/log.h"

/* The function that gets each line. NULL: none, and lines are lost. */
void report_set(void (*write)(enum log_level level, const char *sentence));

/* Until the trial ends errors are kept, not written: those of what may fail. */
void report_begin_trial(void);

/* The first sentence that was kept, or ""; valid until the next trial. */
const char *report_end_trial(void);

__attribute__((format(printf, 1, 2))) void report_error(const char *format, ...);
__attribute__((format(printf, 1, 2))) void report_warn(const char *format, ...);
__attribute__((format(printf, 1, 2))) void report_info(const char *format, ...);

#endif
