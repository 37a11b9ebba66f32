/* Reads --grid and --repeat, and crosses the axes. */
#include "deploy/sweep/sweep_plan.h"

#include "deploy/sweep/experiment.h"

#include <assert.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The value of option `name` at argv[index], as "--name VALUE" or "--name=VALUE"; NULL if it is
 * another option. *ret_taken says how many arguments it has. */
static const char *value_at(int argc, char **argv, int index, const char *name, int *ret_taken)
{
    size_t size = strlen(name);
    const char *argument = argv[index];
    assert(argument != NULL);
    if (strncmp(argument, "--", 2) != 0 || strncmp(argument + 2, name, size) != 0) {
        return NULL;
    }
    *ret_taken = argument[2 + size] == '=' ? 1 : 2;
    if (argument[2 + size] == '=') {
        return argument + 3 + size;
    }
    return argument[2 + size] == '\0' && index + 1 < argc ? argv[index + 1] : NULL;
}

/* A --grid, or a line of an experiment file, which the command line's wins over. */
static enum status add_axis(struct sweep_arguments *arguments, const char *text, bool is_of_file,
                            char ret_error[OPTION_ERROR_BYTES])
{
    size_t size = strcspn(text, "=");
    if (arguments->axis_count == SWEEP_AXES_MAX) {
        snprintf(ret_error, OPTION_ERROR_BYTES, "more than %d of --grid", SWEEP_AXES_MAX);
        return STATUS_INVALID;
    }
    char *name = arguments->names[arguments->axis_count];
    if (text[size] != '=' || text[size + 1] == '\0' || size == 0 ||
        size >= sizeof(arguments->names[0])) {
        snprintf(ret_error, OPTION_ERROR_BYTES,
                 "--grid %.80s names no option with its values: --grid workers=1,2,4", text);
        return STATUS_INVALID;
    }
    memcpy(name, text, size);
    name[size] = '\0';
    if (strcmp(name, "seed") == 0) {
        snprintf(
            ret_error, OPTION_ERROR_BYTES,
            "seed cannot be an axis: --repeat gives each setting several seeds, from --seed on");
        return STATUS_INVALID;
    }
    for (size_t i = 0; i < arguments->axis_count; i++) {
        if (strcmp(arguments->axes[i].name, name) != 0) {
            continue;
        }
        if (!arguments->is_of_file[i]) {
            snprintf(ret_error, OPTION_ERROR_BYTES,
                     "--grid %.60s is given twice: join the values, --grid %.60s=1,2,4", name,
                     name);
            return STATUS_INVALID;
        }
        arguments->axes[i].values = text + size + 1;
        arguments->is_of_file[i] = is_of_file;
        return STATUS_OK;
    }
    arguments->is_of_file[arguments->axis_count] = is_of_file;
    arguments->axes[arguments->axis_count++] = (struct grid_axis){name, text + size + 1};
    return STATUS_OK;
}

enum status sweep_take_arguments(int argc, char **argv, struct sweep_arguments *ret_arguments,
                                 int *ret_argc, char **ret_argv, char ret_error[OPTION_ERROR_BYTES])
{
    struct sweep_arguments *arguments = ret_arguments;
    int count = 0, taken = 1;
    *arguments = (struct sweep_arguments){.repeat = 1};
    for (int i = 0; i < argc; i += taken) {
        const char *axis = i > 0 ? value_at(argc, argv, i, "grid", &taken) : NULL;
        bool is_of_file = false;
        if (i > 0 && axis == NULL) {
            axis = value_at(argc, argv, i, EXPERIMENT_GRID, &taken);
            is_of_file = axis != NULL;
        }
        const char *repeat =
            i > 0 && axis == NULL ? value_at(argc, argv, i, "repeat", &taken) : NULL;
        if (axis != NULL) {
            enum status status = add_axis(arguments, axis, is_of_file, ret_error);
            if (status != STATUS_OK) {
                return status;
            }
        } else if (repeat != NULL) {
            char *end;
            long value = strtol(repeat, &end, 10);
            if (*repeat == '\0' || *end != '\0' || value < 1 || value > SWEEP_REPEAT_MAX) {
                snprintf(ret_error, OPTION_ERROR_BYTES,
                         "--repeat must be from 1 to %d, not '%.40s'", SWEEP_REPEAT_MAX, repeat);
                return STATUS_INVALID;
            }
            arguments->repeat = (uint32_t)value;
        } else {
            taken = 1;
            ret_argv[count++] = argv[i];
        }
    }
    ret_argv[count] = NULL;
    *ret_argc = count;
    return STATUS_OK;
}

