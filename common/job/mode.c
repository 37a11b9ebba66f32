/* Names of modes, and what sets one apart from another. */
#include "common/job/mode.h"

#include <assert.h>
#include <stddef.h>

static_assert(sizeof(struct mode) == sizeof(struct option_picked), "an option row sets a mode");
static_assert(offsetof(struct mode, slack_steps) == offsetof(struct option_picked, number),
              "the number of a mode is its slack");

const struct option_choice mode_choices[] = {
    [MODE_LOCAL] = {"local", "one worker with the whole global batch, no exchange: the baseline"},
    [MODE_RING] = {"ring", "ring all-reduce among the workers"},
    [MODE_PS_SYNC] = {"ps-sync",
                      "parameter server: one update a step, from the gradients of all workers"},
    [MODE_PS_SSP] = {"ps-ssp:S",
                     "parameter server: an update for each gradient; nobody is more than S steps "
                     "ahead of the slowest (stale synchronous parallel)"},
    [MODE_PS_ASYNC] = {"ps-async",
                       "parameter server: an update for each gradient; nobody waits for others"},
    {NULL, NULL},
};

enum status mode_parse(const char *text, struct mode *ret_mode)
{
    struct option_picked picked;
    if (!option_pick(mode_choices, text, MODE_SLACK_MAX, &picked)) {
        return STATUS_INVALID;
    }
    *ret_mode = (struct mode){.kind = (enum mode_kind)picked.index, .slack_steps = picked.number};
    return STATUS_OK;
}

struct mode_text mode_text(struct mode mode)
{
    const struct option_picked picked = {.index = mode.kind, .number = mode.slack_steps};
    struct mode_text text;
    option_picked_text(mode_choices, picked, text.text, sizeof(text.text));
    return text;
}

bool mode_has_servers(enum mode_kind kind)
{
    switch (kind) {
    case MODE_LOCAL:
    case MODE_RING:
        return false;
    case MODE_PS_SYNC:
    case MODE_PS_SSP:
    case MODE_PS_ASYNC:
        return true;
    }
    return false;
}

bool mode_updates_on_push(enum mode_kind kind)
{
    switch (kind) {
    case MODE_LOCAL:
    case MODE_RING:
    case MODE_PS_SYNC:
        return false;
    case MODE_PS_SSP:
    case MODE_PS_ASYNC:
        return true;
    }
    return false;
}
