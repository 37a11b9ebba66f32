/* Checks values of single options of a job, and reads those that are not plain numbers or names. */
#include "common/job/job_values.h"

#include "common/codec/codec.h"
#include "common/job/faults.h"
#include "common/job/job.h"
#include "common/job/straggler.h"
#include "common/job/switches.h"
#include "common/options/names.h"
#include "common/plan/augmentation.h"
#include "common/plan/normalization.h"
#include "common/plan/order.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool job_compress_parse(const char *text, void *ret_field, char *ret_why, size_t why_size)
{
    return codec_parse(text, ret_field, ret_why, why_size) == STATUS_OK;
}

void job_compress_format(const void *field, char *ret_text, size_t text_size)
{
    char text[CODEC_TEXT_BYTES];
    codec_text(field, text);
    snprintf(ret_text, text_size, "%s", text);
}

// By dataset: what follows its name.
static const char *const paths[] = {
#define X(identifier, name, path, summary) path,
    DATASET_MAP(X)
#undef X
};

static bool takes_folder(size_t dataset)
{
    return strcmp(paths[dataset], ":DIR") == 0;
}

bool job_cache_is_folder(const char *text)
{
    return text[0] == '/' || text[0] == '\0';
}

bool job_data_is_folder(const char *text)
{
    return memchr(text, '/', strcspn(text, ":")) != NULL;
}

void job_data_complete(const char *text, char ret_text[OPTION_VALUE_BYTES])
{
    const char *name = names_behind_synthetic(text);
    const char *folder = getenv("RINGSIDE_DATA"); // NOLINT(concurrency-mt-unsafe): nobody sets it
    bool is_short = false;
    for (size_t i = 0; names_datasets[i].name != NULL; i++) {
        is_short = is_short || (takes_folder(i) && strcmp(names_datasets[i].name, name) == 0);
    }
    bool has_folder = is_short && folder != NULL && job_data_is_folder(folder);
    // Of a path that is too long nothing is left: it would be another one.
    if (!has_folder || snprintf(ret_text, OPTION_VALUE_BYTES, "%s:%s/%s", text, folder, name) >=
                           OPTION_VALUE_BYTES) {
        snprintf(ret_text, OPTION_VALUE_BYTES, "%s", text);
    }
}

static bool parse_number(const char *text, size_t size, uint64_t most, uint64_t *ret_number)
{
    uint64_t number = 0;
    if (size == 0 || size > 16) {
        return false;
    }
    for (size_t i = 0; i < size; i++) {
        if (text[i] < '0' || text[i] > '9') {
            return false;
        }
        number = 10 * number + (uint64_t)(text[i] - '0');
    }
    *ret_number = number;
    return number > 0 && number <= most;
}

bool job_checkpoints_parse(const char *text, void *ret_field, char *ret_why, size_t why_size)
{
    struct checkpoint_every every = {CHECKPOINT_NEVER, 0};
    size_t size = strlen(text);
    bool has_unit = size > 0 && text[size - 1] == 'm';
    bool is_sound = true;
    if (strcmp(text, "epoch") == 0) {
        every.kind = CHECKPOINT_EPOCH;
    } else if (has_unit) {
        every.kind = CHECKPOINT_MINUTES;
        is_sound = parse_number(text, size - 1, CHECKPOINT_MINUTES_MAX, &every.number);
    } else if (strcmp(text, "none") != 0) {
        every.kind = CHECKPOINT_STEPS;
        is_sound = parse_number(text, size, CHECKPOINT_STEPS_MAX, &every.number);
    }
    if (!is_sound) {
        snprintf(ret_why, why_size,
                 "it is none, a number of steps such as 100 (at most %" PRIu64
                 "), minutes such as 5m (at most %" PRIu64 "m), or epoch",
                 CHECKPOINT_STEPS_MAX, CHECKPOINT_MINUTES_MAX);
        return false;
    }
    *(struct checkpoint_every *)ret_field = every;
    return true;
}

void job_checkpoints_format(const void *field, char *ret_text, size_t text_size)
{
    const struct checkpoint_every *every = field;
    switch (every->kind) {
    case CHECKPOINT_NEVER:
        snprintf(ret_text, text_size, "none");
        break;
    case CHECKPOINT_STEPS:
        snprintf(ret_text, text_size, "%" PRIu64, every->number);
        break;
    case CHECKPOINT_MINUTES:
        snprintf(ret_text, text_size, "%" PRIu64 "m", every->number);
        break;
    case CHECKPOINT_EPOCH:
        snprintf(ret_text, text_size, "epoch");
        break;
    }
}

bool job_timeline_steps_parse(const char *text, void *ret_field, char *ret_why, size_t why_size)
{
    struct trace_window window = {0, UINT64_MAX};
    const char *dots = strstr(text, "..");
    if (strcmp(text, "all") != 0) {
        uint64_t first;
        if (dots == NULL ||
            !parse_number(text, (size_t)(dots - text), CHECKPOINT_STEPS_MAX, &first) ||
            !parse_number(dots + 2, strlen(dots + 2), CHECKPOINT_STEPS_MAX, &window.end) ||
            first > window.end) {
            snprintf(ret_why, why_size,
                     "it is all, or the first and the last step, such as 100..120");
            return false;
        }
        window.first = first - 1;
    }
    *(struct trace_window *)ret_field = window;
    return true;
}

void job_timeline_steps_format(const void *field, char *ret_text, size_t text_size)
{
    const struct trace_window *window = field;
    if (window->first == 0 && window->end == UINT64_MAX) {
        snprintf(ret_text, text_size, "all");
    } else {
        snprintf(ret_text, text_size, "%" PRIu64 "..%" PRIu64, window->first + 1, window->end);
    }
}

