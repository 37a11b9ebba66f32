/* Signals that end a program, and the exit codes of all programs. */
#ifndef COMMON_BASE_SIGNALS_H
#define COMMON_BASE_SIGNALS_H

#include "common/base/status.h"

#include <stdatomic.h>

enum exit_code {
    EXIT_COMPLETED = 0,
    EXIT_FAILED = 1,
    EXIT_USAGE = 2,
    EXIT_INTERRUPTED = 130, // as a shell reports SIGINT
};

/* SIGINT, SIGTERM and, unless it is ignored (nohup), SIGHUP raise the flag; SIGPIPE is ignored. */
void signals_install(void);

/* 0 until a signal came, then its number: for all threads, as the signal may come to any. */
const atomic_int *signals_flag(void);

enum exit_code exit_code(enum status verdict);

#endif
