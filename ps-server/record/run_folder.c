/* Makes and watches the run folder. */
#include "ps-server/record/run_folder.h"

#include "common/base/log.h"
#include "common/base/new_file.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>

#define PATH_BYTES 4096

static enum status make_folders(const char *folder)
{
    char path[PATH_BYTES];
    snprintf(path, sizeof(path), "%s", folder);
    for (char *slash = path + 1;; slash++) {
        if (*slash != '/' && *slash != '\0') {
            continue;
        }
        char end = *slash;
        *slash = '\0';
        if (mkdir(path, 0777) != 0 && errno != EEXIST) {
            log_error("cannot make the run folder %s: %m", path);
            return STATUS_IO;
        }
        *slash = end;
        if (end == '\0') {
            return STATUS_OK;
        }
    }
}

enum status run_folder_open(struct run_folder *folder, const char *path)
{
    char error[PATH_BYTES];
    struct stat facts;
    enum status status = make_folders(path);
    if (status != STATUS_OK) {
        return status;
    }
    status = new_file_check_folder(path, error, sizeof(error));
    if (status != STATUS_OK) {
        log_error("%s", error);
        return status;
    }
    if (stat(path, &facts) != 0) {
        log_error("cannot look at the run folder %s: %m", path);
        return STATUS_IO;
    }
    *folder = (struct run_folder){path, facts.st_dev, facts.st_ino, false};
    return STATUS_OK;
}

bool run_folder_is_in_place(const struct run_folder *folder)
{
    struct stat named;
    return stat(folder->path, &named) == 0 && named.st_dev == folder->device &&
           named.st_ino == folder->inode;
}

bool run_folder_check(struct run_folder *folder)
{
    bool was_moved = folder->is_moved;
    folder->is_moved = !run_folder_is_in_place(folder);
    if (folder->is_moved && !was_moved) {
        log_error("somebody has moved or removed the run folder %s: training goes on, but the job "
                  "fails at its end if the folder is not back there by then",
                  folder->path);
    }
    return !folder->is_moved;
}
