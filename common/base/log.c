/* Writes log lines to standard error. */
#include "common/base/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

// Longer lines are cut: a line is one write. A path may be 4096 bytes long.
#define LINE_BYTES 8192
#define CUT_MARK   "...\n"

static char role_name[32] = "ringside";
static char host_name[65] = "";
static _Atomic int level_max = LOG_WARN;
static _Atomic int64_t rank_of_process = LOG_RANK_NONE;

static log_sink *_Atomic diverted;
static log_output *_Atomic writer; // NULL: standard error

void log_divert(log_sink *sink)
{
    diverted = sink;
}

void log_write_by(log_output *output)
{
    writer = output;
}

/* Any failure but an interruption: there is nowhere to say that standard error is gone. */
static void write_line(const char *line, size_t size)
{
    log_output *output = writer;
    if (output != NULL) {
        output(line, size);
        return;
    }
    while (write(STDERR_FILENO, line, size) < 0 && errno == EINTR) {
    }
}

void log_init(const char *role, enum log_level level)
{
    snprintf(role_name, sizeof(role_name), "%s", role);
    if (gethostname(host_name, sizeof(host_name) - 1) != 0) {
        host_name[0] = '\0';
    }
    level_max = (int)level;
}

void log_raise_level(enum log_level least)
{
    int level = level_max;
    while (level < (int)least && !atomic_compare_exchange_weak(&level_max, &level, (int)least)) {
    }
}

void log_set_rank(int64_t rank)
{
    rank_of_process = rank;
}

static const char *level_name(enum log_level level)
{
    static const char *const names[] = {"error", "warn", "info", "debug"};
    return names[level];
}

/* "2026-11-20T21:04:11.123Z error worker rank=3 host=n1: " */
static int print_head(enum log_level level, char *line)
{
    struct timespec now;
    struct tm parts;
    char rank[32] = "";
    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &parts);
    int64_t number = rank_of_process;
    if (number != LOG_RANK_NONE) {
        snprintf(rank, sizeof(rank), " rank=%lld", (long long)number);
    }
    return snprintf(line, LINE_BYTES,
                    "%04d-%02d-%02dT%02d:%02d:%02d.%03ldZ %s %s%s host=%s: ", parts.tm_year + 1900,
                    parts.tm_mon + 1, parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec,
                    now.tv_nsec / 1000000, level_name(level), role_name, rank, host_name);
}

void log_write(enum log_level level, const char *format, ...)
{
    log_sink *sink = level <= LOG_WARN ? diverted : NULL;
    bool is_written = (int)level <= level_max;
    if (!is_written && sink == NULL) {
        return;
    }
    int error = errno; // which "%m" means; making the time can change it
    char line[LINE_BYTES];
    size_t head = (size_t)print_head(level, line);
    size_t room = sizeof(line) - head - 1; // a place for the newline
    va_list args;
    va_start(args, format);
    errno = error;
    int wrote = vsnprintf(line + head, room, format, args);
    va_end(args);
    if (wrote < 0) {
        return;
    }
    size_t size = head + ((size_t)wrote < room ? (size_t)wrote : room - 1);
    // Text of a peer or a file must not look like a line of ours.
    for (size_t i = head; i < size; i++) {
        if ((unsigned char)line[i] < 0x20 || line[i] == 0x7F) {
            line[i] = '?';
        }
    }
    if (sink != NULL) {
        line[size] = '\0';
        sink(level, line + head);
    }
    if (!is_written) {
        errno = error;
        return;
    }
    line[size++] = '\n';
    if ((size_t)wrote >= room) {
        // NOLINTNEXTLINE(bugprone-not-null-terminated-result): write(2) wants no terminator
        memcpy(line + size - strlen(CUT_MARK), CUT_MARK, strlen(CUT_MARK));
    }
    write_line(line, size);
    errno = error;
}
