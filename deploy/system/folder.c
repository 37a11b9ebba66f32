/* Makes and removes folders, and writes files into them. */
#include "deploy/system/folder.h"

#include "common/base/folder_lock.h"
#include "common/base/log.h"
#include "common/base/new_file.h"
#include "common/job/job.h"

#include <dirent.h>
#include <errno.h>
#include <ftw.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define ROOM_BYTES 65536 // job.json, summary.json, details.json, and logs of a few lines

/* Whether nothing is there but a lock, room for a summary, and what is called as the folder of logs
 * is. */
static bool has_nothing_but_logs(const char *path, bool *ret_has_logs)
{
    DIR *folder = opendir(path);
    bool is_empty = true;
    *ret_has_logs = false;
    for (const struct dirent *entry; folder != NULL && (entry = readdir(folder)) != NULL;) {
        bool is_logs = strcmp(entry->d_name, FOLDER_LOGS_NAME) == 0;
        *ret_has_logs = *ret_has_logs || is_logs;
        is_empty = is_empty && (is_logs || strcmp(entry->d_name, ".") == 0 ||
                                strcmp(entry->d_name, "..") == 0 ||
                                strcmp(entry->d_name, JOB_RESERVE_NAME) == 0 ||
                                strcmp(entry->d_name, FOLDER_LOCK_NAME) == 0);
    }
    if (folder != NULL) {
        closedir(folder);
    }
    return is_empty;
}

/* A launcher that was killed before it had started anybody has left a lock and a folder of logs in
 * which there are none: that is no run. */
static bool is_empty_folder(const char *path)
{
    char logs[FOLDER_PATH_MAX];
    bool has_logs, has_more;
    if (!has_nothing_but_logs(path, &has_logs)) {
        return false;
    }
    snprintf(logs, sizeof(logs), "%.4000s/" FOLDER_LOGS_NAME, path);
    struct stat facts;
    return !has_logs || (lstat(logs, &facts) == 0 && S_ISDIR(facts.st_mode) &&
                         has_nothing_but_logs(logs, &has_more) && !has_more);
}

