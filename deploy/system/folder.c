/* Makes and removes folders, and writes files into them. */
#include "deploy/system/folder.h"

#include "common/base/log.h"
#include "deploy/system/folder_lock.h"

#include <dirent.h>
#include <errno.h>
#include <ftw.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool is_empty_folder(const char *path)
{
    DIR *folder = opendir(path);
    bool is_empty = true;
    for (const struct dirent *entry; folder != NULL && (entry = readdir(folder)) != NULL;) {
        is_empty =
            is_empty && (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 ||
                         strcmp(entry->d_name, FOLDER_LOCK_NAME) == 0);
    }
    if (folder != NULL) {
        closedir(folder);
    }
    return is_empty;
}

enum status folder_make(const char *folder, const char *below)
{
    char path[FOLDER_PATH_MAX];
    if (snprintf(path, sizeof(path), "%s%s%s", folder, below != NULL ? "/" : "",
                 below != NULL ? below : "") >= (int)sizeof(path)) {
        log_error("--out is too long");
        return STATUS_INVALID;
    }
    if (access(folder, F_OK) == 0 && !is_empty_folder(folder)) {
        log_error("%s is not empty: choose another folder with --out", folder);
        return STATUS_INVALID;
    }
    for (char *slash = path + 1;; slash++) {
        if (*slash != '/' && *slash != '\0') {
            continue;
        }
        char end = *slash;
        *slash = '\0';
        if (mkdir(path, 0777) != 0 && errno != EEXIST) {
            log_error("cannot make the folder %s: %m", path);
            return STATUS_IO;
        }
        *slash = end;
        if (end == '\0') {
            return STATUS_OK;
        }
    }
}

static int remove_entry(const char *path, const struct stat *facts, int kind, struct FTW *where)
{
    (void)facts;
    (void)kind;
    (void)where;
    return remove(path);
}

void folder_remove(const char *folder)
{
    nftw(folder, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
}

enum status folder_write(const char *folder, const char *name,
                         void (*write)(FILE *file, const void *context), const void *context)
{
    char path[FOLDER_PATH_MAX], draft[FOLDER_PATH_MAX + 8];
    snprintf(path, sizeof(path), "%.4000s/%.80s", folder, name);
    snprintf(draft, sizeof(draft), "%s.part", path);
    FILE *file = fopen(draft, "we");
    if (file != NULL) {
        write(file, context);
    }
    bool is_written = file != NULL && ferror(file) == 0;
    if (file != NULL && fclose(file) != 0) {
        is_written = false;
    }
    if (!is_written || rename(draft, path) != 0) {
        log_error("cannot write %s: %m", path);
        unlink(draft);
        return STATUS_IO;
    }
    return STATUS_OK;
}
