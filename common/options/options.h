/* Options as tables: one row gives the flag, the environment variable, the config-file key, the
 * default, the range, the line of --help and the line of the start-up dump.
 *
 * A program joins several sets of rows (those of the job, its own). Later sources win: default,
 * config file (--config FILE, INI), environment (RINGSIDE_NAME), command line. Every source goes
 * through option_set_text, so one check serves all of them, the job text of a peer included. */
#ifndef COMMON_OPTIONS_OPTIONS_H
#define COMMON_OPTIONS_OPTIONS_H

#include "common/base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define OPTION_SETS_MAX    6
#define OPTION_ROWS_MAX    256  // of all sets
#define OPTION_LISTS_MAX   16   // of type OPTION_LIST
#define OPTION_VALUE_BYTES 1024 // longest value as text, terminator included
#define OPTION_ERROR_BYTES 512

enum option_type {
    OPTION_FLAG,   // bool; --name, --no-name, --name=true|false
    OPTION_U32,    // uint32_t; or the only one of choices, a word that stands for 0
    OPTION_U64,    // uint64_t
    OPTION_REAL,   // double; or a word, as above
    OPTION_TEXT,   // char[size]
    OPTION_NAME,   // char[size], one of choices
    OPTION_CHOICE, // an enum whose values are the places of choices; or see struct option_picked
    OPTION_PARSED, // what parse makes of the text
    OPTION_LIST,   // char[size], items joined by semicolons; may be given several times on the
                   // command line, where the fallback clears what came before
};

/* A name that an option may take, with a line for --help. A name with a colon is followed by a
 * whole number ("ps-ssp:S" stands for "ps-ssp:0", "ps-ssp:1" ...). A list ends with name == NULL.
 */
struct option_choice {
    const char *name;
    const char *summary;
};

/* The field of an OPTION_CHOICE whose list has a name with a colon begins like this. */
struct option_picked {
    uint32_t index;  // of the choice: the value of its enum
    uint32_t number; // behind the colon; 0 if there is none
};

struct option {
    const char *name; // "global-batch": --global-batch, RINGSIDE_GLOBAL_BATCH, global-batch=
    char letter;      // 'n' for -n; 0 if there is none
    enum option_type type;
    size_t offset, size;  // of the field in the set's values
    const char *fallback; // default, as text; NULL in a row that is only shown, and has none
    double min, max;      // numbers only, inclusive
    // Of a number: one, and min is above 0. Of a text: what there is; is_valid decides.
    const struct option_choice *choices;

    /* Extra check of a text, a choice or a list, NULL if there is none: writes why it is refused.
     */
    bool (*is_valid)(const char *text, char *ret_why, size_t why_size);

    /* Of a text, NULL if there is none: writes what a short form of it stands for, or the same. */
    void (*complete)(const char *text, char ret_text[OPTION_VALUE_BYTES]);

    /* Of an environment variable that has another meaning, too: whether this value is of that one,
     * and the option is not set. NULL: none is. */
    bool (*is_not_ours)(const char *text);

    /* OPTION_PARSED: reads a text into the field, or writes why it is refused; and the way back. */
    bool (*parse)(const char *text, void *ret_field, char *ret_why, size_t why_size);
    void (*format)(const void *field, char *ret_text, size_t text_size);

    /* Of a text, NULL if there is none: what the option stands for on the command line where no
     * value follows. */
    const char *alone;
    const char *metavar; // "MIB" in --help
    const char *help;    // one sentence, with the unit
};

/* For rows: a field of a struct and how it is read, and the limits of a number. */
#define OPTION_FIELD(kind, owner, field)                            \
    .type = OPTION_##kind, .offset = offsetof(struct owner, field), \
    .size = sizeof(((struct owner *)0)->field)
#define OPTION_RANGE(low, high) .min = (low), .max = (high)

/* For rows: refuses an empty text, where it could only be a mistake, such as an unset variable. */
bool options_text_is_there(const char *text, char *ret_why, size_t why_size);

struct option_set {
    const char *title; // heading in --help
    const struct option *rows;
    size_t count;
    void *values; // the struct that the rows' offsets point into
};

/* What options_parse found. */
struct options_given {
    const struct option *rows[OPTION_ROWS_MAX]; // that another source than their default has set
    size_t count;
    const struct option *lists[OPTION_LISTS_MAX]; // that the command line has begun
    size_t list_count;
};

struct option_program {
    const char *name;    // "ps"
    const char *usage;   // "ps [OPTION ...]"
    const char *summary; // a paragraph
    const char *example; // lines shown at the end of --help

    /* Options that the program takes out before the others are read: shown, and nothing else. Its
     * values are NULL; count is 0 if there are none. */
    struct option_set taken_before;

    struct option_set sets[OPTION_SETS_MAX];
    size_t set_count;

    // The command line is the only source. For what another program starts, whose environment may
    // hold options of that one.
    bool takes_arguments_alone;

    bool takes_program; // behind `--`, which was cut off before

    struct options_given given; // filled by options_parse; zero before
};

/* Fills every field with its default. */
void options_reset(const struct option_set *set);

/* Sets one value from text. On STATUS_INVALID ret_error says what was wrong, the range or the
 * choices, and the nearest known name. */
enum status options_set_text(const struct option_set *sets, size_t set_count, const char *name,
                             const char *value, char *ret_error, size_t error_size);

/* The choice that a text names. False if there is none, or if its number is missing or larger than
 * number_max. */
bool option_pick(const struct option_choice *choices, const char *text, uint32_t number_max,
                 struct option_picked *ret_picked);

/* The text that option_pick reads back to the same. */
void option_picked_text(const struct option_choice *choices, struct option_picked picked,
                        char *ret_text, size_t text_size);

/* Writes the value of a row as text that options_set_text reads back to the same value. */
void option_format(const struct option *row, const void *values, char *ret_text, size_t text_size);

/* The row's field was set by a source other than its default (after options_parse). */
bool options_was_given(const struct option_program *program, const char *name);

/* All sources in order. Logs the first bad value with its source and what to do. With --help,
 * --version or --describe-options it prints, and *ret_is_done is true: the program exits 0.
 * Positional arguments are an error. */
enum status options_parse(struct option_program *program, int argc, char *const *argv,
                          bool *ret_is_done);

void options_print_help(const struct option_program *program, FILE *stream);

/* Prints what manuals and shell completion are generated from: a JSON object a line. The
 * first has the program's "program", "usage", "summary" and "example", each of the others an
 * option's "set", "option", "letter", "variable", "metavar" (null for flags), "default", "range",
 * "choices" (a list of "name" and "summary") and "help", where what there is none of is null. */
void options_describe(const struct option_program *program, FILE *stream);

/* Rows that every program has, and that are read beside its tables: --config (unless it takes
 * arguments alone), --version and --help. Of a program without tables --help alone. */
struct option_set options_general(const struct option_program *program);

/* "global-batch" -> "RINGSIDE_GLOBAL_BATCH" */
void option_make_variable_name(const char *name, char *ret_name, size_t name_size);

/* What stands for the value in --help; NULL for a flag. */
const char *option_metavar(const struct option *row);

/* The known name nearest to `name` by edit distance, or NULL if none is near. */
const char *options_nearest(const char *name, const char *const *names, size_t count);

#endif
