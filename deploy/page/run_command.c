/* Turns the options in a job.json back into a command line, without those at their defaults. */
#include "deploy/page/run_command.h"

#include "common/base/printable.h"
#include "common/base/shell_word.h"
#include "common/job/job_checks.h"
#include "common/job/job_options.h"
#include "common/job/job_text.h"
#include "deploy/system/command_text.h"

#include <stdlib.h>
#include <string.h>

#define VALUE_BYTES 512

/* As options_set_text reads it. */
static void format_value(const json_t *value, char *ret_text, size_t text_size)
{
    if (json_is_boolean(value)) {
        snprintf(ret_text, text_size, "%s", json_is_true(value) ? "true" : "false");
    } else if (json_is_string(value)) {
        snprintf(ret_text, text_size, "%s", json_string_value(value));
        printable_make_utf8(ret_text);
    } else if (json_is_integer(value)) {
        snprintf(ret_text, text_size, "%lld", (long long)json_integer_value(value));
    } else {
        snprintf(ret_text, text_size, "%.9g", json_number_value(value));
    }
}

/* Whether a job with these options goes on after a loss unless --on-loss says otherwise. */
static bool goes_on_by_default(const json_t *options)
{
    struct job job = {.workers = 0};
    const struct option_set set = job_option_set(&job);
    options_reset(&set);
    for (size_t i = 0; i < job_option_count; i++) {
        char text[VALUE_BYTES], why[OPTION_ERROR_BYTES];
        const json_t *value = json_object_get(options, job_options[i].name);
        if (value != NULL && !json_is_null(value)) {
            format_value(value, text, sizeof(text));
            (void)options_set_text(&set, 1, job_options[i].name, text, why, sizeof(why));
        }
    }
    return !job_is_external(&job) && job_can_redeal(&job);
}

/* Whether --on-loss is what the job would choose itself. */
static bool is_usual_loss(const json_t *options)
{
    const char *value = json_string_value(json_object_get(options, "on-loss"));
    if (value == NULL || strcmp(value, "redeal") == 0) {
        return true; // jobs that cannot do that reject it
    }
    return strcmp(value, "fail") == 0 && !goes_on_by_default(options);
}

/* Whether losses have left out ranks, besides those that somebody may have named. */
static bool has_shrunk(const struct run_folder *run, const json_t *options)
{
    const char *value = json_string_value(json_object_get(options, "on-loss"));
    return value != NULL && strcmp(value, "shrink") == 0 &&
           run_folder_number(run, "workers_lost") > 0;
}

/* What the launcher chose itself, or follows from another option. */
static bool is_derived(const struct run_folder *run, const json_t *options, const char *name)
{
    if (strcmp(name, "security") == 0 || strcmp(name, "lr-workers") == 0) {
        return true;
    }
    if (strcmp(name, "on-loss") == 0) {
        return is_usual_loss(options);
    }
    if (strcmp(name, "without-ranks") == 0) {
        return has_shrunk(run, options);
    }
    if (strcmp(name, "batch") == 0) {
        return json_number_value(json_object_get(options, "global-batch")) > 0;
    }
    // A mode without servers has none, whatever is said.
    return strcmp(name, "servers") == 0 &&
           json_number_value(json_object_get(options, "servers")) == 0;
}

static bool is_default(const struct option *option, const json_t *value, bool is_external)
{
    const char *text = job_option_default(option, is_external);
    if (text == NULL) {
        return true;
    }
    if (json_is_boolean(value)) {
        return json_is_true(value) == (strcmp(text, "true") == 0);
    }
    if (json_is_number(value)) {
        char *end;
        double number = strtod(text, &end);
        return end != text && *end == '\0' && json_number_value(value) == number;
    }
    return !json_is_string(value) || strcmp(json_string_value(value), text) == 0;
}

