/* Prints --describe-options, from which man pages and shell completion are generated. */
#include "common/options/options_format.h"

#include <jansson.h>

static const struct option general_rows[] = {
    {.name = "config",
     .type = OPTION_TEXT,
     .metavar = "FILE",
     .help = "read options from an INI file first: name = value"},
    {.name = "version", .type = OPTION_FLAG, .help = "print the version"},
    {.name = "help", .letter = 'h', .type = OPTION_FLAG, .help = "print this"},
};

struct option_set options_general(const struct option_program *program)
{
    size_t count = sizeof(general_rows) / sizeof(general_rows[0]);
    size_t skipped = program->set_count == 0          ? count - 1
                     : program->takes_arguments_alone ? 1 // --config
                                                      : 0;
    return (struct option_set){
        .title = "General", .rows = general_rows + skipped, .count = count - skipped};
}

/* Prints the object on a line of its own, and drops it. */
static void print_line(json_t *object, FILE *stream)
{
    json_dumpf(object, stream, JSON_COMPACT);
    fputc('\n', stream);
    json_decref(object);
}

static json_t *describe_choices(const struct option_choice *choices)
{
    json_t *list = json_array();
    for (size_t i = 0; choices != NULL && choices[i].name != NULL; i++) {
        json_array_append_new(
            list, json_pack("{s:s, s:s}", "name", choices[i].name, "summary", choices[i].summary));
    }
    return list;
}

static void describe_row(const struct option_program *program, const struct option_set *set,
                         const struct option *row, FILE *stream)
{
    char letter[2] = {row->letter, '\0'}, variable[128], range[OPTION_RANGE_BYTES];
    option_make_variable_name(row->name, variable, sizeof(variable));
    option_format_range(row, range, sizeof(range));
    bool is_number = row->type == OPTION_U32 || row->type == OPTION_U64 || row->type == OPTION_REAL;
    // Of the options that are taken out before the tables are read, only --config has a variable.
    bool has_variable =
        !program->takes_arguments_alone && (set->values != NULL || row == general_rows);
    print_line(json_pack("{s:s, s:s, s:s?, s:s?, s:s?, s:s?, s:s?, s:o, s:s}", "set", set->title,
                         "option", row->name, "letter", row->letter != 0 ? letter : NULL,
                         "variable", has_variable ? variable : NULL, "metavar", option_metavar(row),
                         "default", row->fallback, "range", is_number ? range : NULL, "choices",
                         describe_choices(row->choices), "help", row->help),
               stream);
}

static void describe_set(const struct option_program *program, const struct option_set *set,
                         FILE *stream)
{
    for (size_t i = 0; i < set->count; i++) {
        describe_row(program, set, &set->rows[i], stream);
    }
}

void options_describe(const struct option_program *program, FILE *stream)
{
    print_line(json_pack("{s:s, s:s, s:s, s:s?}", "program", program->name, "usage", program->usage,
                         "summary", program->summary, "example", program->example),
               stream);
    describe_set(program, &program->taken_before, stream);
    for (size_t s = 0; s < program->set_count; s++) {
        describe_set(program, &program->sets[s], stream);
    }
    const struct option_set general = options_general(program);
    describe_set(program, &general, stream);
}
