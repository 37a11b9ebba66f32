/* The runs of a comparison: lists of modes, workers, servers and transports, crossed. Pure. */
#ifndef DEPLOY_GRID_H
#define DEPLOY_GRID_H

#include "common/job.h"
#include "common/status.h"

#include <stddef.h>

#define GRID_CELLS_MAX  256
#define GRID_TEXT_BYTES 256

struct grid_lists {
    char modes[GRID_TEXT_BYTES], workers[GRID_TEXT_BYTES], servers[GRID_TEXT_BYTES],
        transports[GRID_TEXT_BYTES]; // "1,2,4"; "" for what the job says
};

struct grid_cell {
    struct job job; // resolved
    char name[64];  // of its folder: "ps-sync-n4-s2-tcp"
};

/* Takes the lists out of the arguments: --modes, and --workers, --servers, --transport (or their
 * letters) where their value has a comma. What is left is a command line for options_parse.
 * ret_argv has room for argc + 1. STATUS_INVALID with a sentence. */
enum status grid_take_lists(int argc, char **argv, struct grid_lists *ret_lists, int *ret_argc,
                            char **ret_argv, char ret_error[OPTION_ERROR_BYTES]);

/* Every combination, resolved; those that would be the same run are there once (servers matter to
 * ps modes alone; local is one worker on the global batch). ret_cells has GRID_CELLS_MAX. */
enum status grid_make_cells(const struct job *job, const struct grid_lists *lists,
                            struct grid_cell *ret_cells, size_t *ret_count,
                            char ret_error[OPTION_ERROR_BYTES]);

#endif
