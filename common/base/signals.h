/* Signals that end a program, and the exit codes of all programs. */
#ifndef COMMON_BASE_SIGNALS_H
#define COMMON_BASE_SIGNALS_H

#include "common/base/status.h"

#include <stdatomic.h>

enum exit_code {
    EXIT_COMPLETED = 0,
    EXIT_FAILED = 1,
    EXIT_USAGE = 2,
    EXIT_LOST = 75,         // as EX_TEMPFAIL of sysexits.h: see exit_code_of_member
    EXIT_INTERRUPTED = 130, // as a shell reports SIGINT
};

/* SIGINT, SIGTERM and, unless it is ignored (nohup), SIGHUP raise the flag; SIGPIPE is ignored. */
void signals_install(void);

/* 0 until a signal came, then its number: for all threads, as the signal may come to any. */
const atomic_int *signals_flag(void);

enum exit_code exit_code(enum status verdict);

/* Of a server or a worker. EXIT_LOST: another process of the job, or the way to it, was lost, so
 * that who starts this one again may have more luck. What would fail again is EXIT_FAILED. */
enum exit_code exit_code_of_member(enum status verdict);

#endif
