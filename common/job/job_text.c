/* Writes a job as text, and reads it back. */
#include "common/job/job_text.h"

#include "common/job/job_options.h"
#include "common/job/job_resolve.h"

#include <stdio.h>
#include <string.h>

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

enum status job_decode(const char *text, struct job *ret_job, char *ret_error, size_t error_size)
{
    static const struct job zero;
    struct job job = zero;
    struct option_set set = job_option_set(&job);
    options_reset(&set);
    while (*text != '\0') {
        size_t size = strcspn(text, "\n");
        enum status status = decode_line(text, size, &set, ret_error, error_size);
        if (status != STATUS_OK) {
            return status;
        }
        text += size + (text[size] == '\n');
    }
    enum status status = job_resolve(&job, ret_error, error_size);
    if (status == STATUS_OK) {
        *ret_job = job;
    }
    return status;
}
