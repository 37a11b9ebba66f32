/* Formats lines for the log of the program that has loaded this backend. */
#include "worker/device/cuda/host/report.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define SENTENCE_BYTES 512

static void (*write_line)(enum log_level level, const char *sentence);

static bool is_trial;
static char kept[SENTENCE_BYTES];

void report_set(void (*write)(enum log_level level, const char *sentence))
{
    write_line = write;
}

__attribute__((format(printf, 2, 0))) static void report(enum log_level level, const char *format,
                                                         va_list args)
{
    char sentence[SENTENCE_BYTES];
    vsnprintf(sentence, sizeof(sentence), format, args);
    if (is_trial && level == LOG_ERROR) {
        if (kept[0] == '\0') {
            memcpy(kept, sentence, sizeof(kept));
        }
        return;
    }
    if (write_line != NULL) {
        write_line(level, sentence);
    }
}

void report_begin_trial(void)
{
    is_trial = true;
    kept[0] = '\0';
}

const char *report_end_trial(void)
{
    is_trial = false;
    return kept;
}

void report_error(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    report(LOG_ERROR, format, args);
    va_end(args);
}

void report_warn(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    report(LOG_WARN, format, args);
    va_end(args);
}

void report_info(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    report(LOG_INFO, format, args);
    va_end(args);
}
