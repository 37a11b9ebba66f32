/* The folder that has the checkpoints, while they are written. Nothing logs. */
#ifndef COMMON_CHECKPOINT_CHECKPOINT_FOLDER_H
#define COMMON_CHECKPOINT_CHECKPOINT_FOLDER_H

#include "common/base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Makes the folder if need be, opens it, and removes what an earlier process has begun there and
 * not ended. The caller closes *ret_folder. On failure a sentence says why, errno is the disk's,
 * and *ret_folder is -1. */
enum status checkpoint_folder_open(const char *path, int *ret_folder, char *ret_error,
                                   size_t error_size);

/* Whether the open folder still has this path: somebody may have moved or removed it. A symbolic
 * link to it does not count, because those who read checkpoints refuse links. */
bool checkpoint_folder_is_in_place(const char *path, int folder);

/* Closes *folder, which may be -1, and makes another one in its place, as checkpoint_folder_open
 * does. Checkpoints in a folder that is there are somebody else's, and then that fails, unless it
 * has the inode `known`: a server of files that was restarted has it again. */
enum status checkpoint_folder_make_again(const char *path, ino_t known, int *folder,
                                         char *ret_error, size_t error_size);

#endif
