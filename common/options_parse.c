/* The sources of options, in order: defaults, config file, environment, command line. */
#include "common/log.h"
#include "common/options.h"

#include <ini.h>

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define ENVIRONMENT_PREFIX "RINGSIDE_"
#define GIVEN_MAX          256
#define NAME_BYTES         64
#define VARIABLE_BYTES     (NAME_BYTES + sizeof(ENVIRONMENT_PREFIX))

// Options that came from anywhere but their default. One program, one parse: see options.h.
static const char *given[GIVEN_MAX];
static size_t given_count;

bool options_was_given(const struct option_program *program, const char *name)
{
    (void)program;
    for (size_t i = 0; i < given_count; i++) {
        if (strcmp(given[i], name) == 0) {
            return true;
        }
    }
    return false;
}

static const struct option *find_row(const struct option_program *program, const char *name)
{
    for (size_t s = 0; s < program->set_count; s++) {
        for (size_t i = 0; i < program->sets[s].count; i++) {
            if (strcmp(program->sets[s].rows[i].name, name) == 0) {
                return &program->sets[s].rows[i];
            }
        }
    }
    return NULL;
}

static const struct option *find_letter(const struct option_program *program, char letter)
{
    for (size_t s = 0; s < program->set_count; s++) {
        for (size_t i = 0; i < program->sets[s].count; i++) {
            if (program->sets[s].rows[i].letter == letter) {
                return &program->sets[s].rows[i];
            }
        }
    }
    return NULL;
}

/* Sets an option; `where` says which source it is, for the error. */
static enum status set_from(const struct option_program *program, const char *where,
                            const char *name, const char *value)
{
    char error[OPTION_ERROR_BYTES];
    enum status status =
        options_set_text(program->sets, program->set_count, name, value, error, sizeof(error));
    if (status != STATUS_OK) {
        log_error("%s: %s", where, error);
        return status;
    }
    const struct option *row = find_row(program, name);
    if (!options_was_given(program, name) && given_count < GIVEN_MAX) {
        given[given_count++] = row->name;
    }
    return STATUS_OK;
}

struct file_source {
    const struct option_program *program;
    const char *path;
    FILE *file;
    int line;         // number of the one that was read last
    bool is_too_long; // that line: the reader hands out pieces of it
    enum status status;
};

/* fgets, counting lines: the INI reader does not tell its handler where it is. */
static char *read_line(char *text, int size, void *data)
{
    struct file_source *source = data;
    char *got = fgets(text, size, source->file);
    if (got != NULL) {
        source->line++;
        bool is_whole = strchr(text, '\n') != NULL || feof(source->file) != 0;
        source->is_too_long = source->is_too_long || !is_whole;
    }
    return source->is_too_long ? NULL : got;
}

/* Called by the INI reader for each line; 0 ends with an error. */
static int take_line(void *data, const char *section, const char *name, const char *value)
{
    struct file_source *source = data;
    char where[512];
    (void)section; // sections are for the reader's eye
    snprintf(where, sizeof(where), "%.400s:%d", source->path, source->line);
    if (source->status == STATUS_OK) {
        source->status = set_from(source->program, where, name, value != NULL ? value : "");
    }
    return source->status == STATUS_OK;
}

static enum status read_file(const struct option_program *program, const char *path)
{
    struct file_source source = {.program = program, .path = path, .file = fopen(path, "re")};
    if (source.file == NULL) {
        log_error("cannot read the config file %s: %m", path);
        return STATUS_INVALID;
    }
    int wrong_line = ini_parse_stream(read_line, &source, take_line, &source);
    fclose(source.file);
    if (source.status != STATUS_OK) {
        return source.status;
    }
    if (source.is_too_long) {
        log_error("%s:%d: the line is too long", path, source.line);
        return STATUS_INVALID;
    }
    if (wrong_line != 0) {
        log_error("%s:%d: not a line of the form name = value", path, wrong_line);
        return STATUS_INVALID;
    }
    return STATUS_OK;
}

/* "global-batch" -> "RINGSIDE_GLOBAL_BATCH" */
static void variable_of(const char *name, char ret_variable[VARIABLE_BYTES])
{
    size_t used = (size_t)snprintf(ret_variable, VARIABLE_BYTES, "%s", ENVIRONMENT_PREFIX);
    for (; *name != '\0' && used < VARIABLE_BYTES - 1; name++) {
        bool is_small = *name >= 'a' && *name <= 'z';
        ret_variable[used++] = (char)(*name == '-' ? '_' : is_small ? *name - 'a' + 'A' : *name);
    }
    ret_variable[used] = '\0';
}

static enum status read_variable(const struct option_program *program, const char *name)
{
    char variable[VARIABLE_BYTES], where[VARIABLE_BYTES + 32];
    variable_of(name, variable);
    // NOLINTNEXTLINE(concurrency-mt-unsafe): options are read before there are threads
    const char *value = getenv(variable);
    if (value == NULL) {
        return STATUS_OK;
    }
    snprintf(where, sizeof(where), "environment variable %s", variable);
    return set_from(program, where, name, value);
}