static void append(char ret_text[COMMAND_TEXT_BYTES], const char *word)
{
    char quoted[COMMAND_TEXT_BYTES];
    size_t used = strlen(ret_text);
    shell_word_quote(word, quoted, sizeof(quoted));
    snprintf(ret_text + used, COMMAND_TEXT_BYTES - used, "%s%s", used > 0 ? " " : "", quoted);
}

static void append_option(char ret_text[COMMAND_TEXT_BYTES], const char *name, const json_t *value)
{
    char flag[128], text[VALUE_BYTES];
    snprintf(flag, sizeof(flag), "--%s%.100s", json_is_false(value) ? "no-" : "", name);
    append(ret_text, flag);
    if (!json_is_boolean(value)) {
        format_value(value, text, sizeof(text));
        append(ret_text, text);
    }
}

static bool is_of_own_program(const json_t *options)
{
    const char *model = json_string_value(json_object_get(options, "model"));
    return model != NULL && strncmp(model, JOB_EXTERNAL_PREFIX, strlen(JOB_EXTERNAL_PREFIX)) == 0;
}

/* Whether the rate follows the job's schedule, which begins at the job's rate or the program's. */
static bool has_schedule(const json_t *options)
{
    const char *schedule = json_string_value(json_object_get(options, "lr-schedule"));
    return json_number_value(json_object_get(options, "warmup-epochs")) > 0 ||
           (schedule != NULL && strcmp(schedule, "constant") != 0);
}

/* Of a program of the user's own: what the launcher fills in, and what the program says itself. */
static bool is_of_program(const json_t *job, const char *name)
{
    const json_t *options = json_object_get(job, "options");
    const json_t *said_by = json_object_get(job, "optimizer_from");
    const char *from = json_string_value(said_by);
    bool makes_updates = json_is_null(said_by); // older folders do not have it
    bool has_said = from != NULL && strcmp(from, "program") == 0;
    if (strcmp(name, "data") == 0 || strcmp(name, "eval") == 0) {
        return true;
    }
    if (strcmp(name, "steps") == 0) {
        return json_number_value(json_object_get(options, "steps")) == (double)JOB_STEPS_OPEN;
    }
    if (strcmp(name, "lr") == 0) { // which a program that makes the updates may read
        return has_said && !has_schedule(options);
    }
    // Without --optimizer the job takes no --lr-scale either.
    return (has_said || makes_updates) &&
           (job_option_is_of_optimizer(name) || strcmp(name, "lr-scale") == 0);
}

/* Appends what follows `--`, which is quoted already. False: job.json does not have it. */
static bool append_program(const json_t *job, char ret_text[COMMAND_TEXT_BYTES])
{
    const char *program = json_string_value(json_object_get(job, "program"));
    size_t used = strlen(ret_text);
    if (program == NULL || program[0] == '\0') {
        return false;
    }
    snprintf(ret_text + used, COMMAND_TEXT_BYTES - used, " -- %s", program);
    printable_make_utf8(ret_text + used);
    return true;
}

bool run_command_of(const struct run_folder *run, char ret_text[COMMAND_TEXT_BYTES])
{
    const json_t *options = json_object_get(run->job, "options");
    bool is_own = is_of_own_program(options);
    ret_text[0] = '\0';
    if (!json_is_object(options)) {
        return false;
    }
    append(ret_text, "ringside");
    append(ret_text, "run");
    for (size_t i = 0; i < job_option_count; i++) {
        const struct option *option = &job_options[i];
        const json_t *value = json_object_get(options, option->name);
        bool is_mode = strcmp(option->name, "mode") == 0; // which is what a reader looks for
        if (value != NULL && !is_derived(run, options, option->name) &&
            !(is_own && is_of_program(run->job, option->name)) &&
            (is_mode || !is_default(option, value, is_own))) {
            append_option(ret_text, option->name, value);
        }
    }
    if (is_own && !append_program(run->job, ret_text)) {
        return false;
    }
    return strlen(ret_text) + 1 < COMMAND_TEXT_BYTES; // a part of a command would run another job
}
