/* Lines for the log of the program that has loaded this backend. */
#include "worker/device/cuda/report.h"

#include <stdarg.h>
#include <stdio.h>

#define SENTENCE_BYTES 512

static void (*write_line)(enum log_level level, const char *sentence);

void report_set(void (*write)(enum log_level level, const char *sentence))
{
    write_line = write;
}

__attribute__((format(printf, 2, 0))) static void report(enum log_level level, const char *format,
                                                         va_list args)
{
    char sentence[SENTENCE_BYTES];
    vsnprintf(sentence, sizeof(sentence), format, args);
    if (write_line != NULL) {
        write_line(level, sentence);
    }
}

void report_error(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    report(LOG_ERROR, format, args);
    va_end(args);
}

void report_info(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    report(LOG_INFO, format, args);
    va_end(args);
}
