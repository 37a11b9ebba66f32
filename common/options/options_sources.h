/* Sets options from a named source. Private to the options. */
#ifndef COMMON_OPTIONS_OPTIONS_SOURCES_H
#define COMMON_OPTIONS_OPTIONS_SOURCES_H

#include "common/base/status.h"
#include "common/options/options.h"

/* Sets an option, and notes that it was given. `where` is the source ("job.ini:3"), for the log if
 * the name or the value is refused. */
enum status options_set_from(struct option_program *program, const char *where, const char *name,
                             const char *value);

/* Sets what an INI file has: NAME = VALUE, a line each, in any section or none. Logs. */
enum status options_read_file(struct option_program *program, const char *path);

#endif
