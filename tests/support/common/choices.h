/* Choices by their names, for tests. */
#ifndef TESTS_SUPPORT_COMMON_CHOICES_H
#define TESTS_SUPPORT_COMMON_CHOICES_H

#include "common/job/mode.h"
#include "common/options/options.h"

#include <assert.h>
#include <stdint.h>

/* The value of the enum that a name stands for. */
static inline uint32_t choice_of(const struct option_choice *choices, const char *name)
{
    struct option_picked picked = {.index = UINT32_MAX};
    bool is_there = option_pick(choices, name, 0, &picked);
    assert(is_there);
    (void)is_there;
    return picked.index;
}

/* "ps-ssp:2" */
static inline struct mode mode_of(const char *text)
{
    struct mode mode = {.kind = MODE_LOCAL};
    enum status status = mode_parse(text, &mode);
    assert(status == STATUS_OK);
    (void)status;
    return mode;
}

#endif
