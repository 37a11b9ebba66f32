/* Opens the folder that has the checkpoints, and makes it again. */
#include "common/checkpoint/checkpoint_folder.h"

#include "common/base/new_file.h"
#include "common/checkpoint/step_folders.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Room for a sentence. */
struct text {
    char *bytes; // borrowed
    size_t size;
};

/* errno says why. `name` is a file in the folder, or "". */
static enum status fail(const char *what, const char *path, const char *name, struct text ret_error)
{
    int error = errno;
    snprintf(ret_error.bytes, ret_error.size, "cannot %s %s%s%s: %s: %s", what, path,
             name[0] != '\0' ? "/" : "", name, strerrordesc_np(error), step_folder_advice(error));
    errno = error;
    return STATUS_IO;
}

static enum status remove_unfinished(const char *path, int folder, struct text ret_error)
{
    struct step_folder *folders;
    size_t count;
    if (step_folders_list(folder, &folders, &count) != STATUS_OK) {
        return fail("list the checkpoints in", path, "", ret_error);
    }
    enum status status = STATUS_OK;
    for (size_t i = 0; i < count && status == STATUS_OK; i++) {
        char name[STEP_FOLDER_BYTES];
        step_folder_name(folders[i], name);
        if (folders[i].kind == STEP_FOLDER_NEW && !step_folder_remove(folder, name)) {
            status = fail("remove the unfinished checkpoint", path, name, ret_error);
        }
    }
    free(folders);
    return status;
}

/* Opens the folder, which is there. */
static enum status open_made(const char *path, int *ret_folder, struct text ret_error)
{
    int folder = step_folder_open(AT_FDCWD, path);
    if (folder < 0) {
        return fail("open the folder of checkpoints", path, "", ret_error);
    }
    // Whoever made it may have been killed before its name was on the disk.
    enum status status =
        step_folder_sync_name(folder)
            ? remove_unfinished(path, folder, ret_error)
            : fail("write the folder that has the checkpoints", path, "", ret_error);
    if (status != STATUS_OK) {
        int error = errno;
        close(folder);
        errno = error;
        return status;
    }
    *ret_folder = folder;
    return STATUS_OK;
}

enum status checkpoint_folder_open(const char *path, int *ret_folder, char *ret_error,
                                   size_t error_size)
{
    struct text text = {ret_error, error_size};
    char error[512];
    *ret_folder = -1;
    if (mkdir(path, 0777) != 0 && errno != EEXIST) {
        return fail("make the folder of checkpoints", path, "", text);
    }
    enum status status = new_file_check_folder(path, error, sizeof(error));
    if (status != STATUS_OK) {
        snprintf(ret_error, error_size, "checkpoints cannot be written: %s", error);
        errno = EPERM;
        return status;
    }
    return open_made(path, ret_folder, text);
}

bool checkpoint_folder_is_in_place(const char *path, int folder)
{
    return folder >= 0 && new_file_is_at(folder, path);
}

/* Whether there is another folder than the one with this number, and it has checkpoints. */
static bool has_others(const char *path, ino_t known)
{
    struct step_folder *folders = NULL;
    struct stat facts;
    size_t count = 0;
    int folder = step_folder_open(AT_FDCWD, path);
    bool is_other = folder >= 0 && fstat(folder, &facts) == 0 && facts.st_ino != known;
    bool is_listed = is_other && step_folders_list(folder, &folders, &count) == STATUS_OK;
    if (folder >= 0) {
        close(folder);
    }
    free(folders);
    return is_listed && count > 0;
}

enum status checkpoint_folder_make_again(const char *path, ino_t known, int *folder,
                                         char *ret_error, size_t error_size)
{
    if (*folder >= 0) {
        close(*folder);
        *folder = -1;
    }
    if (has_others(path, known)) { // which would be removed as older ones
        snprintf(ret_error, error_size,
                 "somebody has put another folder in the place of %s, with checkpoints that this "
                 "job has not written: they stay as they are; move it away",
                 path);
        errno = EEXIST;
        return STATUS_IO;
    }
    enum status status = checkpoint_folder_open(path, folder, ret_error, error_size);
    if (status != STATUS_OK && errno == ENOENT) {
        snprintf(
            ret_error, error_size,
            "cannot make the folder of checkpoints %s again: somebody has moved or removed the "
            "folder that it was in; make that again",
            path);
    }
    return status;
}