/* Makes a folder and its parents. */
static enum status make_parents_and(char *path)
{
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

/* A folder that exists has to be empty, unless a run goes on in it, and safe to write to. */
static enum status check_existing(const char *folder, bool may_have_files)
{
    char error[FOLDER_PATH_MAX + 256];
    struct stat facts;
    if (stat(folder, &facts) != 0) {
        return STATUS_OK; // it is made, or making it says what is wrong
    }
    if (!S_ISDIR(facts.st_mode)) {
        log_error("--out %s is a file, not a folder", folder);
        return STATUS_INVALID;
    }
    if (!may_have_files && !is_empty_folder(folder)) {
        log_error("%s is not empty: choose another folder with --out", folder);
        return STATUS_INVALID;
    }
    if (new_file_check_folder(folder, error, sizeof(error)) != STATUS_OK) {
        log_error("%s", error);
        return STATUS_INVALID;
    }
    return STATUS_OK;
}

/* A disk that is full is found before anything is started: what is started could not say so. */
static enum status check_room(const char *folder)
{
    char path[FOLDER_PATH_MAX];
    snprintf(path, sizeof(path), "%.4000s/.room", folder);
    if (new_file_fill(path, ROOM_BYTES) != STATUS_OK) {
        log_error("%s has no room for the files of a run (%d KiB): %m", folder, ROOM_BYTES / 1024);
        return STATUS_IO;
    }
    unlink(path);
    return STATUS_OK;
}

static enum status make(const char *folder, const char *below, bool may_have_files)
{
    char path[FOLDER_PATH_MAX];
    if (snprintf(path, sizeof(path), "%s%s%s", folder, below != NULL ? "/" : "",
                 below != NULL ? below : "") >= (int)sizeof(path)) {
        log_error("--out is too long");
        return STATUS_INVALID;
    }
    enum status status = check_existing(folder, may_have_files);
    if (status != STATUS_OK) {
        return status;
    }
    status = make_parents_and(path);
    if (status != STATUS_OK) {
        return status;
    }
    status = check_room(folder);
    if (status != STATUS_OK && below != NULL) {
        rmdir(path); // unless there is something in it
    }
    return status;
}

enum status folder_make(const char *folder, const char *below)
{
    return make(folder, below, false);
}

enum status folder_go_on(const char *folder, const char *below)
{
    return make(folder, below, true);
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

static int remove_empty_file(const char *path, const struct stat *facts, int kind,
                             struct FTW *where)
{
    (void)where;
    return kind == FTW_F && S_ISREG(facts->st_mode) && facts->st_size == 0 ? remove(path) : 0;
}

void folder_remove_lock(const char *lock_path)
{
    static const char *const left[] = {JOB_RESERVE_NAME, FOLDER_LOGS_NAME};
    char path[FOLDER_PATH_MAX + 32];
    const char *name = strrchr(lock_path, '/');
    if (name != NULL) {
        // A coordinator that was killed before it could say or write anything has begun nothing.
        snprintf(path, sizeof(path), "%.*s/" FOLDER_LOGS_NAME, (int)(name - lock_path), lock_path);
        nftw(path, remove_empty_file, 4, FTW_PHYS);
    }
    for (size_t i = 0; name != NULL && i < sizeof(left) / sizeof(left[0]); i++) {
        snprintf(path, sizeof(path), "%.*s/%s", (int)(name - lock_path), lock_path, left[i]);
        remove(path); // which fails if it is a folder and there is anything in it
    }
    folder_lock_remove_left(lock_path);
}

/* Whether a run writes a file, or a folder, of this name. */
static bool is_of_a_run(const char *name)
{
    static const char *const names[] = {".",
                                        "..",
                                        FOLDER_LOGS_NAME,
                                        JOB_RESERVE_NAME,
                                        "job.json",
                                        "summary.json",
                                        "details.json",
                                        "metrics.jsonl",
                                        "restarts.jsonl",
                                        "job.json.part",
                                        "summary.json.part",
                                        "details.json.part",
                                        "metrics.jsonl.part",
                                        "begin.json",
                                        "begin.json.part",
                                        "mirror.json",
                                        "mirror.json.part",
                                        "tensorboard",
                                        "checkpoint",
                                        "timeline",
                                        "timeline.pftrace",
                                        "timeline.pftrace.part",
                                        "critical_path.json",
                                        "critical_path.json.part",
                                        FOLDER_LOCK_NAME};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (strcmp(names[i], name) == 0) {
            return true;
        }
    }
    return false;
}

enum status folder_check_run(const char *folder)
{
    struct stat facts;
    if (lstat(folder, &facts) != 0) {
        return STATUS_OK;
    }
    DIR *entries = S_ISDIR(facts.st_mode) ? opendir(folder) : NULL;
    if (entries == NULL) {
        log_error("%s is in the place of a run's folder: move it away", folder);
        return STATUS_INVALID;
    }
    enum status status = STATUS_OK;
    for (const struct dirent *entry; (entry = readdir(entries)) != NULL;) {
        if (!is_of_a_run(entry->d_name)) {
            log_error("%s holds a run without a result, and %s, which no run has written: move it "
                      "away for the run to be repeated",
                      folder, entry->d_name);
            status = STATUS_INVALID;
            break;
        }
    }
    closedir(entries);
    return status;
}

enum status folder_remove_run(const char *folder)
{
    enum status status = folder_check_run(folder);
    if (status == STATUS_OK) {
        folder_remove(folder);
    }
    return status;
}

enum status folder_write(const char *folder, const char *name,
                         void (*write)(FILE *file, const void *context), const void *context)
{
    char path[FOLDER_PATH_MAX], draft[FOLDER_PATH_MAX + 8];
    snprintf(path, sizeof(path), "%.4000s/%.80s", folder, name);
    snprintf(draft, sizeof(draft), "%s.part", path);
    FILE *file = new_file_stream(draft, true);
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