bool job_model_is_valid(const char *text, char *ret_why, size_t why_size)
{
    snprintf(ret_why, why_size, "give your program a name: " JOB_EXTERNAL_PREFIX "NAME");
    return strcmp(text, JOB_EXTERNAL_PREFIX) != 0;
}

/* Whether a dataset has the path that it takes. */
static bool is_path_right(size_t dataset, const char *path, bool has_colon, char *ret_why,
                          size_t why_size)
{
    const char *name = names_datasets[dataset].name;
    if (paths[dataset][0] == '\0') {
        snprintf(ret_why, why_size, "%s takes no path", name);
        return !has_colon;
    }
    if (paths[dataset][0] == '[') {
        snprintf(ret_why, why_size, "%s%s: another dataset follows, or nothing does", name,
                 paths[dataset]);
        return !has_colon;
    }
    if (takes_folder(dataset)) {
        snprintf(ret_why, why_size,
                 "%s needs the folder of its files: %s:DIR (or RINGSIDE_DATA=FOLDER, with "
                 "FOLDER/%s)",
                 name, name, name);
    } else {
        snprintf(ret_why, why_size, "%s needs its file: %s%s", name, name, paths[dataset]);
    }
    return path[0] != '\0';
}

bool job_data_is_valid(const char *text, char *ret_why, size_t why_size)
{
    if (strncmp(text, JOB_EXTERNAL_PREFIX, strlen(JOB_EXTERNAL_PREFIX)) == 0) {
        return true; // those of an external model; job_check knows whether there is one
    }
    char name[JOB_NAME_BYTES];
    const char *path, *known[sizeof(paths) / sizeof(paths[0])];
    // Of synthetic:DATA, DATA, which is not synthetic itself.
    const char *data = names_behind_synthetic(text);
    data = data[0] == '\0' || names_is_synthetic(data) ? text : data;
    job_split_data(data, name, &path);
    for (size_t i = 0; names_datasets[i].name != NULL; i++) {
        known[i] = names_datasets[i].name;
        if (strcmp(known[i], name) != 0) {
            continue;
        }
        return is_path_right(i, path, strchr(data, ':') != NULL, ret_why, why_size);
    }
    const char *nearest = options_nearest(name, known, sizeof(paths) / sizeof(paths[0]));
    snprintf(ret_why, why_size, "there is no dataset '%s'%s%s%s", name,
             nearest != NULL ? "; did you mean " : "", nearest != NULL ? nearest : "",
             nearest != NULL ? "?" : "; see --help for the list");
    return false;
}

/* "cuda:1" */
static bool is_numbered_cuda(const char *text)
{
    size_t digits = strncmp(text, "cuda:", 5) == 0 ? strspn(text + 5, "0123456789") : 0;
    return digits > 0 && digits < 5 && text[5 + digits] == '\0';
}

bool job_device_is_valid(const char *text, char *ret_why, size_t why_size)
{
    static const char *const known[] = {"auto", "ref", "cpu", "cuda"};
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        if (strcmp(known[i], text) == 0) {
            return true;
        }
    }
    if (is_numbered_cuda(text)) {
        return true;
    }
    snprintf(ret_why, why_size, "a device is auto, ref, cpu, cuda or cuda:INDEX");
    return false;
}

bool job_server_device_is_valid(const char *text, char *ret_why, size_t why_size)
{
    if (strcmp(text, "host") == 0 || strcmp(text, "cuda") == 0 || is_numbered_cuda(text)) {
        return true;
    }
    snprintf(ret_why, why_size, "parameters of servers lie on host, cuda or cuda:INDEX");
    return false;
}

bool job_mode_is_valid(const char *text, char *ret_why, size_t why_size)
{
    struct mode mode;
    if (mode_parse(text, &mode) != STATUS_OK) {
        snprintf(ret_why, why_size,
                 "the bound of ps-ssp is a whole number of steps from 0 to %d: ps-ssp:2",
                 MODE_SLACK_MAX);
        return false;
    }
    return true;
}

bool job_augment_is_valid(const char *text, char *ret_why, size_t why_size)
{
    struct augmentation augmentation;
    return augmentation_parse(text, &augmentation, ret_why, why_size) == STATUS_OK;
}

bool job_normalize_is_valid(const char *text, char *ret_why, size_t why_size)
{
    struct normalization normalization;
    return normalization_parse(text, &normalization, ret_why, why_size) == STATUS_OK;
}

bool job_switch_is_valid(const char *text, char *ret_why, size_t why_size)
{
    struct switch_rules rules;
    return switch_parse(text, &rules, ret_why, why_size) == STATUS_OK;
}

bool job_straggler_is_valid(const char *text, char *ret_why, size_t why_size)
{
    struct straggler straggler;
    return straggler_parse(text, &straggler, ret_why, why_size) == STATUS_OK;
}

bool job_ranks_parse(const char *text, void *ret_field, char *ret_why, size_t why_size)
{
    return rank_list_parse(text, JOB_WORKERS_MAX, ret_field, ret_why, why_size);
}

void job_ranks_format(const void *field, char *ret_text, size_t text_size)
{
    rank_list_format(field, ret_text, text_size);
}

bool job_faults_are_valid(const char *text, char *ret_why, size_t why_size)
{
    struct faults faults;
    return faults_parse(text, &faults, ret_why, why_size) == STATUS_OK;
}

bool job_order_is_valid(const char *text, char *ret_why, size_t why_size)
{
    struct order order;
    return order_parse(text, &order, ret_why, why_size) == STATUS_OK;
}
