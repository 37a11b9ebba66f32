/* What a piece of a test writes to standard error, its log above all. */
#ifndef TESTS_SUPPORT_COMMON_CAPTURED_LOG_H
#define TESTS_SUPPORT_COMMON_CAPTURED_LOG_H

/* From here on, standard error goes to a file. Not nested, one thread. */
void captured_log_begin(void);

/* Standard error is again what it was. Returns what was written since, valid until the next call
 * (its first 64 KiB). */
const char *captured_log_end(void);

/* The teardown of a test that fails before the end: shows what was written, and standard error is
 * what it was. Without it, tests that follow would fail as well. Does nothing after the end. */
int captured_log_drop(void **state);

#endif
