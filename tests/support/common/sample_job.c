/* Sets, resolves, and looks at what was said. */
#include "tests/support/common/sample_job.h"

#include "common/job/job_options.h"
#include "common/job/job_resolve.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <stdio.h>
#include <string.h>

struct job sample_job(const char *const settings[8])
{
    struct job job;
    char error[OPTION_ERROR_BYTES];
    memset(&job, 0, sizeof(job));
    struct option_set set = job_option_set(&job);
    options_reset(&set);
    for (size_t i = 0; i < 8 && settings[i] != NULL; i++) {
        char name[64];
        snprintf(name, sizeof(name), "%.*s", (int)strcspn(settings[i], "="), settings[i]);
        const char *value = strchr(settings[i], '=') + 1;
        if (options_set_text(&set, 1, name, value, error, sizeof(error)) != STATUS_OK) {
            fail_msg("%s", error);
        }
    }
    return job;
}

struct job sample_job_resolved(struct job job)
{
    char error[OPTION_ERROR_BYTES];
    if (job_resolve(&job, error, sizeof(error)) != STATUS_OK) {
        fail_msg("%s", error);
    }
    return job;
}

void sample_job_refuse(struct job job, const char *text)
{
    char error[OPTION_ERROR_BYTES] = "";
    assert_int_equal(job_resolve(&job, error, sizeof(error)), STATUS_INVALID);
    if (strstr(error, text) == NULL) {
        fail_msg("\"%s\" is not in: %s", text, error);
    }
}
