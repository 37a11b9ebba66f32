/* Builds the JSON tree of job.json: the options of the job, its members, and what they said of
 * their data and devices. */
#include "ps-server/record/job_record.h"

#include "common/job/job_modes.h"
#include "common/job/job_options.h"
#include "common/job/job_resume.h"
#include "common/job/job_text.h"
#include "common/optimizer/groups.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static json_t *integer(uint64_t value)
{
    return json_integer((json_int_t)value);
}

static json_t *option_json(const struct option *row, const struct job *job)
{
    const char *field = (const char *)job + row->offset;
    char text[OPTION_VALUE_BYTES];
    option_format(row, job, text, sizeof(text));
    if (row->choices != NULL && strcmp(row->choices[0].name, text) == 0) {
        return json_string(text); // also of a number
    }
    switch (row->type) {
    case OPTION_FLAG:
        return json_boolean(*(const bool *)(const void *)field);
    case OPTION_U32:
        return integer(*(const uint32_t *)(const void *)field);
    case OPTION_U64:
        return integer(*(const uint64_t *)(const void *)field);
    case OPTION_REAL:
        return json_real(*(const double *)(const void *)field);
    case OPTION_TEXT:
    case OPTION_NAME:
    case OPTION_CHOICE:
    case OPTION_PARSED:
    case OPTION_LIST:
        return json_string(text);
    }
    return NULL;
}

static json_t *member_json(const char *role, uint32_t index, const struct slot *slot)
{
    return json_pack("{s:s, s:i, s:s, s:I, s:s, s:s}", "role", role, "index", (int)index, "host",
                     slot->host, "pid", (json_int_t)slot->process_id, "place", slot->place,
                     "device", slot->device);
}

/* How worker 0 computes, where there is a choice, and who does not; or null. */
static json_t *choices_json(const struct coordinator *coordinator)
{
    const struct membership *membership = &coordinator->membership;
    json_t *list = json_array(), *others = json_array();
    char digest[17];
    uint64_t first = membership->workers[0].choices_digest, any = first;
    for (uint32_t i = 1; i < membership->worker_count; i++) {
        any |= membership->workers[i].choices_digest;
        if (membership->workers[i].choices_digest != first) {
            json_array_append_new(others, integer(i));
        }
    }
    for (const char *at = coordinator->choices.text; *at != '\0';) {
        size_t length = strcspn(at, "\n");
        json_array_append_new(list, json_stringn(at, length));
        at += length + (at[length] == '\n' ? 1 : 0);
    }
    if (any == 0) {
        json_decref(list);
        json_decref(others);
        return json_null();
    }
    snprintf(digest, sizeof(digest), "%016llx", (unsigned long long)first);
    return json_pack("{s:s, s:o, s:o}", "digest", digest, "list", list, "other_ranks", others);
}

const char *job_record_bits_of(const struct job *job)
{
    return job_has_nccl(job) ? "nccl" : "ringside";
}

/* The names of classes, where the data have any. */
static json_t *classes_json(const struct coordinator *coordinator)
{
    const char *text = long_text_whole(&coordinator->classes);
    json_t *classes = text != NULL ? json_loads(text, 0, NULL) : NULL;
    if (!json_is_array(classes)) {
        json_decref(classes);
        return json_null();
    }
    return classes;
}

/* Who has said the optimizer: a program of its own, or the job's options. Nobody has where the
 * program makes the updates. */
static const char *optimizer_from(const struct coordinator *coordinator)
{
    return coordinator->job->optimizer == OPTIMIZER_AUTO ? NULL
           : job_text_codec(coordinator->optimizer) != coordinator->optimizer
               ? "program" // which says more than how gradients are compressed
               : "options";
}

/* Floats of the model that are of each group. */
static uint64_t values_of(const struct optimizer_groups *groups, uint32_t group)
{
    uint64_t begin = 0, count = 0;
    for (uint32_t i = 0; i < groups->run_count; i++) {
        count += groups->run_groups[i] == group ? groups->run_ends[i] - begin : 0;
        begin = groups->run_ends[i];
    }
    return count;
}

/* The groups of parameters that a program of its own has said; or null. */
static json_t *groups_json(const struct coordinator *coordinator)
{
    const struct optimizer_groups *groups = coordinator->groups;
    const struct job *job = coordinator->job;
    if (groups == NULL) {
        return json_null();
    }
    json_t *list = json_array();
    for (uint32_t i = 0; i < groups->group_count; i++) {
        struct optimizer_setting settings[OPTIMIZER_SETTINGS_MAX];
        struct optimizer_group group = groups->groups[i];
        group.rate *= job->lr;
        uint32_t count = optimizer_group_settings(&group, job->optimizer, settings);
        json_t *row = json_pack("{s:I}", "values", (json_int_t)values_of(groups, i));
        for (uint32_t k = 0; k < count; k++) {
            json_object_set_new(row, settings[k].name, json_real(settings[k].value));
        }
        json_array_append_new(list, row);
    }
    return list;
}

