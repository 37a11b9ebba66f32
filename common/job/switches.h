/* Reads --switch: at which points a job goes on in another mode. Pure. */
#ifndef COMMON_JOB_SWITCHES_H
#define COMMON_JOB_SWITCHES_H

#include "common/base/status.h"
#include "common/job/mode.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SWITCHES_MAX 15

/* As it is written: "epoch:3=ps-async" or "step:2000=ring". */
struct switch_rule {
    bool is_epoch;
    uint64_t at; // epochs or steps that were made before
    struct mode mode;
};

struct switch_rules {
    struct switch_rule rules[SWITCHES_MAX];
    uint32_t count;
};

/* Reads "none", or rules joined by semicolons. STATUS_INVALID: ret_why says what would be right. */
enum status switch_parse(const char *text, struct switch_rules *ret_rules, char *ret_why,
                         size_t why_size);

#endif
