/* Opens, begins and ends the folder of a mirror. */
#include "ps-server/checkpoint/mirror_place.h"

#include "common/base/log.h"
#include "common/base/new_file.h"
#include "common/checkpoint/step_folders.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define KEEP        2
#define ERROR_BYTES 512
#define MODE        0700 // parameters are nobody else's

/* Whether checkpoints are there that are whole; -1: it cannot be read. */
static int has_checkpoints(const char *path)
{
    struct step_folder *folders;
    size_t count;
    int has_some = 0, folder = step_folder_open(AT_FDCWD, path);
    enum status status = folder < 0 ? STATUS_IO : step_folders_list(folder, &folders, &count);
    if (folder >= 0) {
        close(folder);
    }
    if (status != STATUS_OK) {
        return -1;
    }
    for (size_t i = 0; i < count; i++) {
        has_some |= folders[i].kind != STEP_FOLDER_NEW;
    }
    free(folders);
    return has_some;
}

static bool is_same(const char *path, const char *other)
{
    struct stat facts, other_facts;
    return stat(path, &facts) == 0 && stat(other, &other_facts) == 0 &&
           facts.st_dev == other_facts.st_dev && facts.st_ino == other_facts.st_ino;
}

static enum status refuse(const struct mirror_place *place, const struct mirror_owner *owner)
{
    if (is_same(owner->other, place->run_folder)) {
        log_error("--mirror %s has old copies: the run in %s has begun anew, or gone on without "
                  "them; nothing there is changed; name another folder, or remove them",
                  place->folder, place->run_folder);
        return STATUS_INVALID;
    }
    const char *run = owner->other[0] != '\0' ? owner->other : "not known";
    log_error("--mirror %s has copies of another run (%s), which may still go on from them: "
              "nothing there is changed; name another folder, or remove them",
              place->folder, run);
    return STATUS_INVALID;
}

/* Finds the run's number, and whether what is in the folder is of it. */
static enum status identify(struct mirror_place *place)
{
    struct mirror_owner there, ours = {.run = ""};
    int has_some = has_checkpoints(place->folder);
    enum status status = has_some < 0 ? STATUS_IO : mirror_owner_read(place->folder, &there);
    if (status == STATUS_OK) {
        status = mirror_owner_read(place->run_folder, &ours);
    }
    if (status != STATUS_OK) {
        log_error("cannot read whose mirror is in %s: %m", place->folder);
        return status;
    }
    bool is_ours = ours.run[0] != '\0' && strcmp(there.run, ours.run) == 0;
    if (has_some && is_ours && !place->goes_on) {
        log_error("--mirror %s has copies of this very run, from which --resume auto --out %s goes "
                  "on; otherwise name another folder, or remove them",
                  place->folder, place->run_folder);
        return STATUS_INVALID;
    }
    // A mirror that begins gets a number of its own. The number that the run had before is stale by
    // then, and so is the one that the launcher knows.
    bool begins = !has_some && !is_ours;
    if (place->goes_on && ours.run[0] != '\0' && !begins) {
        snprintf(place->run, sizeof(place->run), "%s", ours.run);
    } else if (place->run[0] == '\0' || (place->is_again && ours.run[0] != '\0')) {
        run_number_choose(place->run);
    }
    bool is_known = strcmp(there.run, place->run) == 0;
    place->is_made |= is_known && there.is_made;
    place->is_of_run = place->goes_on && is_known && has_some;
    return has_some && !place->is_of_run ? refuse(place, &there) : STATUS_OK;
}

/* There the run's own checkpoints would be kept and removed as copies are. */
static enum status refuse_own_checkpoints(const struct mirror_place *place)
{
    char path[MIRROR_PATH_BYTES + 32];
    snprintf(path, sizeof(path), "%s/" STEP_FOLDERS_OF_RUN, place->run_folder);
    if (is_same(place->folder, path)) {
        log_error("--mirror %s is where the run has its checkpoints: name another folder",
                  place->folder);
        return STATUS_INVALID;
    }
    return STATUS_OK;
}

