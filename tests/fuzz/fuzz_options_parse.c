/* Fuzzes command lines and config files. What is taken comes back from its own text as the same
 * bytes; what is refused has exactly one line of log.
 *
 * The first byte of an input says what the rest is: a command line, its arguments ended by zero
 * bytes, or a config file. */
#include "common/base/log.h"
#include "common/job/job.h"
#include "common/job/job_options.h"
#include "common/options/options_sources.h"

#include <assert.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define ARGUMENTS_MAX 64

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer's name.
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

struct own {
    bool is_loud;
    char name[16];
};

#define FIELD(kind, field) OPTION_FIELD(kind, own, field)

static const struct option own_rows[] = {
    {.name = "loud", .letter = 'l', FIELD(FLAG, is_loud), .fallback = "true", .help = "make noise"},
    {.name = "name",
     FIELD(TEXT, name),
     .fallback = "",
     .metavar = "NAME",
     .help = "what it is called"},
};

struct values {
    struct job job;
    struct own own;
};

static unsigned log_lines;

// Instead of log.c's: standard error is libFuzzer's.
void log_write(enum log_level level, const char *format, ...)
{
    char line[2048];
    va_list args;
    va_start(args, format);
    int wrote = vsnprintf(line, sizeof(line), format, args); // NOLINT(clang-analyzer-valist.*)
    va_end(args);
    assert(wrote > 0 && level == LOG_ERROR);
    log_lines++;
}

static struct option_program program_of(struct values *values)
{
    return (struct option_program){
        .name = "fuzz",
        .usage = "fuzz",
        .summary = "",
        .sets = {job_option_set(&values->job),
                 {"Own", own_rows, sizeof(own_rows) / sizeof(own_rows[0]), &values->own}},
        .set_count = 2,
    };
}

/* Every value, written and read into another program's values, is the same. */
static void check_values(const struct values *values)
{
    static struct values copy;
    memset(&copy, 0, sizeof(copy));
    struct values source = *values;
    struct option_program from = program_of(&source), to = program_of(&copy);
    for (size_t s = 0; s < from.set_count; s++) {
        options_reset(&to.sets[s]);
        for (size_t i = 0; i < from.sets[s].count; i++) {
            const struct option *row = &from.sets[s].rows[i];
            char text[OPTION_VALUE_BYTES], error[OPTION_ERROR_BYTES];
            option_format(row, from.sets[s].values, text, sizeof(text));
            enum status status =
                options_set_text(to.sets, to.set_count, row->name, text, error, sizeof(error));
            assert(status == STATUS_OK);
        }
    }
    assert(memcmp(&source, &copy, sizeof(copy)) == 0);
}

/* Help goes to standard output, and other files are not this target's. */
static bool is_for_other_tests(const char *argument)
{
    return strcmp(argument, "--help") == 0 || strcmp(argument, "-h") == 0 ||
           strcmp(argument, "--version") == 0 || strncmp(argument, "--config", 8) == 0;
}

/* True if there was something to parse. */
static bool parse_arguments(struct option_program *program, char *text, size_t size,
                            enum status *ret_status)
{
    char *argv[ARGUMENTS_MAX + 1] = {(char[]){"fuzz"}};
    int argc = 1;
    for (size_t at = 0; at < size && argc < ARGUMENTS_MAX; at += strlen(text + at) + 1) {
        if (is_for_other_tests(text + at)) {
            return false;
        }
        argv[argc++] = text + at;
    }
    bool is_done;
    *ret_status = options_parse(program, argc, argv, &is_done);
    return true;
}

static bool parse_file(struct option_program *program, const char *text, size_t size,
                       enum status *ret_status)
{
    char path[64];
    int file = memfd_create("config", MFD_CLOEXEC);
    if (file < 0 || write(file, text, size) != (ssize_t)size) {
        return false;
    }
    snprintf(path, sizeof(path), "/proc/self/fd/%d", file);
    *ret_status = options_read_file(program, path);
    close(file);
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static struct values values;
    char *text = malloc(size + 1);
    if (text == NULL || size == 0) {
        free(text);
        return 0;
    }
    memcpy(text, bytes + 1, size - 1);
    text[size - 1] = '\0';
    memset(&values, 0, sizeof(values));
    struct option_program program = program_of(&values);
    options_reset(&program.sets[0]);
    options_reset(&program.sets[1]);
    log_lines = 0;
    enum status status;
    bool is_parsed = bytes[0] % 2 == 0 ? parse_arguments(&program, text, size - 1, &status)
                                       : parse_file(&program, text, size - 1, &status);
    if (is_parsed) {
        assert(log_lines == (status == STATUS_OK ? 0 : 1));
        assert(status == STATUS_OK || status == STATUS_INVALID);
        check_values(&values); // what came before a bad value is good
    }
    free(text);
    return 0;
}
