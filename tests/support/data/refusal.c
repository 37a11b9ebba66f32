/* Datasets that must not open, and what they say. */
#include "tests/support/data/refusal.h"

#include "tests/support/common/captured_log.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <stdio.h>
#include <string.h>

#define DATA_BYTES 4096

void refusal_check(const char *name, const char *folder, enum dataset_split split,
                   enum status expected, const char *const texts[3])
{
    char data[DATA_BYTES];
    snprintf(data, sizeof(data), "%s:%s", name, folder);
    struct dataset *dataset = NULL;
    captured_log_begin();
    enum status status =
        dataset_open(data, &(struct dataset_options){.seed = 1, .split = split}, &dataset);
    const char *log = captured_log_end();
    if (status != expected) {
        fail_msg("%s gave \"%s\", and this log: %s", data, status_text(status), log);
    }
    assert_null(dataset);
    const char *line_end = strchr(log, '\n');
    if (line_end == NULL || line_end[1] != '\0') {
        fail_msg("not one line: %s", log);
    }
    for (int i = 0; i < 3; i++) {
        if (texts[i] != NULL && strstr(log, texts[i]) == NULL) {
            fail_msg("\"%s\" is not in: %s", texts[i], log);
        }
    }
}
