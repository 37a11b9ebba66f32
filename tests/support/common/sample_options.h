/* A program with an option of every type, for tests of the options. */
#ifndef TESTS_SUPPORT_COMMON_SAMPLE_OPTIONS_H
#define TESTS_SUPPORT_COMMON_SAMPLE_OPTIONS_H

#include "common/options/options.h"

#include <stdbool.h>
#include <stdint.h>

enum sample_color { SAMPLE_RED, SAMPLE_GREEN, SAMPLE_BLUE, SAMPLE_BLUISH };

struct sample {
    bool is_loud;
    uint32_t workers;
    uint64_t total_steps;
    double rate;
    char name[8];
    enum sample_color color;
    char items[32];
    char even[16]; // must have an even number of characters
    uint32_t port; // of the second set
};

/* Two sets of rows that point into `sample`, which is filled with the defaults. */
struct option_program sample_program(struct sample *sample);

/* options_parse of "sample" and up to seven arguments, the last one NULL. The log is captured:
 * *ret_log is valid until the next call. Help and version are not printed but fail the test. */
enum status sample_parse(struct sample *sample, const char *const arguments[8],
                         const char **ret_log);

/* sample_parse, which must refuse with a log of one line that contains both texts. */
void sample_refuse(const char *const arguments[8], const char *text, const char *second_text);

#endif
