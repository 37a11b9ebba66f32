/* The run folder itself: made with those above it, and watched, since somebody may move or remove
 * it while the job runs. */
#ifndef PS_SERVER_RECORD_RUN_FOLDER_H
#define PS_SERVER_RECORD_RUN_FOLDER_H

#include "common/base/status.h"

#include <stdbool.h>
#include <sys/types.h>

/* Which folder it is that has the path. */
struct run_folder {
    const char *path; // borrowed
    dev_t device;
    ino_t inode;
    bool is_moved; // it has the path no more: it was said
};

/* Makes the folder (and those above it) if it is not there, and opens it: nobody else may change
 * what is in it. Logs. */
enum status run_folder_open(struct run_folder *folder, const char *path);

/* Whether it still has its path. */
bool run_folder_is_in_place(const struct run_folder *folder);

/* The same, and logs it once when it has not. */
bool run_folder_check(struct run_folder *folder);

#endif