static enum status read_environment(const struct option_program *program)
{
    for (size_t s = 0; s < program->set_count; s++) {
        for (size_t i = 0; i < program->sets[s].count; i++) {
            enum status status = read_variable(program, program->sets[s].rows[i].name);
            if (status != STATUS_OK) {
                return status;
            }
        }
    }
    return STATUS_OK;
}

/* One argument, split: its name, and its value if it has one attached. */
struct argument {
    char name[NAME_BYTES];
    const char *value; // NULL: none attached
};

/* "--name=value", "--name", "-n4", "-n". False if it is none of these, or unknown. Logs. */
static bool split_argument(const struct option_program *program, const char *text,
                           struct argument *ret_argument)
{
    if (text[0] != '-' || text[1] == '\0') {
        log_error("command line: '%.60s' is not an option; %s takes none but options", text,
                  program->name);
        return false;
    }
    if (text[1] != '-') {
        const struct option *row = find_letter(program, text[1]);
        if (row == NULL) {
            log_error("command line: unknown option '-%c'; --help lists them all", text[1]);
            return false;
        }
        snprintf(ret_argument->name, sizeof(ret_argument->name), "%s", row->name);
        ret_argument->value = text[2] != '\0' ? text + 2 + (text[2] == '=') : NULL;
        return true;
    }
    const char *equals = strchr(text, '=');
    size_t size = equals != NULL ? (size_t)(equals - text) - 2 : strlen(text) - 2;
    if (size >= sizeof(ret_argument->name)) {
        log_error("command line: unknown option '%.60s'; --help lists them all", text);
        return false;
    }
    memcpy(ret_argument->name, text + 2, size);
    ret_argument->name[size] = '\0';
    ret_argument->value = equals != NULL ? equals + 1 : NULL;
    return true;
}

/* Takes one argument, and the next one if that is its value. */
static enum status take_argument(const struct option_program *program, int argc, char *const *argv,
                                 int *index)
{
    struct argument argument;
    if (!split_argument(program, argv[*index], &argument)) {
        return STATUS_INVALID;
    }
    const struct option *row = find_row(program, argument.name);
    if (row == NULL && strncmp(argument.name, "no-", 3) == 0 && argument.value == NULL) {
        row = find_row(program, argument.name + 3);
        if (row != NULL && row->type == OPTION_FLAG) {
            return set_from(program, "command line", row->name, "false");
        }
        row = NULL;
    }
    if (row != NULL && row->type == OPTION_FLAG && argument.value == NULL) {
        argument.value = "true";
    }
    if (row != NULL && argument.value == NULL) {
        if (*index + 1 >= argc) {
            log_error("command line: --%s needs a value", row->name);
            return STATUS_INVALID;
        }
        argument.value = argv[++*index];
    }
    return set_from(program, "command line", argument.name,
                    argument.value != NULL ? argument.value : "");
}

/* Finds --config on the command line, which is read after the file. NULL if there is none. */
static const char *find_config(int argc, char *const *argv)
{
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--config") == 0 && i + 1 < argc) {
            return argv[i + 1];
        }
        if (strncmp(argv[i], "--config=", 9) == 0) {
            return argv[i] + 9;
        }
    }
    return getenv(ENVIRONMENT_PREFIX "CONFIG"); // NOLINT(concurrency-mt-unsafe): as above
}

/* --help and --version count wherever they stand. */
static bool print_information(const struct option_program *program, int argc, char *const *argv)
{
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            options_print_help(program, stdout);
            return true;
        }
        if (strcmp(argv[i], "--version") == 0) {
            printf("%s %s\n", program->name, RINGSIDE_VERSION);
            return true;
        }
    }
    return false;
}

static enum status read_command_line(const struct option_program *program, int argc,
                                     char *const *argv)
{
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--config") == 0) {
            i++;
            if (i >= argc) {
                log_error("command line: --config needs a value");
                return STATUS_INVALID;
            }
            continue;
        }
        if (strncmp(argv[i], "--config=", 9) == 0) {
            continue;
        }
        enum status status = take_argument(program, argc, argv, &i);
        if (status != STATUS_OK) {
            return status;
        }
    }
    return STATUS_OK;
}

enum status options_parse(const struct option_program *program, int argc, char *const *argv,
                          bool *ret_is_done)
{
    assert(program->set_count <= OPTION_SETS_MAX);
    *ret_is_done = print_information(program, argc, argv);
    if (*ret_is_done) {
        return STATUS_OK;
    }
    given_count = 0;
    for (size_t s = 0; s < program->set_count; s++) {
        options_reset(&program->sets[s]);
    }
    const char *config = find_config(argc, argv);
    enum status status = config != NULL ? read_file(program, config) : STATUS_OK;
    if (status == STATUS_OK) {
        status = read_environment(program);
    }
    if (status == STATUS_OK) {
        status = read_command_line(program, argc, argv);
    }
    return status;
}
