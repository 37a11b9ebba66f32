/* Reads options from their sources in order: defaults, config file, environment, command line. */
#include "common/base/log.h"
#include "common/options/options_format.h"
#include "common/options/options_sources.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define NAME_BYTES 64

bool options_was_given(const struct option_program *program, const char *name)
{
    for (size_t i = 0; i < program->given.count; i++) {
        if (strcmp(program->given.rows[i]->name, name) == 0) {
            return true;
        }
    }
    return false;
}

static bool list_was_begun(const struct option_program *program, const struct option *row)
{
    for (size_t i = 0; i < program->given.list_count; i++) {
        if (program->given.lists[i] == row) {
            return true;
        }
    }
    return false;
}

/* The struct that a row's offset points into. */
static const void *values_of(const struct option_program *program, const struct option *row)
{
    for (size_t s = 0; s < program->set_count; s++) {
        const struct option_set *set = &program->sets[s];
        if (row >= set->rows && row < set->rows + set->count) {
            return set->values;
        }
    }
    return NULL;
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

enum status options_set_from(struct option_program *program, const char *where, const char *name,
                             const char *value)
{
    char error[OPTION_ERROR_BYTES];
    enum status status =
        options_set_text(program->sets, program->set_count, name, value, error, sizeof(error));
    if (status != STATUS_OK) {
        log_error("%s: %s", where, error);
        return status;
    }
    const struct option *row = find_row(program, name);
    if (!options_was_given(program, name)) {
        assert(program->given.count < OPTION_ROWS_MAX);
        program->given.rows[program->given.count++] = row;
    }
    return STATUS_OK;
}

/* Options are read before there are threads, which could change the environment. NULL if the
 * variable is empty: scripts clear variables that way. */
static const char *read_variable(const char *name)
{
    const char *value = getenv(name); // NOLINT(concurrency-mt-unsafe): see above
    return value != NULL && value[0] != '\0' ? value : NULL;
}

static enum status read_environment(struct option_program *program, const struct option_set *set)
{
    for (size_t i = 0; i < set->count; i++) {
        char variable[NAME_BYTES + sizeof(OPTION_VARIABLE_PREFIX)], where[sizeof(variable) + 32];
        option_make_variable_name(set->rows[i].name, variable, sizeof(variable));
        const char *value = read_variable(variable);
        bool is_not_ours =
            value != NULL && set->rows[i].is_not_ours != NULL && set->rows[i].is_not_ours(value);
        if (value == NULL || is_not_ours) {
            continue;
        }
        snprintf(where, sizeof(where), "environment variable %s", variable);
        enum status status = options_set_from(program, where, set->rows[i].name, value);
        if (status != STATUS_OK) {
            return status;
        }
    }
    return STATUS_OK;
}

static enum status refuse_name(const struct option_program *program, const char *name)
{
    const char *names[OPTION_ROWS_MAX];
    size_t count = 0;
    const struct option_set general = options_general(program);
    for (; count < general.count; count++) {
        names[count] = general.rows[count].name;
    }
    for (size_t s = 0; s < program->set_count; s++) {
        for (size_t i = 0; i < program->sets[s].count && count < OPTION_ROWS_MAX; i++) {
            names[count++] = program->sets[s].rows[i].name;
        }
    }
    const char *nearest = options_nearest(name, names, count);
    if (nearest != NULL) {
        log_error("unknown option --%.60s; did you mean --%s?", name, nearest);
    } else {
        log_error("unknown option --%.60s; --help lists them all", name);
    }
    return STATUS_INVALID;
}

/* The value of an option is attached to it, or the next argument. That one is no value if it looks
 * like an option: what was forgotten is not made up for by what comes next. NULL: there is none. */
static const char *take_value(const char *attached, int argc, char *const *argv, int *index)
{
    if (attached != NULL) {
        return attached;
    }
    if (*index + 1 >= argc || strncmp(argv[*index + 1], "--", 2) == 0) {
        return NULL;
    }
    return argv[++*index];
}

static enum status refuse_missing_value(const char *name)
{
    log_error("option --%s needs a value (one that begins with -- is given as --%s=VALUE)", name,
              name);
    return STATUS_INVALID;
}

/* Adds to what the command line has already said of a list. */
static enum status add_to_list(struct option_program *program, const struct option *row,
                               const char *value)
{
    char before[OPTION_VALUE_BYTES], joined[2 * OPTION_VALUE_BYTES];
    if (!list_was_begun(program, row)) {
        assert(program->given.list_count < OPTION_LISTS_MAX);
        program->given.lists[program->given.list_count++] = row;
        return options_set_from(program, "command line", row->name, value);
    }
    option_format(row, values_of(program, row), before, sizeof(before));
    bool is_first = strcmp(before, row->fallback) == 0 || strcmp(value, row->fallback) == 0;
    snprintf(joined, sizeof(joined), "%s%s%s", is_first ? "" : before, is_first ? "" : ";", value);
    return options_set_from(program, "command line", row->name, joined);
}

/* Sets a row from the argument at *index, whose value may be the next argument. */
static enum status take_row(struct option_program *program, const struct option *row,
                            const char *attached, int argc, char *const *argv, int *index)
{
    const char *value = attached;
    if (value == NULL) {
        bool is_alone = *index + 1 >= argc || argv[*index + 1][0] == '-';
        value = row->type == OPTION_FLAG         ? "true"
                : row->alone != NULL && is_alone ? row->alone
                                                 : take_value(NULL, argc, argv, index);
    }
    if (value == NULL) {
        return refuse_missing_value(row->name);
    }
    return row->type == OPTION_LIST ? add_to_list(program, row, value)
                                    : options_set_from(program, "command line", row->name, value);
}

/* "-n4", "-n=4", "-n 4" */
static enum status take_short(struct option_program *program, int argc, char *const *argv,
                              int *index)
{
    const char *text = argv[*index];
    const struct option *row = find_letter(program, text[1]);
    if (row == NULL) {
        log_error("unknown option %.60s; --help lists them all", text);
        return STATUS_INVALID;
    }
    const char *attached = text[2] != '\0' ? text + 2 + (text[2] == '=') : NULL;
    return take_row(program, row, attached, argc, argv, index);
}

/* "--name=value", "--name value", "--flag", "--no-flag" */
static enum status take_long(struct option_program *program, int argc, char *const *argv,
                             int *index)
{
    char name[NAME_BYTES];
    const char *text = argv[*index] + 2;
    size_t size = strcspn(text, "=");
    const char *attached = text[size] == '=' ? text + size + 1 : NULL;
    if (size >= sizeof(name)) {
        return refuse_name(program, text);
    }
    memcpy(name, text, size);
    name[size] = '\0';
    if (strcmp(name, "config") == 0 && !program->takes_arguments_alone) {
        // It was read before: see find_config.
        return take_value(attached, argc, argv, index) != NULL ? STATUS_OK
                                                               : refuse_missing_value(name);
    }
    const struct option *row = find_row(program, name);
    if (row != NULL) {
        return take_row(program, row, attached, argc, argv, index);
    }
    const struct option *flag = strncmp(name, "no-", 3) == 0 ? find_row(program, name + 3) : NULL;
    if (flag != NULL && flag->type == OPTION_FLAG && attached == NULL) {
        return options_set_from(program, "command line", flag->name, "false");
    }
    return refuse_name(program, name);
}

static enum status read_command_line(struct option_program *program, int argc, char *const *argv)
{
    for (int i = 1; i < argc; i++) {
        enum status status;
        if (argv[i][0] != '-' || argv[i][1] == '\0') {
            log_error("'%.60s' is not an option, and %s takes no other argument here%s", argv[i],
                      program->name,
                      program->takes_program ? ", but behind `--` a program of your own" : "");
            status = STATUS_INVALID;
        } else if (argv[i][1] != '-') {
            status = take_short(program, argc, argv, &i);
        } else {
            status = take_long(program, argc, argv, &i);
        }
        if (status != STATUS_OK) {
            return status;
        }
    }
    return STATUS_OK;
}

/* Finds the last --config on the command line, which is read after the file. NULL if there is
 * none. */
static const char *find_config(int argc, char *const *argv)
{
    const char *config = read_variable(OPTION_VARIABLE_PREFIX "CONFIG");
    for (int i = 1; i < argc; i++) {
        if (strncmp(argv[i], "--config=", 9) == 0) {
            config = argv[i] + 9;
        } else if (strcmp(argv[i], "--config") == 0) {
            config = take_value(NULL, argc, argv, &i);
        }
    }
    return config;
}

/* --help and its like count wherever they stand. */
static bool print_information(const struct option_program *program, int argc, char *const *argv)
{
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            options_print_help(program, stdout);
            return true;
        }
        if (strcmp(argv[i], "--describe-options") == 0) {
            options_describe(program, stdout);
            return true;
        }
        if (strcmp(argv[i], "--version") == 0) {
            printf("%s %s\n", program->name, RINGSIDE_VERSION);
            return true;
        }
    }
    return false;
}

enum status options_parse(struct option_program *program, int argc, char *const *argv,
                          bool *ret_is_done)
{
    assert(program->set_count <= OPTION_SETS_MAX);
    *ret_is_done = print_information(program, argc, argv);
    if (*ret_is_done) {
        return STATUS_OK;
    }
    program->given = (struct options_given){.count = 0};
    for (size_t s = 0; s < program->set_count; s++) {
        options_reset(&program->sets[s]);
    }
    bool has_more = !program->takes_arguments_alone;
    const char *config = has_more ? find_config(argc, argv) : NULL;
    enum status status = config != NULL ? options_read_file(program, config) : STATUS_OK;
    for (size_t s = 0; has_more && s < program->set_count && status == STATUS_OK; s++) {
        status = read_environment(program, &program->sets[s]);
    }
    if (status == STATUS_OK) {
        status = read_command_line(program, argc, argv);
    }
    return status;
}
