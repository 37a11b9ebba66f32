/* A program with an option of every type. */
#include "tests/support/common/sample_options.h"

#include "tests/support/common/captured_log.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <string.h>

#define FIELD(kind, field) OPTION_FIELD(kind, sample, field)

#define ARGUMENTS_MAX 8

static bool is_even(const char *text, char *ret_why, size_t why_size)
{
    if (strlen(text) % 2 == 0) {
        return true;
    }
    snprintf(ret_why, why_size, "it has an odd number of characters");
    return false;
}

static const struct option_choice colors[] = {
    {"red", "of fire"},     {"green", "of grass"},
    {"blue", "of the sky"}, {"bluish-or-green", "of the sea"},
    {NULL, NULL},
};

static const struct option rows[] = {
    {.name = "loud",
     .letter = 'l',
     FIELD(FLAG, is_loud),
     .fallback = "false",
     .help = "make noise"},
    {.name = "workers",
     .letter = 'n',
     FIELD(U32, workers),
     .fallback = "2",
     OPTION_RANGE(1, 4096),
     .metavar = "COUNT",
     .help = "processes"},
    {.name = "total-steps",
     FIELD(U64, total_steps),
     .fallback = "0",
     OPTION_RANGE(0, 9007199254740992.0),
     .metavar = "COUNT",
     .help = "steps"},
    {.name = "rate",
     FIELD(REAL, rate),
     .fallback = "0.5",
     OPTION_RANGE(0, 1e6),
     .metavar = "RATE",
     .help = "how fast"},
    {.name = "name",
     FIELD(TEXT, name),
     .fallback = "",
     .metavar = "NAME",
     .help = "what it is called"},
    {.name = "color",
     FIELD(CHOICE, color),
     .fallback = "red",
     .choices = colors,
     .help = "what it looks like"},
    {.name = "items",
     FIELD(LIST, items),
     .fallback = "none",
     .metavar = "ITEM",
     .help = "what it has"},
    {.name = "even",
     FIELD(TEXT, even),
     .fallback = "ab",
     .is_valid = is_even,
     .metavar = "TEXT",
     .help = "an even text"},
};

static const struct option more_rows[] = {
    {.name = "port",
     .letter = 'p',
     FIELD(U32, port),
     .fallback = "0",
     OPTION_RANGE(0, 65535),
     .metavar = "PORT",
     .help = "where it listens"},
};

struct option_program sample_program(struct sample *sample)
{
    memset(sample, 0, sizeof(*sample));
    struct option_program program = {
        .name = "sample",
        .usage = "sample [OPTION ...]",
        .summary = "Does nothing.",
        .example = "  sample --loud\n",
        .sets = {{"First", rows, sizeof(rows) / sizeof(rows[0]), sample},
                 {"Second", more_rows, sizeof(more_rows) / sizeof(more_rows[0]), sample}},
        .set_count = 2,
    };
    options_reset(&program.sets[0]);
    options_reset(&program.sets[1]);
    return program;
}

enum status sample_parse(struct sample *sample, const char *const arguments[8],
                         const char **ret_log)
{
    char copies[ARGUMENTS_MAX][256] = {"sample"};
    char *argv[ARGUMENTS_MAX + 1] = {copies[0]};
    int argc = 1;
    for (; argc < ARGUMENTS_MAX && arguments[argc - 1] != NULL; argc++) {
        snprintf(copies[argc], sizeof(copies[argc]), "%s", arguments[argc - 1]);
        argv[argc] = copies[argc];
    }
    struct option_program program = sample_program(sample);
    bool is_done = true;
    captured_log_begin();
    enum status status = options_parse(&program, argc, argv, &is_done);
    *ret_log = captured_log_end();
    assert_false(is_done);
    return status;
}

void sample_refuse(const char *const arguments[8], const char *text, const char *second_text)
{
    struct sample sample;
    const char *log;
    enum status status = sample_parse(&sample, arguments, &log);
    if (status != STATUS_INVALID) {
        fail_msg("\"%s\" gave \"%s\"", arguments[0], status_text(status));
    }
    const char *line_end = strchr(log, '\n');
    if (line_end == NULL || line_end[1] != '\0') {
        fail_msg("not one line: %s", log);
    }
    if (strstr(log, text) == NULL || strstr(log, second_text) == NULL) {
        fail_msg("\"%s\" or \"%s\" is not in: %s", text, second_text, log);
    }
}