/* "mode=ps-async order=seeded:constant:4" */
static void label_run(struct sweep_run *run, const struct sweep_arguments *arguments, size_t number)
{
    size_t used = 0;
    run->label[0] = '\0';
    for (size_t i = arguments->axis_count; i-- > 0;) {
        char chosen[128], rest[sizeof(run->label)];
        size_t count = grid_value_count(&arguments->axes[i]);
        grid_label(&arguments->axes[i], number % count, chosen, sizeof(chosen));
        number /= count;
        snprintf(rest, sizeof(rest), "%s", run->label);
        used = (size_t)snprintf(run->label, sizeof(run->label), "%s%s%s", chosen,
                                rest[0] != '\0' ? " " : "", rest);
    }
    if (used == 0) {
        snprintf(run->label, sizeof(run->label), "(one setting)");
    }
}

/* The label's values and the seed, of characters that every file system takes. */
static void name_run(struct sweep_run *run, size_t number)
{
    int used = snprintf(run->name, sizeof(run->name), "%04zu", number);
    for (const char *at = run->label; *at != '\0' && used < (int)sizeof(run->name) - 28;) {
        const char *value = strchr(at, '=');
        if (value == NULL) {
            break;
        }
        size_t size = strcspn(value + 1, " ");
        used += snprintf(run->name + used, sizeof(run->name) - 26 - (size_t)used, "-%.*s",
                         (int)size, value + 1);
        at = value + 1 + size + (value[1 + size] == ' ');
    }
    used = (int)strlen(run->name);
    snprintf(run->name + used, sizeof(run->name) - (size_t)used, "-seed%llu",
             (unsigned long long)run->job.seed);
    for (char *at = run->name; *at != '\0'; at++) {
        bool is_plain = (*at >= '0' && *at <= '9') || (*at >= 'a' && *at <= 'z') ||
                        (*at >= 'A' && *at <= 'Z') || *at == '.' || *at == '-';
        if (!is_plain) {
            *at = '-';
        }
    }
}

static bool is_there(const struct sweep_plan *plan, const struct job *job)
{
    for (size_t i = 0; i < plan->count; i++) {
        if (grid_is_same_run(&plan->runs[i].job, job)) {
            return true;
        }
    }
    return false;
}

/* The runs of one combination: one for each seed. */
static void add_runs(struct sweep_plan *plan, const struct sweep_arguments *arguments,
                     const struct job *job, size_t number)
{
    if (is_there(plan, job)) {
        return;
    }
    for (uint32_t i = 0; i < arguments->repeat; i++) {
        struct sweep_run *run = &plan->runs[plan->count++];
        run->job = *job;
        run->job.seed = job->seed + i;
        run->group = plan->group_count;
        label_run(run, arguments, number);
        name_run(run, plan->count);
    }
    plan->group_count++;
}

enum status sweep_make_plan(const struct job *job, const struct sweep_arguments *arguments,
                            struct sweep_plan *ret_plan, char ret_error[OPTION_ERROR_BYTES])
{
    size_t total = 1;
    for (size_t i = 0; i < arguments->axis_count; i++) {
        size_t count = grid_value_count(&arguments->axes[i]);
        if (total * count * arguments->repeat > SWEEP_RUNS_MAX) {
            snprintf(ret_error, OPTION_ERROR_BYTES, "more than %d runs: make the grid smaller",
                     SWEEP_RUNS_MAX);
            return STATUS_INVALID;
        }
        total *= count;
    }
    enum status checked = grid_check_values(job, arguments->axes, arguments->axis_count, ret_error);
    if (checked != STATUS_OK) {
        return checked;
    }
    struct sweep_plan plan = {.runs = calloc(total * arguments->repeat, sizeof(*plan.runs))};
    if (plan.runs == NULL) {
        snprintf(ret_error, OPTION_ERROR_BYTES, "out of memory for %zu runs", total);
        return STATUS_NO_MEMORY;
    }
    for (size_t number = 0; number < total; number++) {
        struct job chosen = *job;
        enum status status =
            grid_choose(&chosen, arguments->axes, arguments->axis_count, number, ret_error);
        if (status == STATUS_OK) {
            add_runs(&plan, arguments, &chosen, number);
        } else if (total == 1) {
            free(plan.runs);
            return status;
        } else {
            printf("left out: %s\n", ret_error);
        }
    }
    if (plan.count == 0) {
        free(plan.runs);
        return STATUS_INVALID; // ret_error says why the last one was left out
    }
    *ret_plan = plan;
    return STATUS_OK;
}

void sweep_plan_free(struct sweep_plan *plan)
{
    free(plan->runs);
    *plan = (struct sweep_plan){0};
}
