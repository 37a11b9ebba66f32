/* Checks, names and removes the mirrors of a series of runs. */
#include "deploy/command/series_mirror.h"

#include "common/base/folder_lock.h"
#include "common/base/log.h"
#include "common/checkpoint/mirror_owner.h"
#include "common/checkpoint/step_folders.h"
#include "common/job/checkpoints.h"
#include "deploy/system/folder.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define RUN_NAME_BYTES 128 // of a run's folder
#define PATH_BYTES     (FOLDER_LOCK_PATH_MAX + 32)

static bool may_have_one(const struct job_list *jobs, size_t index, char error[OPTION_ERROR_BYTES])
{
    return checkpoints_check_mirror(job_list_at(jobs, index), error, OPTION_ERROR_BYTES) ==
           STATUS_OK;
}

/* How many runs have none for this reason; 0 if one before `first` is among them. */
static size_t count_left_out(const struct job_list *jobs, size_t first, const char *reason)
{
    char other[OPTION_ERROR_BYTES];
    size_t count = 0;
    for (size_t i = 0; i < jobs->count; i++) {
        bool is_such = !may_have_one(jobs, i, other) && strcmp(other, reason) == 0;
        if (is_such && i < first) {
            return 0;
        }
        count += is_such;
    }
    return count;
}

static void say_left_out(const struct job_list *jobs)
{
    char reason[OPTION_ERROR_BYTES];
    for (size_t i = 0; i < jobs->count; i++) {
        size_t count = may_have_one(jobs, i, reason) ? 0 : count_left_out(jobs, i, reason);
        if (count > 0) {
            printf("no mirror for %zu of %zu runs: %s\n", count, jobs->count, reason);
        }
    }
    fflush(stdout);
}

enum status series_mirror_check(const struct launcher_options *options, const struct job_list *jobs)
{
    char error[OPTION_ERROR_BYTES];
    size_t served = 0;
    if (options->mirror[0] == '\0') {
        return STATUS_OK;
    }
    while (served < jobs->count && !may_have_one(jobs, served, error)) {
        served++;
    }
    enum status status =
        launcher_check_mirror(options, job_list_at(jobs, served < jobs->count ? served : 0));
    if (status != STATUS_OK) {
        return status;
    }
    if (strlen(options->mirror) + RUN_NAME_BYTES >= LAUNCH_MIRROR_BYTES) {
        log_error("--mirror has %zu bytes, and at most %d are left by the names of runs",
                  strlen(options->mirror), LAUNCH_MIRROR_BYTES - RUN_NAME_BYTES - 1);
        return STATUS_INVALID;
    }
    say_left_out(jobs);
    return STATUS_OK;
}

void series_mirror_of_run(const struct launcher_options *options, const struct job *job,
                          const char *name, char ret_mirror[LAUNCH_MIRROR_BYTES])
{
    char error[OPTION_ERROR_BYTES];
    bool has_own = options->mirror[0] != '\0' && !launcher_mirror_is_memory(options->mirror);
    ret_mirror[0] = '\0';
    if (options->mirror[0] != '\0' &&
        checkpoints_check_mirror(job, error, sizeof(error)) == STATUS_OK) {
        snprintf(ret_mirror, LAUNCH_MIRROR_BYTES, "%s%s%s", options->mirror, has_own ? "/" : "",
                 has_own ? name : "");
    }
}

/* ==========================================================================================
 * Removing
 * ========================================================================================== */

static bool have_same_run(const struct mirror_owner *owner, const struct mirror_owner *other)
{
    return owner->run[0] != '\0' && strcmp(owner->run, other->run) == 0;
}

/* Whether the run folder is a copy: the one that the mirror names is another, and has the run. */
static bool is_copied(const char *run_folder, const struct mirror_owner *owner)
{
    struct mirror_owner original;
    char *path = realpath(run_folder, NULL);
    bool is_so = owner->other[0] != '\0' && path != NULL && strcmp(owner->other, path) != 0 &&
                 mirror_owner_read(owner->other, &original) == STATUS_OK &&
                 have_same_run(owner, &original);
    free(path);
    return is_so;
}

static bool is_of_run(const char *run_folder, const char *mirror)
{
    struct mirror_owner run, owner;
    return mirror_owner_read(run_folder, &run) == STATUS_OK &&
           mirror_owner_read(mirror, &owner) == STATUS_OK && have_same_run(&run, &owner) &&
           !is_copied(run_folder, &owner);
}

static void remove_mirror(const char *mirror)
{
    char lock_path[PATH_BYTES];
    int folder = step_folder_open(AT_FDCWD, mirror);
    if (folder < 0) {
        return;
    }
    step_folders_remove_all(folder); // what stays is refused by name
    unlinkat(folder, MIRROR_FILE, 0);
    close(folder);
    folder_lock_path(mirror, lock_path, sizeof(lock_path));
    folder_lock_remove_left(lock_path);
    rmdir(mirror); // which is not done if there is anything else in it
}

enum status series_mirror_remove_run(const char *run_folder, const char *mirror)
{
    bool goes_too =
        mirror[0] != '\0' && is_of_run(run_folder, mirror) && !folder_lock_is_held(mirror);
    enum status status = folder_check_run(run_folder);
    if (status == STATUS_OK && goes_too) {
        remove_mirror(mirror); // first: what is left of it is known by the run folder alone
    }
    return status == STATUS_OK ? folder_remove_run(run_folder) : status;
}
