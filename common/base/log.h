/* One line per event, on standard error: time, level, role, rank, host, then a sentence with
 * key=value facts.
 *
 *     2026-11-20T21:04:11.123Z error worker rank=3 host=n1: cannot read ...
 *
 * A line is one write(2), so lines of processes that share a file never mix. Any thread may log. */
#ifndef COMMON_BASE_LOG_H
#define COMMON_BASE_LOG_H

#include <stddef.h>
#include <stdint.h>

enum log_level { LOG_ERROR, LOG_WARN, LOG_INFO, LOG_DEBUG };

#define LOG_RANK_NONE (-1)

/* Before any thread starts: how this process is called in its lines. `role` is copied. */
void log_init(const char *role, enum log_level level);

/* From here on lines up to this level are written, at least. Any thread may call it. */
void log_raise_level(enum log_level least);

/* Once the rank (of a worker) or the shard (of a ps) is known. */
void log_set_rank(int64_t rank);

__attribute__((format(printf, 2, 3))) void log_write(enum log_level level, const char *format, ...);

/* From here on what is logged as an error or a warning goes to `sink` as well, whatever the level:
 * the sentence alone, without the head of the line. Any thread may call it. NULL: to nobody. For a
 * library, whose host hears of errors by its functions. */
typedef void log_sink(enum log_level level, const char *sentence);
void log_divert(log_sink *sink);

/* From here on `output` writes lines, which end with a newline, in the place of standard error. Any
 * thread calls it. NULL: standard error again. */
typedef void log_output(const char *line, size_t size);
void log_write_by(log_output *output);

/* No line is written to standard error. */
#define LOG_SILENT ((enum log_level) - 1)

#define log_error(...) log_write(LOG_ERROR, __VA_ARGS__)
#define log_warn(...)  log_write(LOG_WARN, __VA_ARGS__)
#define log_info(...)  log_write(LOG_INFO, __VA_ARGS__)
#define log_debug(...) log_write(LOG_DEBUG, __VA_ARGS__)

#endif
