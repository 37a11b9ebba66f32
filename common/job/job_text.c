/* Writes a job as text, and reads it back. */
#include "common/job/job_text.h"

#include "common/job/job_options.h"
#include "common/job/job_resolve.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define RATE_TOLERANCE 1e-6 // by which two rates that are meant to be one may differ

enum status job_encode(const struct job *job, char *ret_text, size_t text_size)
{
    size_t used = 0;
    for (size_t i = 0; i < job_option_count; i++) {
        char value[OPTION_VALUE_BYTES];
        option_format(&job_options[i], job, value, sizeof(value));
        int wrote =
            snprintf(ret_text + used, text_size - used, "%s=%s\n", job_options[i].name, value);
        if (wrote < 0 || (size_t)wrote >= text_size - used) {
            return STATUS_INVALID;
        }
        used += (size_t)wrote;
    }
    return STATUS_OK;
}

/* Sets the option of one line. */
static enum status decode_line(const char *line, size_t size, const struct option_set *set,
                               char *ret_error, size_t error_size)
{
    char name[64], value[OPTION_VALUE_BYTES];
    const char *equals = memchr(line, '=', size);
    size_t name_size = equals != NULL ? (size_t)(equals - line) : size;
    if (equals == NULL || name_size >= sizeof(name) || size - name_size - 1 >= sizeof(value)) {
        snprintf(ret_error, error_size, "the line '%.*s' is not name=value",
                 (int)(size < 60 ? size : 60), line);
        return STATUS_INVALID;
    }
    memcpy(name, line, name_size);
    name[name_size] = '\0';
    memcpy(value, equals + 1, size - name_size - 1);
    value[size - name_size - 1] = '\0';
    return options_set_text(set, 1, name, value, ret_error, error_size);
}

static enum status decode_lines(const char *text, const struct option_set *set, char *ret_error,
                                size_t error_size)
{
    enum status status = STATUS_OK;
    while (*text != '\0' && status == STATUS_OK) {
        size_t size = strcspn(text, "\n");
        status = decode_line(text, size, set, ret_error, error_size);
        text += size + (text[size] == '\n');
    }
    return status;
}

enum status job_decode(const char *text, struct job *ret_job, char *ret_error, size_t error_size)
{
    static const struct job zero;
    struct job job = zero;
    struct option_set set = job_option_set(&job);
    options_reset(&set);
    enum status status = decode_lines(text, &set, ret_error, error_size);
    if (status != STATUS_OK) {
        return status;
    }
    status = job_resolve(&job, ret_error, error_size);
    if (status == STATUS_OK) {
        *ret_job = job;
    }
    return status;
}

static const char *const optimizer_names[] = {"optimizer", "lr",    "momentum", "beta1",
                                              "beta2",     "decay", "epsilon",  "weight-decay"};
#define OPTIMIZER_NAME_COUNT (sizeof(optimizer_names) / sizeof(optimizer_names[0]))

/* OPTIMIZER_NAME_COUNT if it is none of them. */
static size_t find_optimizer_name(const char *name, size_t size)
{
    size_t i = 0;
    while (i < OPTIMIZER_NAME_COUNT &&
           (strlen(optimizer_names[i]) != size || memcmp(optimizer_names[i], name, size) != 0)) {
        i++;
    }
    return i;
}

bool job_option_is_of_optimizer(const char *name)
{
    return find_optimizer_name(name, strlen(name)) < OPTIMIZER_NAME_COUNT;
}

void job_encode_optimizer(const struct job *job, char ret_text[JOB_OPTIMIZER_TEXT_BYTES])
{
    size_t used = 0;
    for (size_t i = 0; i < job_option_count; i++) {
        char value[OPTION_VALUE_BYTES];
        if (job_option_is_of_optimizer(job_options[i].name)) {
            option_format(&job_options[i], job, value, sizeof(value));
            used += (size_t)snprintf(ret_text + used, JOB_OPTIMIZER_TEXT_BYTES - used, "%s=%.40s\n",
                                     job_options[i].name, value);
        }
    }
}

/* Whether all lines are of such rows, and no two of one row. */
static bool has_only_optimizer(const char *text)
{
    bool is_said[OPTIMIZER_NAME_COUNT] = {false};
    while (*text != '\0') {
        size_t index = find_optimizer_name(text, strcspn(text, "=\n"));
        if (index == OPTIMIZER_NAME_COUNT || is_said[index]) {
            return false;
        }
        is_said[index] = true;
        text += strcspn(text, "\n");
        text += *text == '\n';
    }
    return true;
}

