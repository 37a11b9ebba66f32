/* The command that makes a run once more. */
#ifndef DEPLOY_PAGE_RUN_COMMAND_H
#define DEPLOY_PAGE_RUN_COMMAND_H

#include "deploy/report/run_folder.h"
#include "deploy/system/command_text.h"

#include <stdbool.h>

/* "ringside run --mode ring ..." of a run's job.json; with " -- PROGRAM ..." of a program of the
 * user's own. False if it has none, does not know the program, or is too long to be written. */
bool run_command_of(const struct run_folder *run, char ret_text[COMMAND_TEXT_BYTES]);

#endif
