/* Folders that commands write to. */
#ifndef DEPLOY_SYSTEM_FOLDER_H
#define DEPLOY_SYSTEM_FOLDER_H

#include "common/base/status.h"

#include <stdio.h>

#define FOLDER_PATH_MAX  4096
#define FOLDER_LOGS_NAME "logs" // in a run folder

/* Makes a folder and its parents, and `below` in it (NULL: nothing). Refuses a folder that is not
 * empty (a lock file does not count), or on a disk that is full. Logs. */
enum status folder_make(const char *folder, const char *below);

/* The same of a run folder in which a run goes on: it is not empty. */
enum status folder_go_on(const char *folder, const char *below);

/* Removes a folder with all that is in it, as far as it can. */
void folder_remove(const char *folder);

/* For the agent of a launcher that was killed, once all that it started has ended: removes the room
 * that was set aside for a summary, logs without a line, and its lock's file; then the folders that
 * were made for it, if they are empty. What is left does not look like a run. */
void folder_remove_lock(const char *lock_path);

/* Whether the folder of a run without a result may be removed, if there is one. STATUS_INVALID, if
 * it is no folder, or if anything is in it that no run has written. Logs. */
enum status folder_check_run(const char *folder);

/* Removes it, unless folder_check_run refuses that. */
enum status folder_remove_run(const char *folder);

/* Writes FOLDER/NAME: beside its place, and then moved there, so that it is whole or not there.
 * Logs.
 */
enum status folder_write(const char *folder, const char *name,
                         void (*write)(FILE *file, const void *context), const void *context);

#endif