/* Mean and deviation of each channel, where a worker said them; or null. */
static json_t *normalization_json(const struct coordinator *coordinator)
{
    json_t *lists[2] = {json_array(), json_array()};
    const char *at = coordinator->figures;
    bool is_whole = true;
    for (size_t i = 0; i < 2 && is_whole; i++) {
        char stop = i == 0 ? '/' : '\0';
        do {
            char *end;
            double figure = strtod(at, &end);
            json_array_append_new(lists[i], json_real(figure)); // which takes no other than finite
            is_whole = end != at && isfinite(figure) && (*end == ',' || *end == stop);
            at = end + (*end != '\0');
        } while (is_whole && at[-1] == ',');
    }
    json_t *object =
        is_whole ? json_pack("{s:O, s:O}", "mean", lists[0], "deviation", lists[1]) : json_null();
    json_decref(lists[0]);
    json_decref(lists[1]);
    return object;
}

/* The job as it was given, with the optimizer that its program has said. */
static json_t *options_json(const struct coordinator *coordinator, const struct job *given)
{
    json_t *options = json_object();
    char error[OPTION_ERROR_BYTES];
    struct job job = *given;
    if (coordinator->job == &coordinator->told_job) { // it was taken before, so it can be
        (void)job_take_optimizer(&job, coordinator->optimizer, error, sizeof(error));
    }
    for (size_t i = 0; i < job_option_count; i++) {
        json_object_set_new(options, job_options[i].name, option_json(&job_options[i], &job));
    }
    return options;
}

json_t *job_record_json(const struct coordinator *coordinator, const struct job *given,
                        const char *program, bool has_keys)
{
    json_t *members = json_array();
    const struct membership *membership = &coordinator->membership;
    for (uint32_t i = 0; i < membership->server_count; i++) {
        json_array_append_new(members, member_json("server", i, &membership->servers[i]));
    }
    for (uint32_t i = 0; i < membership->worker_count; i++) {
        json_array_append_new(members, member_json("worker", i, &membership->workers[i]));
    }
    program = program != NULL && program[0] != '\0' ? program : NULL;
    const char *security = has_keys ? security_choices[given->security].name : "none";
    return json_pack(
        "{s:s, s:i, s:I, s:I, s:I, s:s, s:s, s:s?, s:s?, s:o, s:o, s:o, s:o, s:o, s:o}", "version",
        RINGSIDE_VERSION, "wire_version", WIRE_VERSION, "parameters",
        (json_int_t)coordinator->parameters, "train_samples",
        (json_int_t)coordinator->train_samples, "test_samples",
        (json_int_t)coordinator->test_samples, "bits_of", job_record_bits_of(coordinator->job),
        "security", security, "program", program, "optimizer_from", optimizer_from(coordinator),
        "optimizer_groups", groups_json(coordinator), "options", options_json(coordinator, given),
        "members", members, "choices", choices_json(coordinator), "classes",
        classes_json(coordinator), "normalization", normalization_json(coordinator));
}

/* Whether two values are written alike. Takes `value`. */
static bool is_alike(const json_t *saved, json_t *value)
{
    const size_t flags = JSON_ENCODE_ANY | JSON_REAL_PRECISION(9);
    char *before = json_dumps(saved, flags), *now = json_dumps(value, flags);
    bool is_alike = before == NULL || now == NULL || strcmp(before, now) == 0;
    free(before);
    free(now);
    json_decref(value);
    return is_alike;
}

/* Whether it may have another value in a job.json of the same job. A program of its own may have
 * said what makes updates. */
static bool may_change(const char *name, const struct job *given)
{
    bool is_said = job_option_is_of_optimizer(name) || strcmp(name, "compress") == 0;
    return job_option_may_change(name, given) || strcmp(name, "epochs") == 0 ||
           (is_said && job_is_external(given));
}

const char *job_record_stranger(const json_t *record, const struct job *given)
{
    const json_t *options = json_object_get(record, "options");
    for (size_t i = 0; i < job_option_count; i++) {
        const struct option *row = &job_options[i];
        const json_t *saved = json_object_get(options, row->name); // NULL: of another version
        if (saved != NULL && !may_change(row->name, given) &&
            !is_alike(saved, option_json(row, given))) {
            return row->name;
        }
    }
    return NULL;
}
