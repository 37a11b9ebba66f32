/* Lists, and their product. */
#include "deploy/grid.h"

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

enum status grid_take_lists(int argc, char **argv, struct grid_lists *ret_lists, int *ret_argc,
                            char **ret_argv, char *ret_error, size_t error_size)
{
    struct grid_lists lists = {.modes = "local,ps-sync,ring"};
    int count = 0;
    for (int i = 0; i < argc; i++) {
        const char *value;
        const struct list_option *option = i > 0 ? match(argv[i], &value) : NULL;
        bool is_separate = option != NULL && value == NULL;
        if (is_separate && i + 1 < argc) {
            value = argv[i + 1];
        }
        if (option == NULL || value == NULL ||
            (!option->is_always_a_list && strchr(value, ',') == NULL)) {
            ret_argv[count++] = argv[i];
            continue;
        }
        char *field = (char *)&lists + option->offset;
        if (snprintf(field, GRID_TEXT_BYTES, "%s", value) >= GRID_TEXT_BYTES) {
            snprintf(ret_error, error_size, "the list of --%s is too long", option->name);
            return STATUS_INVALID;
        }
        i += is_separate;
    }
    ret_argv[count] = NULL;
    *ret_argc = count;
    *ret_lists = lists;
    return STATUS_OK;
}

/* Entry `index` of a list, or false behind its end. An empty list has one entry, the job's value.
 */
static bool list_entry(const char *list, size_t index, const char *fallback, char ret_entry[64])
{
    if (list[0] == '\0') {
        snprintf(ret_entry, 64, "%s", fallback);
        return index == 0;
    }
    for (size_t i = 0; i < index; i++) {
        list = strchr(list, ',');
        if (list == NULL) {
            return false;
        }
        list++;
    }
    snprintf(ret_entry, 64, "%.*s", (int)strcspn(list, ","), list);
    return true;
}

static bool is_same_run(const struct job *a, const struct job *b)
{
    return memcmp(a, b, sizeof(*a)) == 0;
}

static enum status set(struct job *job, const char *name, const char *value, char *ret_error,
                       size_t error_size)
{
    struct option_set options = job_option_set(job);
    return options_set_text(&options, 1, name, value, ret_error, error_size);
}

/* Resolves one combination and adds it unless it is there. */
static enum status add_cell(const struct job *base, const char entries[4][64],
                            struct grid_cell *cells, size_t *count, char *ret_error,
                            size_t error_size)
{
    static const char *const names[] = {"mode", "workers", "servers", "transport"};
    struct job job = *base;
    for (size_t i = 0; i < 4; i++) {
        enum status status = set(&job, names[i], entries[i], ret_error, error_size);
        if (status != STATUS_OK) {
            return status;
        }
    }
    enum status status = job_resolve(&job, ret_error, error_size);
    if (status != STATUS_OK) {
        return status;
    }
    bool is_alone = job.workers == 1 && job.servers == 0;
    if (is_alone) {
        memcpy(job.transport, base->transport, sizeof(job.transport)); // nothing travels
    }
    for (size_t i = 0; i < *count; i++) {
        if (is_same_run(&cells[i].job, &job)) {
            return STATUS_OK;
        }
    }
    if (*count == GRID_CELLS_MAX) {
        snprintf(ret_error, error_size, "more than %d runs: make the lists shorter",
                 GRID_CELLS_MAX);
        return STATUS_INVALID;
    }
    struct grid_cell *cell = &cells[(*count)++];
    cell->job = job;
    int used =
        snprintf(cell->name, sizeof(cell->name), "%02zu-%s-n%u", *count, job.mode, job.workers);
    if (job.servers > 0) {
        used += snprintf(cell->name + used, sizeof(cell->name) - (size_t)used, "-s%u", job.servers);
    }
    if (!is_alone && strcmp(job.transport, "auto") != 0) {
        snprintf(cell->name + used, sizeof(cell->name) - (size_t)used, "-%s", job.transport);
    }
    return STATUS_OK;
}

enum status grid_make_cells(const struct job *job, const struct grid_lists *lists,
                            struct grid_cell *ret_cells, size_t *ret_count, char *ret_error,
                            size_t error_size)
{
    char entries[4][64], workers[16], servers[16];
    size_t count = 0, index[4];
    snprintf(workers, sizeof(workers), "%u", job->workers);
    snprintf(servers, sizeof(servers), "%u", job->servers);
    for (index[1] = 0; list_entry(lists->workers, index[1], workers, entries[1]); index[1]++) {
        for (index[0] = 0; list_entry(lists->modes, index[0], job->mode, entries[0]); index[0]++) {
            for (index[2] = 0; list_entry(lists->servers, index[2], servers, entries[2]);
                 index[2]++) {
                for (index[3] = 0;
                     list_entry(lists->transports, index[3], job->transport, entries[3]);
                     index[3]++) {
                    enum status status = add_cell(job, (const char(*)[64])entries, ret_cells,
                                                  &count, ret_error, error_size);
                    if (status != STATUS_OK) {
                        return status;
                    }
                }
            }
        }
    }
    *ret_count = count;
    return STATUS_OK;
}
