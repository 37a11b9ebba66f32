/* The modes of a job: how gradients are exchanged. Pure. */
#ifndef COMMON_JOB_MODE_H
#define COMMON_JOB_MODE_H

#include "common/base/status.h"
#include "common/options/options.h"

#include <stdbool.h>
#include <stdint.h>

#define MODE_SLACK_MAX  1000000
#define MODE_TEXT_BYTES 32

enum mode_kind {
    MODE_LOCAL,
    MODE_RING,
    MODE_PS_SYNC,
    MODE_PS_SSP,
    MODE_PS_ASYNC,
};

/* As struct option_picked. */
struct mode {
    enum mode_kind kind;
    uint32_t slack_steps; // ps-ssp: the S of "ps-ssp:S"; 0 in the others
};

/* By enum mode_kind; ends with a row whose name is NULL. */
extern const struct option_choice mode_choices[];

/* Reads "ring", "ps-ssp:4". STATUS_INVALID if there is no such mode, or its number is wrong. */
enum status mode_parse(const char *text, struct mode *ret_mode);

/* The text of which mode_parse makes this mode. By value, for the arguments of a printf. */
struct mode_text {
    char text[MODE_TEXT_BYTES];
};
struct mode_text mode_text(struct mode mode);

bool mode_has_servers(enum mode_kind kind);

/* Every push is an update: ps-ssp and ps-async. */
bool mode_updates_on_push(enum mode_kind kind);

#endif
