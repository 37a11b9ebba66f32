/* Keeps a folder for one command at a time.
 *
 * The lock is one of the kernel's (flock) on a file in the folder, so it ends with the processes
 * that hold it, however they end; on NFS, all hosts see it. The agents of this host and their
 * processes inherit it: the folder of a launcher that was killed is free when they have ended, too,
 * and the agent removes the file. The file names the holder, for people; a file that nobody has
 * locked says nothing. */
#ifndef DEPLOY_FOLDER_LOCK_H
#define DEPLOY_FOLDER_LOCK_H

#include "common/status.h"
#include "deploy/folder.h"

#include <stddef.h>

#define FOLDER_LOCK_NAME ".ringside.lock"

/* A zeroed one holds nothing. */
struct folder_lock {
    char folder[FOLDER_PATH_MAX]; // "": it holds nothing
    size_t made_from;             // the folder and those above it were made from this length on
    int fd;
};

/* Makes the folder, and those above it, if it is not there. Logs who holds it. Where the file
 * system has no locks, it warns, and goes on without. */
enum status folder_lock_take(const char *folder, struct folder_lock *ret_lock);

/* The file that is locked. */
void folder_lock_path(const char *folder, char *ret_path, size_t path_size);

/* Removes folders that were made and have stayed empty. */
void folder_lock_release(struct folder_lock *lock);

#endif
