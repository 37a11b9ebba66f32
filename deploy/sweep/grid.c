/* Builds the runs of a comparison from lists of values. */
#include "deploy/sweep/grid.h"

#include "common/job/job_options.h"
#include "common/job/job_resolve.h"
#include "common/job/job_text.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

struct list_option {
    const char *name;
    char letter;
    bool is_always_a_list;
    size_t offset; // into struct grid_lists
};

static const struct list_option list_options[] = {
    {"modes", 0, true, offsetof(struct grid_lists, modes)},
    {"workers", 'n', false, offsetof(struct grid_lists, workers)},
    {"servers", 's', false, offsetof(struct grid_lists, servers)},
    {"transport", 0, false, offsetof(struct grid_lists, transports)},
};

/* The list option that an argument names, with its value if that is attached ("--name=value"). */
static const struct list_option *match(const char *argument, const char **ret_value)
{
    *ret_value = NULL;
    for (size_t i = 0; i < sizeof(list_options) / sizeof(list_options[0]); i++) {
        const struct list_option *option = &list_options[i];
        size_t size = strlen(option->name);
        if (strncmp(argument, "--", 2) == 0 && strncmp(argument + 2, option->name, size) == 0 &&
            (argument[2 + size] == '\0' || argument[2 + size] == '=')) {
            *ret_value = argument[2 + size] == '=' ? argument + 3 + size : NULL;
            return option;
        }
        if (option->letter != 0 && argument[0] == '-' && argument[1] == option->letter) {
            *ret_value = argument[2] != '\0' ? argument + 2 : NULL;
            return option;
        }
    }
    return NULL;
}

/* The list that begins at argument `index`, with how many arguments it takes; NULL if none does. */
static const struct list_option *list_at(int argc, char **argv, int index, const char **ret_value,
                                         int *ret_taken)
{
    const struct list_option *option = match(argv[index], ret_value);
    *ret_taken = 1;
    if (option != NULL && *ret_value == NULL && index + 1 < argc) {
        *ret_value = argv[index + 1];
        *ret_taken = 2;
    }
    bool is_list = option != NULL && *ret_value != NULL &&
                   (option->is_always_a_list || strchr(*ret_value, ',') != NULL);
    return is_list ? option : NULL;
}

enum status grid_take_lists(int argc, char **argv, struct grid_lists *ret_lists, int *ret_argc,
                            char **ret_argv, char ret_error[OPTION_ERROR_BYTES])
{
    struct grid_lists lists = {.modes = "local,ps-sync,ring"};
    int count = 0;
    for (int i = 0; i < argc;) {
        const char *value = NULL;
        int taken = 1;
        const struct list_option *option = i > 0 ? list_at(argc, argv, i, &value, &taken) : NULL;
        if (option == NULL || value == NULL) {
            ret_argv[count++] = argv[i++];
            continue;
        }
        if (value[0] == '\0') {
            snprintf(ret_error, OPTION_ERROR_BYTES, "%s is '': give it a value, or leave it out",
                     option->name);
            return STATUS_INVALID;
        }
        char *field = (char *)&lists + option->offset;
        if (snprintf(field, GRID_TEXT_BYTES, "%s", value) >= GRID_TEXT_BYTES) {
            snprintf(ret_error, OPTION_ERROR_BYTES, "the list of --%s is too long", option->name);
            return STATUS_INVALID;
        }
        i += taken;
    }
    ret_argv[count] = NULL;
    *ret_argc = count;
    *ret_lists = lists;
    return STATUS_OK;
}

#define LIST_COUNT 4

/* Values that hold commas themselves are separated by bars. */
static char separator_of(const char *values)
{
    return strchr(values, '|') != NULL ? '|' : ',';
}

size_t grid_value_count(const struct grid_axis *axis)
{
    size_t count = 1;
    for (const char *at = axis->values; *at != '\0'; at++) {
        count += *at == separator_of(axis->values);
    }
    return count;
}

void grid_value(const struct grid_axis *axis, size_t index, char ret_value[GRID_TEXT_BYTES])
{
    const char separator[] = {separator_of(axis->values), '\0'};
    const char *at = axis->values;
    for (; index > 0; index--) {
        at = strchr(at, separator[0]) + 1;
    }
    snprintf(ret_value, GRID_TEXT_BYTES, "%.*s", (int)strcspn(at, separator), at);
}

