/* The options by which a job is shown while it runs, which `ps` and its launcher both have. */
#ifndef COMMON_LIVE_LIVE_OPTIONS_H
#define COMMON_LIVE_LIVE_OPTIONS_H

#include "common/live/live_request.h"
#include "common/options/options.h"

#include <stddef.h>

/* For a table of options: rows that fill the fields `tensorboard` (bool) and `dashboard` (text) of
 * their owner. */
#define LIVE_OPTION_ROWS(owner)                                                                  \
    {.name = "tensorboard",                                                                      \
     OPTION_FIELD(FLAG, owner, tensorboard),                                                     \
     .fallback = "false",                                                                        \
     .help = "write the folder `tensorboard` of the run folder, for TensorBoard to show: loss, " \
             "accuracy, rates and times of each rank and their mean"},                           \
    {                                                                                            \
        .name = "dashboard", OPTION_FIELD(TEXT, owner, dashboard), .fallback = "", .alone = "0", \
        .is_valid = live_address_is_valid, .metavar = "[ADDRESS:]PORT",                          \
        .help = "serve a live page of the job to browsers, over HTTP, and print its address, "   \
                "which has a secret; without a value at a free port of the loopback interface"   \
    }

#endif
