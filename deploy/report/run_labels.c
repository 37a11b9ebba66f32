/* Compares the options of runs. */
#include "deploy/report/run_labels.h"

#include "common/base/printable.h"
#include "common/job/job_options.h"
#include "common/job/job_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define VALUE_BYTES 64

/* Options that change no result, or follow from others. */
static const char *const silent[] = {
    "seed",        "report-every", "checkpoint-every", "keep",       "start-timeout",
    "lost-after",  "stall-warn",   "stall-fail",       "lr-workers", "on-loss",
    "min-workers", "timeline",     "timeline-steps",   "outlast"};

/* Keys of a summary that are options, for runs without a job.json. */
static const char *const keys[][2] = {
    {"mode", "mode"},           {"workers", "workers"}, {"servers", "servers"},
    {"model", "model"},         {"data", "dataset"},    {"global-batch", "global_batch"},
    {"optimizer", "optimizer"}, {"lr", "lr"},           {"steps", "steps"},
};

static bool is_silent(const char *name)
{
    for (size_t i = 0; i < sizeof(silent) / sizeof(silent[0]); i++) {
        if (strcmp(silent[i], name) == 0) {
            return true;
        }
    }
    return false;
}

char *run_labels_key(const struct run_folder *run)
{
    char value[VALUE_BYTES];
    json_t *options = json_object_get(run->job, "options");
    json_t *facts = json_is_object(options) ? json_copy(options) : json_object();
    for (size_t i = 0; !json_is_object(options) && i < sizeof(keys) / sizeof(keys[0]); i++) {
        run_folder_value(run, keys[i][1], value, sizeof(value));
        json_object_set_new(facts, keys[i][0], json_stringn_nocheck(value, strlen(value)));
    }
    json_object_del(facts, "seed");
    json_t *version = json_object_get(run->summary, "version");
    if (json_is_string(version)) {
        json_object_set(facts, "version", version);
    }
    char *text = facts != NULL ? json_dumps(facts, JSON_COMPACT | JSON_SORT_KEYS) : NULL;
    json_decref(facts);
    return text;
}

/* An option of a run as text; "" if it is not known. */
static void read_option(const struct run_folder *run, const char *name, char ret_value[VALUE_BYTES])
{
    const json_t *value = json_object_get(json_object_get(run->job, "options"), name);
    ret_value[0] = '\0';
    if (json_is_string(value)) {
        snprintf(ret_value, VALUE_BYTES, "%s", json_string_value(value));
        run_words_cut(ret_value, VALUE_BYTES);
    } else if (json_is_real(value)) {
        snprintf(ret_value, VALUE_BYTES, "%g", json_real_value(value));
    } else if (json_is_integer(value)) {
        snprintf(ret_value, VALUE_BYTES, "%lld", (long long)json_integer_value(value));
    } else if (json_is_boolean(value)) {
        snprintf(ret_value, VALUE_BYTES, "%s", json_is_true(value) ? "yes" : "no");
    }
    for (size_t i = 0; value == NULL && i < sizeof(keys) / sizeof(keys[0]); i++) {
        if (strcmp(keys[i][0], name) == 0) {
            run_folder_value(run, keys[i][1], ret_value, VALUE_BYTES);
        }
    }
    printable_make_utf8(ret_value);
}

/* What the groups have for one option. */
struct column {
    char (*values)[VALUE_BYTES]; // (count), owned
    bool differs;                // anywhere
    bool differs_beyond_local;   // among groups that are not local, which has one worker
    bool *differs_in_mode;       // (count), owned: among the groups of the same mode
    bool *is_default;            // (count), owned
    bool is_of_modes; // that leave it to a program, where others do not: differs by mode alone
};

static bool is_external(const struct run_group *group)
{
    char model[VALUE_BYTES];
    read_option(group->runs[0], "model", model);
    return strncmp(model, JOB_EXTERNAL_PREFIX, strlen(JOB_EXTERNAL_PREFIX)) == 0;
}

/* Whether a program makes the updates itself in one of the groups, as in ring: where servers make
 * them, as the same program says, job.json has more options. */
static bool has_own_updates(const struct run_group *groups, size_t count)
{
    bool has_any = false;
    for (size_t i = 0; i < count && !has_any; i++) {
        char optimizer[VALUE_BYTES];
        read_option(groups[i].runs[0], "optimizer", optimizer);
        has_any = is_external(&groups[i]) && (strcmp(optimizer, "auto") == 0 ||
                                              strcmp(optimizer, JOB_OPTIMIZER_OF_PROGRAM) == 0);
    }
    return has_any;
}

static size_t first_of_mode(const struct run_group *groups, size_t index)
{
    // Groups are sorted by mode.
    while (index > 0 && strcmp(groups[index - 1].mode, groups[index].mode) == 0) {
        index--;
    }
    return index;
}

static void read_column(const struct run_group *groups, size_t count, const struct option *option,
                        struct column *column)
{
    const char *name = option->name;
    size_t first = count; // that is not local
    column->differs = column->differs_beyond_local = false;
    column->is_of_modes = job_option_is_of_optimizer(name) && has_own_updates(groups, count);
    for (size_t i = 0; i < count; i++) {
        bool is_local = strcmp(groups[i].mode, "local") == 0;
        read_option(groups[i].runs[0], name, column->values[i]);
        const char *usual = job_option_default(option, is_external(&groups[i]));
        column->is_default[i] = usual != NULL && strcmp(usual, column->values[i]) == 0;
        first = first == count && !is_local ? i : first;
        column->differs_beyond_local =
            column->differs_beyond_local ||
            (!is_local && strcmp(column->values[first], column->values[i]) != 0);
        column->differs = column->differs || strcmp(column->values[0], column->values[i]) != 0;
    }
    for (size_t begin = 0; begin < count;) {
        bool differs = false;
        size_t end = begin;
        for (; end < count && first_of_mode(groups + begin, end - begin) == 0; end++) {
            differs = differs || strcmp(column->values[begin], column->values[end]) != 0;
        }
        for (; begin < end; begin++) {
            column->differs_in_mode[begin] = differs;
        }
    }
}

