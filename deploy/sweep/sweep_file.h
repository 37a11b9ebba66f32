/* FOLDER/sweep.txt: what a sweep is, as text. Two sweeps are the same if their files have the same
 * runs, whatever command wrote them, and whatever becomes of them after a loss. */
#ifndef DEPLOY_SWEEP_SWEEP_FILE_H
#define DEPLOY_SWEEP_SWEEP_FILE_H

#include "common/base/status.h"
#include "deploy/sweep/sweep_plan.h"
#include "deploy/system/command_text.h"

#include <stdbool.h>

#define SWEEP_FILE_NAME "sweep.txt"

bool sweep_file_is_there(const char *folder);

/* Makes the folder and writes the file; or, if it is there, finds that it holds the same sweep:
 * STATUS_INVALID otherwise. Warns where it was begun with other options for losses. Logs. */
enum status sweep_file_open(const char *folder, const struct sweep_plan *plan, const char *command);

/* Reads the plan (sweep_plan_free) and the command. STATUS_MALFORMED, with a line in the log, for
 * what no sweep has written. */
enum status sweep_file_read(const char *folder, struct sweep_plan *ret_plan,
                            char ret_command[COMMAND_TEXT_BYTES]);

#endif