static enum status take_lines(const char *text, struct job *job, char *ret_error, size_t error_size)
{
    double given = job->lr;
    struct option_set set = job_option_set(job);
    if (!has_only_optimizer(text)) {
        snprintf(ret_error, error_size, "what its program says is no optimizer");
        return STATUS_INVALID;
    }
    enum status status = decode_lines(text, &set, ret_error, error_size);
    if (status == STATUS_OK) {
        status = job_resolve(job, ret_error, error_size);
    }
    if (status != STATUS_OK) {
        return status;
    }
    // One writes 0.3, and another one computes 0.1 * 3.
    if (given > 0 && fabs(given - job->lr) > RATE_TOLERANCE * given) {
        snprintf(ret_error, error_size,
                 "its program has the learning rate %.9g, and the job --lr %.9g: leave --lr out",
                 job->lr, given);
        return STATUS_INVALID;
    }
    job->lr = given > 0 ? given : job->lr;
    return STATUS_OK;
}

#define CODEC_PREFIX "compress="

void job_encode_codec(const struct codec *codec, char text[JOB_OPTIMIZER_TEXT_BYTES])
{
    char value[CODEC_TEXT_BYTES];
    size_t used = strlen(text);
    codec_text(codec, value);
    snprintf(text + used, JOB_OPTIMIZER_TEXT_BYTES - used, CODEC_PREFIX "%s\n", value);
}

const char *job_text_codec(const char *text)
{
    while (*text != '\0' && strncmp(text, CODEC_PREFIX, strlen(CODEC_PREFIX)) != 0) {
        text += strcspn(text, "\n");
        text += *text == '\n';
    }
    return text;
}

/* Takes the last line of such a text. */
static enum status take_codec(const char *line, struct job *job, char *ret_error, size_t error_size)
{
    const struct codec given = job->compress;
    if (line[0] == '\0') {
        return STATUS_OK;
    }
    if (strcspn(line, "\n") + 1 != strlen(line)) {
        snprintf(ret_error, error_size,
                 "what its program says of --compress is no line of its own");
        return STATUS_INVALID;
    }
    struct option_set set = job_option_set(job);
    enum status status = decode_lines(line, &set, ret_error, error_size);
    if (status != STATUS_OK) {
        return status;
    }
    const struct codec told = job->compress;
    if (given.kind != CODEC_NONE && !codec_is_same(&given, &told)) {
        char own[CODEC_TEXT_BYTES], options[CODEC_TEXT_BYTES];
        codec_text(&told, own);
        codec_text(&given, options);
        snprintf(ret_error, error_size,
                 "its program compresses gradients by %s, and the job has --compress %s: leave one "
                 "of them out",
                 own, options);
        return STATUS_INVALID;
    }
    return job_resolve(job, ret_error, error_size); // with the checks of --compress
}

enum status job_take_optimizer(struct job *job, const char *whole, char *ret_error,
                               size_t error_size)
{
    struct job told = *job;
    char text[JOB_OPTIMIZER_TEXT_BYTES];
    const char *codec = job_text_codec(whole);
    if (strlen(whole) >= JOB_OPTIMIZER_TEXT_BYTES) {
        snprintf(ret_error, error_size, "what its program says of its optimizer is too long");
        return STATUS_INVALID;
    }
    snprintf(text, sizeof(text), "%.*s", (int)(codec - whole), whole);
    bool is_own = strcmp(text, JOB_OPTIMIZER_OWN) == 0;
    if (is_own) {
        told.optimizer = OPTIMIZER_AUTO;
    } else if (text[0] != '\0') {
        if (job->optimizer != OPTIMIZER_AUTO) {
            snprintf(ret_error, error_size,
                     "its program says an optimizer, and the job has --optimizer %s",
                     names_optimizers[job->optimizer].name);
            return STATUS_INVALID;
        }
        enum status status = take_lines(text, &told, ret_error, error_size);
        if (status != STATUS_OK) {
            return status;
        }
    }
    if (!is_own && told.optimizer == OPTIMIZER_AUTO) {
        snprintf(ret_error, error_size,
                 "neither --optimizer nor its program says which optimizer makes the updates");
        return STATUS_INVALID;
    }
    enum status status = take_codec(codec, &told, ret_error, error_size);
    if (status == STATUS_OK) {
        *job = told;
    }
    return status;
}
