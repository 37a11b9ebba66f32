/* Locks a folder, so that only one command at a time writes to it.
 *
 * It is a lock of the kernel (flock) on a file in the folder, so it ends with the processes that
 * hold it, however they end; on NFS, all hosts see it. A launcher takes it, or a coordinator that
 * has none. The agents of this host and their processes inherit a launcher's: after it was killed,
 * its folder becomes free once they too have ended, and the agent removes the file. The file names
 * the holder for people; without a lock on it, the file means nothing. */
#ifndef COMMON_BASE_FOLDER_LOCK_H
#define COMMON_BASE_FOLDER_LOCK_H

#include "common/base/status.h"

#include <stdbool.h>
#include <stddef.h>

#define FOLDER_LOCK_NAME     ".ringside.lock"
#define FOLDER_LOCK_PATH_MAX 4096

/* A zeroed one holds nothing. */
struct folder_lock {
    char folder[FOLDER_LOCK_PATH_MAX]; // "": it holds nothing
    size_t made_from;                  // path length of the first folder that was made
    int fd;
};

/* Makes the folder and its parents if they are missing. STATUS_TIMED_OUT, and who holds it is
 * logged, if it is held. Where the file system has no locks, it warns and goes on without one. */
enum status folder_lock_take(const char *folder, struct folder_lock *ret_lock);

/* Whether somebody holds it now. False where the folder or its file system has no lock. */
bool folder_lock_is_held(const char *folder);

/* The file that is locked. */
void folder_lock_path(const char *folder, char *ret_path, size_t path_size);

/* Lets the processes that this one starts hold the lock as well. */
void folder_lock_bequeath(const struct folder_lock *lock);

/* For a holder that was killed: removes the file, and then the folders that were made for it, if
 * they are empty. */
void folder_lock_remove_left(const char *lock_path);

/* Ends the lock, and removes folders that were made for it and are empty. */
void folder_lock_release(struct folder_lock *lock);

#endif