/* Cuts the next piece off a text. Where an axis has several options, plus signs join them. */
static void take_piece(const struct grid_axis *axis, const char **at,
                       char ret_piece[GRID_TEXT_BYTES])
{
    bool is_joined = strchr(axis->name, '+') != NULL;
    size_t size = is_joined ? strcspn(*at, "+") : strlen(*at);
    snprintf(ret_piece, GRID_TEXT_BYTES, "%.*s", (int)size, *at);
    *at += size + ((*at)[size] == '+');
}

void grid_label(const struct grid_axis *axis, size_t index, char *ret_text, size_t text_size)
{
    char value[GRID_TEXT_BYTES], one_name[GRID_TEXT_BYTES], one_value[GRID_TEXT_BYTES];
    const char *names = axis->name, *values = value;
    size_t used = 0;
    grid_value(axis, index, value);
    ret_text[0] = '\0';
    while (*names != '\0' && used < text_size) {
        take_piece(axis, &names, one_name);
        take_piece(axis, &values, one_value);
        int wrote = snprintf(ret_text + used, text_size - used, "%s%s=%s", used > 0 ? " " : "",
                             one_name, one_value);
        used += wrote > 0 ? (size_t)wrote : 0;
    }
}

/* Sets the options of an axis, of which there may be several. */
static enum status choose_value(const struct option_set *options, const struct grid_axis *axis,
                                size_t index, char ret_error[OPTION_ERROR_BYTES])
{
    char value[GRID_TEXT_BYTES], one_name[GRID_TEXT_BYTES], one_value[GRID_TEXT_BYTES];
    const char *names = axis->name, *values = value;
    enum status status = STATUS_OK;
    grid_value(axis, index, value);
    while (*names != '\0' && status == STATUS_OK) {
        if (*values == '\0') {
            snprintf(ret_error, OPTION_ERROR_BYTES,
                     "--grid %.60s has several options, and '%.60s' has fewer values: "
                     "optimizer+lr=sgd+0.1,adam+0.001",
                     axis->name, value);
            return STATUS_INVALID;
        }
        take_piece(axis, &names, one_name);
        take_piece(axis, &values, one_value);
        status = options_set_text(options, 1, one_name, one_value, ret_error, OPTION_ERROR_BYTES);
    }
    if (status == STATUS_OK && *values != '\0') {
        snprintf(ret_error, OPTION_ERROR_BYTES,
                 "--grid %.60s: '%.60s' has more values than options", axis->name, value);
        return STATUS_INVALID;
    }
    return status;
}

bool grid_is_same_run(const struct job *a, const struct job *b)
{
    char text_a[JOB_TEXT_BYTES], text_b[JOB_TEXT_BYTES];
    return job_encode(a, text_a, sizeof(text_a)) == STATUS_OK &&
           job_encode(b, text_b, sizeof(text_b)) == STATUS_OK && strcmp(text_a, text_b) == 0;
}

enum status grid_describe_probe(const struct job *job, char ret_text[JOB_TEXT_BYTES])
{
    // How gradients are exchanged, and parameters updated: --mode and others have
    // been checked against each other, and a probe has one worker, which exchanges nothing. It
    // tells whether the job has the steps of --fault.
    static const char *const ignored[] = {
        "mode",
        "servers",
        "server-threads",
        "seed",
        "lr",
        "momentum",
        "beta1",
        "beta2",
        "decay",
        "epsilon",
        "weight-decay",
        "lr-scale",
        "lr-workers",
        "warmup-epochs",
        "lr-schedule",
        "lr-gamma",
        "lr-step-epochs",
        "target-accuracy",
        "order",
        "delay-model",
        "backup",
        "remedy",
        "remedy-lambda",
        "gradients-per-update",
        "straggler",
        "transport",
        "connections",
        "security",
        "report-every",
        "on-loss",
        "min-workers",
        "lost-after",
        "stall-warn",
        "stall-fail",
        "outlast",
    };
    struct job tried = *job, plain;
    const struct option_set defaults = job_option_set(&plain);
    options_reset(&defaults);
    for (size_t i = 0; i < sizeof(ignored) / sizeof(ignored[0]); i++) {
        const struct option *row = job_option_find(ignored[i]);
        memcpy((char *)&tried + row->offset, (const char *)&plain + row->offset, row->size);
    }
    return job_encode(&tried, ret_text, (size_t)JOB_TEXT_BYTES);
}