/* Whether the label of a group names an option. In other modes an option may have no meaning, so
 * there its default says nothing. */
static bool is_named(const struct column *column, const struct run_group *group, size_t index,
                     const struct option *option)
{
    const char *value = column->values[index];
    if (!column->differs || value[0] == '\0' || strcmp(option->name, "mode") == 0) {
        return false;
    }
    if (strcmp(option->name, "workers") == 0) {
        return column->differs_beyond_local && strcmp(group->mode, "local") != 0;
    }
    if (column->differs_in_mode[index]) {
        return true;
    }
    return !column->is_default[index] && !column->is_of_modes &&
           strcmp(option->name, "servers") != 0;
}

/* Of two that follow from each other by the number of workers, one is enough. */
static bool is_derived(const struct run_group *groups, size_t count, const char *name)
{
    const char *const pair[] = {"global-batch", "batch"};
    bool differs[2] = {false, false};
    if (strcmp(name, "batch") != 0 && strcmp(name, "global-batch") != 0) {
        return false;
    }
    for (size_t k = 0; k < 2; k++) {
        char first[VALUE_BYTES], other[VALUE_BYTES];
        read_option(groups[0].runs[0], pair[k], first);
        for (size_t i = 1; i < count; i++) {
            read_option(groups[i].runs[0], pair[k], other);
            differs[k] = differs[k] || strcmp(first, other) != 0;
        }
    }
    return strcmp(name, "batch") == 0 || !differs[1];
}

static void append_option(struct run_group *groups, size_t count, const struct option *option,
                          struct column *column)
{
    char words[RUN_WORDS_BYTES];
    if (is_silent(option->name) || is_derived(groups, count, option->name)) {
        return;
    }
    read_column(groups, count, option, column);
    for (size_t i = 0; i < count; i++) {
        if (is_named(column, &groups[i], i, option)) {
            run_words_of_option(option->name, column->values[i], words);
            run_words_append(groups[i].label, words);
            if (strcmp(option->name, "workers") != 0) {
                run_words_append(groups[i].design, words);
            }
        }
    }
}

static bool has_modes(const struct run_group *groups, size_t count)
{
    for (size_t i = 1; i < count; i++) {
        if (strcmp(groups[0].mode, groups[i].mode) != 0) {
            return true;
        }
    }
    return false;
}

static void append_folder(struct run_group *group)
{
    char name[RUN_WORDS_BYTES], path[RUN_FOLDER_PATH_MAX];
    snprintf(path, sizeof(path), "%s", group->runs[0]->path);
    for (size_t size = strlen(path); size > 1 && path[size - 1] == '/'; size--) {
        path[size - 1] = '\0';
    }
    const char *slash = strrchr(path, '/');
    snprintf(name, sizeof(name), "%.200s", slash != NULL && slash[1] != '\0' ? slash + 1 : path);
    run_words_cut(name, 100);
    printable_make_utf8(name);
    run_words_append(group->label, name);
    run_words_append(group->design, name);
}

/* Groups that look alike. */
static void tell_apart(struct run_group *groups, size_t count, bool *is_double)
{
    for (size_t i = 0; i < count; i++) {
        for (size_t k = 0; k < i; k++) {
            if (strcmp(groups[i].label, groups[k].label) == 0) {
                is_double[i] = is_double[k] = true;
            }
        }
    }
    for (size_t i = 0; i < count; i++) {
        if (is_double[i]) {
            append_folder(&groups[i]);
        }
    }
}

enum status run_labels_fill(struct run_group *groups, size_t count)
{
    struct column column = {.values = calloc(count, sizeof(*column.values)),
                            .differs_in_mode = calloc(count, sizeof(*column.differs_in_mode)),
                            .is_default = calloc(count, sizeof(*column.is_default))};
    bool *is_double = calloc(count, sizeof(*is_double));
    enum status status = STATUS_NO_MEMORY;
    if (column.values == NULL || column.differs_in_mode == NULL || column.is_default == NULL ||
        is_double == NULL) {
        goto end;
    }
    bool names_modes = has_modes(groups, count);
    for (size_t i = 0; i < count; i++) {
        groups[i].label[0] = groups[i].design[0] = '\0';
        if (names_modes) {
            run_words_of_option("mode", groups[i].mode, groups[i].label);
            run_words_append(groups[i].design, groups[i].label);
        }
    }
    for (size_t i = 0; i < job_option_count && count > 1; i++) {
        append_option(groups, count, &job_options[i], &column);
    }
    for (size_t i = 0; i < count; i++) {
        // Alone, or all alike: the mode is what there is to say.
        if (groups[i].label[0] == '\0') {
            run_words_of_option("mode", groups[i].mode, groups[i].label);
        }
        if (groups[i].design[0] == '\0') {
            run_words_of_option("mode", groups[i].mode, groups[i].design);
        }
    }
    tell_apart(groups, count, is_double);
    status = STATUS_OK;
end:
    free(column.values);
    free(column.differs_in_mode);
    free(column.is_default);
    free(is_double);
    return status;
}
