/* Writes what a process has recorded, as a Perfetto trace.
 *
 * Besides its slices, instants and counters, a file says for its readers (deploy/trace):
 *
 *     instant "process"  on the process's track: role, number, host, host-id, coordinator,
 *                        unsynchronised, cores
 *     instant "thread"   on each thread's track: thread, number, dropped (events without room)
 *     instant "ping"     of each thread that asked the coordinator for its clock: sent, there,
 *                        received, in nanoseconds
 *
 * Times are this host's CLOCK_MONOTONIC. */
#ifndef COMMON_TRACE_TRACE_FILE_H
#define COMMON_TRACE_TRACE_FILE_H

#include "common/base/status.h"

struct trace;

/* See trace_write. Logs. */
enum status trace_file_write(const struct trace *trace);

#endif
