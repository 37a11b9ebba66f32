/* Prints --help from the tables. */
#include "common/options/options_format.h"

#include <string.h>

#define WIDTH       100
#define HELP_COLUMN 30

// Of the values that an option may have, and of what each of them means.
#define CHOICE_COLUMN  (HELP_COLUMN + 2)
#define SUMMARY_COLUMN (CHOICE_COLUMN + 14)

/* Writes words from `column` on, breaking lines before WIDTH. */
static void print_wrapped(FILE *stream, const char *text, int column)
{
    int at = column;
    while (*text != '\0') {
        int size = (int)strcspn(text, " ");
        if (at > column && at + 1 + size > WIDTH) {
            fprintf(stream, "\n%*s", column, "");
            at = column;
        } else if (at > column) {
            fputc(' ', stream);
            at++;
        }
        fprintf(stream, "%.*s", size, text);
        at += size;
        text += size + (text[size] == ' ');
    }
    fputc('\n', stream);
}

/* The same behind the `used` columns of a line; on the next line if those reach the column. */
static void print_from(FILE *stream, const char *text, int used, int column)
{
    if (used >= column) {
        fputc('\n', stream);
        used = 0;
    }
    fprintf(stream, "%*s", column - used, "");
    print_wrapped(stream, text, column);
}

/* " [default 4; 1 to 1024]" */
static void format_default(const struct option *row, char *ret_text, size_t text_size)
{
    if (row->fallback == NULL) {
        ret_text[0] = '\0';
        return;
    }
    const char *fallback = row->fallback[0] != '\0' ? row->fallback : "none";
    if (row->type == OPTION_U32 || row->type == OPTION_U64 || row->type == OPTION_REAL) {
        char range[OPTION_RANGE_BYTES];
        option_format_range(row, range, sizeof(range));
        snprintf(ret_text, text_size, " [default %s; %s]", fallback, range);
    } else {
        snprintf(ret_text, text_size, " [default %s]", fallback);
    }
}

static void print_row(const struct option *row, FILE *stream)
{
    char left[128], fallback[128], text[1024], letter[8] = "    ";
    if (row->letter != 0) {
        snprintf(letter, sizeof(letter), "-%c, ", row->letter);
    }
    const char *metavar = option_metavar(row);
    int used = snprintf(left, sizeof(left), "  %s--%s%s%s", letter, row->name,
                        metavar != NULL ? " " : "", metavar != NULL ? metavar : "");
    fprintf(stream, "%s", left);
    format_default(row, fallback, sizeof(fallback));
    snprintf(text, sizeof(text), "%s%s", row->help, fallback);
    print_from(stream, text, used, HELP_COLUMN);
    for (size_t i = 0; row->choices != NULL && row->choices[i].name != NULL; i++) {
        const struct option_choice *choice = &row->choices[i];
        used = fprintf(stream, "%*s%s", CHOICE_COLUMN, "", choice->name);
        print_from(stream, choice->summary, used, SUMMARY_COLUMN);
    }
}

static void print_set(const struct option_set *set, FILE *stream)
{
    fprintf(stream, "\n%s\n", set->title);
    for (size_t i = 0; i < set->count; i++) {
        print_row(&set->rows[i], stream);
    }
}

void options_print_help(const struct option_program *program, FILE *stream)
{
    fprintf(stream, "usage: %s\n\n%s\n", program->usage, program->summary);
    if (program->taken_before.count > 0) {
        print_set(&program->taken_before, stream);
    }
    for (size_t s = 0; s < program->set_count; s++) {
        print_set(&program->sets[s], stream);
    }
    const struct option_set general = options_general(program);
    print_set(&general, stream);
    if (program->set_count > 0 && !program->takes_arguments_alone) {
        fprintf(stream, "\nEvery option is also an environment variable: --global-batch is "
                        "RINGSIDE_GLOBAL_BATCH.\nLater wins: default, config file, environment, "
                        "command line.\n");
    }
    if (program->example != NULL) {
        fprintf(stream, "\nExample\n%s", program->example);
    }
}