enum status grid_check_values(const struct job *job, const struct grid_axis *axes,
                              size_t axis_count, char ret_error[OPTION_ERROR_BYTES])
{
    for (size_t i = 0; i < axis_count; i++) {
        size_t count = axes[i].values[0] != '\0' ? grid_value_count(&axes[i]) : 0;
        for (size_t index = 0; index < count; index++) {
            struct job chosen = *job;
            const struct option_set options = job_option_set(&chosen);
            enum status status = choose_value(&options, &axes[i], index, ret_error);
            if (status != STATUS_OK) {
                return status;
            }
        }
    }
    return STATUS_OK;
}

enum status grid_choose(struct job *job, const struct grid_axis *axes, size_t axis_count,
                        size_t number, char ret_error[OPTION_ERROR_BYTES])
{
    struct option_set options = job_option_set(job);
    for (size_t i = axis_count; i-- > 0;) {
        size_t count = grid_value_count(&axes[i]), index = number % count;
        number /= count;
        if (axes[i].values[0] == '\0') {
            continue;
        }
        enum status status = choose_value(&options, &axes[i], index, ret_error);
        if (status != STATUS_OK) {
            return status;
        }
    }
    return job_resolve(job, ret_error, OPTION_ERROR_BYTES);
}

static void name_cell(struct grid_cell *cell, size_t number)
{
    const struct job *job = &cell->job;
    int used = snprintf(cell->name, sizeof(cell->name), "%02zu-%s-n%u", number,
                        mode_text(job->mode).text, job->workers);
    if (job->servers > 0) {
        used +=
            snprintf(cell->name + used, sizeof(cell->name) - (size_t)used, "-s%u", job->servers);
    }
    if (job->transport != TRANSPORT_AUTO) {
        snprintf(cell->name + used, sizeof(cell->name) - (size_t)used, "-%s",
                 transport_choices[job->transport].name);
    }
    // ps-ssp:2: a colon in a path separates other things.
    for (char *colon; (colon = strchr(cell->name, ':')) != NULL;) {
        *colon = '-';
    }
}

/* Adds a run unless it is there. */
static enum status add_cell(const struct job *job, struct grid_cell *cells, size_t *count,
                            char ret_error[OPTION_ERROR_BYTES])
{
    for (size_t i = 0; i < *count; i++) {
        if (grid_is_same_run(&cells[i].job, job)) {
            return STATUS_OK;
        }
    }
    if (*count == GRID_CELLS_MAX) {
        snprintf(ret_error, OPTION_ERROR_BYTES, "more than %d runs: make the lists shorter",
                 GRID_CELLS_MAX);
        return STATUS_INVALID;
    }
    struct grid_cell *cell = &cells[(*count)++];
    cell->job = *job;
    name_cell(cell, *count);
    return STATUS_OK;
}

enum status grid_make_cells(const struct job *job, const struct grid_lists *lists,
                            struct grid_cell *ret_cells, size_t *ret_count,
                            char ret_error[OPTION_ERROR_BYTES])
{
    const struct grid_axis axes[LIST_COUNT] = {{"workers", lists->workers},
                                               {"mode", lists->modes},
                                               {"servers", lists->servers},
                                               {"transport", lists->transports}};
    size_t total = 1, count = 0;
    for (size_t i = 0; i < LIST_COUNT; i++) {
        total *= grid_value_count(&axes[i]);
    }
    for (size_t number = 0; number < total; number++) {
        struct job chosen = *job;
        enum status status = grid_choose(&chosen, axes, LIST_COUNT, number, ret_error);
        bool is_alone = chosen.workers == 1 && chosen.servers == 0;
        if (status == STATUS_OK && is_alone) {
            // Nothing travels: one run stands for all transports.
            chosen.transport = job->transport;
        }
        if (status == STATUS_OK) {
            status = add_cell(&chosen, ret_cells, &count, ret_error);
        }
        if (status != STATUS_OK) {
            return status;
        }
    }
    *ret_count = count;
    return STATUS_OK;
}