static enum status hold(struct mirror_place *place)
{
    char error[ERROR_BYTES];
    struct stat facts;
    if (lstat(place->folder, &facts) == 0 && S_ISLNK(facts.st_mode)) {
        log_error("--mirror %s is a symbolic link: name the folder itself", place->folder);
        return STATUS_INVALID;
    }
    // Its lock is held by whoever runs the job, and a sweep would not know what lies there.
    if (is_same(place->folder, place->run_folder)) {
        log_error("--mirror %s is the run folder: name another folder", place->folder);
        return STATUS_INVALID;
    }
    if (folder_lock_is_held(place->folder)) {
        log_error("--mirror %s is in use by another job: name another folder", place->folder);
        return STATUS_TIMED_OUT;
    }
    enum status status = folder_lock_take(place->folder, &place->lock);
    if (status == STATUS_OK) {
        status = refuse_own_checkpoints(place);
    }
    if (status != STATUS_OK) {
        return status;
    }
    place->is_made = place->lock.made_from <= strlen(place->folder);
    if (place->is_made && chmod(place->folder, MODE) != 0) {
        log_error("cannot make --mirror %s: %m", place->folder);
        return STATUS_IO;
    }
    status = new_file_check_folder(place->folder, error, sizeof(error));
    if (status != STATUS_OK) {
        log_error("copies cannot be written to --mirror: %s", error);
    }
    return status;
}

void mirror_place_open(void *data)
{
    struct mirror_place *place = data;
    place->status = hold(place);
    if (place->status == STATUS_OK) {
        place->status = identify(place);
    }
    if (place->status != STATUS_OK) {
        folder_lock_release(&place->lock);
    }
}

/* A disk that is full may still have all that a job goes on from: nothing is written twice. */
static enum status note_owner(const char *folder, const struct mirror_owner *owner)
{
    struct mirror_owner there;
    bool is_known = mirror_owner_read(folder, &there) == STATUS_OK &&
                    strcmp(there.run, owner->run) == 0 && strcmp(there.other, owner->other) == 0 &&
                    there.is_made == owner->is_made;
    return is_known ? STATUS_OK : mirror_owner_write(folder, owner);
}

static enum status write_owner(const struct mirror_place *place)
{
    struct mirror_owner owner = {.is_made = place->is_made};
    char *path = realpath(place->run_folder, NULL); // which may be named from elsewhere
    snprintf(owner.run, sizeof(owner.run), "%s", place->run);
    snprintf(owner.other, sizeof(owner.other), "%s", path != NULL ? path : place->run_folder);
    free(path);
    return note_owner(place->folder, &owner);
}

/* First in the run folder: whoever finds the number in the mirror's finds it there, too. */
void mirror_place_begin(void *data)
{
    struct mirror_place *place = data;
    struct mirror_owner owner = {.is_made = false};
    snprintf(owner.run, sizeof(owner.run), "%s", place->run);
    snprintf(owner.other, sizeof(owner.other), "%s", place->folder);
    place->status = note_owner(place->run_folder, &owner);
    if (place->status == STATUS_OK) {
        place->status = write_owner(place);
    }
    if (place->status != STATUS_OK) {
        log_error("cannot write %s/" MIRROR_FILE ", or the one in %s: %m", place->run_folder,
                  place->folder);
        return;
    }
    place->status = checkpoint_writer_open(place->folder, KEEP, &place->writer);
}

/* What cannot be removed stays, which harms nobody: it is of a run that has a result. */
static void remove_all(const struct mirror_place *place)
{
    char path[MIRROR_PATH_BYTES + 32];
    int folder = step_folder_open(AT_FDCWD, place->folder);
    if (folder >= 0) {
        step_folders_remove_all(folder);
        close(folder);
    }
    snprintf(path, sizeof(path), "%s/" MIRROR_FILE, place->folder);
    unlink(path);
    snprintf(path, sizeof(path), "%s/" MIRROR_FILE, place->run_folder);
    unlink(path);
}

void mirror_place_end(void *data)
{
    struct mirror_place *place = data;
    checkpoint_writer_close(place->writer);
    if (place->removes) {
        remove_all(place);
    }
    folder_lock_release(&place->lock);
    if (place->removes && place->is_made) {
        rmdir(place->folder); // which is not done if there is anything else in it
    }
}

bool mirror_place_restore(struct mirror_place *place)
{
    if (!checkpoint_writer_take_news(place->writer)) {
        return true;
    }
    place->is_made = true;
    return chmod(place->folder, MODE) == 0 && write_owner(place) == STATUS_OK;
}
