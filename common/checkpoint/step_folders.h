/* The folders of checkpoints: their names, and how they are opened, listed and removed without
 * following what somebody else may have put in their place.
 *
 *     step-000000000100       a checkpoint
 *     step-000000000100.old   the one of the same step that it is about to replace
 *     .step-000000000100.new  one that is being written
 */
#ifndef COMMON_CHECKPOINT_STEP_FOLDERS_H
#define COMMON_CHECKPOINT_STEP_FOLDERS_H

#include "common/base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define STEP_FOLDER_BYTES   32           // of a name, terminator included
#define STEP_FOLDERS_OF_RUN "checkpoint" // the folder in a run folder that they lie in

enum step_folder_kind { STEP_FOLDER_WHOLE, STEP_FOLDER_OLD, STEP_FOLDER_NEW };

struct step_folder {
    uint64_t step;
    enum step_folder_kind kind;
};

void step_folder_name(struct step_folder folder, char ret_name[STEP_FOLDER_BYTES]);
bool step_folder_parse(const char *name, struct step_folder *ret_folder);

/* Those in the open folder, the newest first, of one step the whole one before the old one. The
 * caller frees them. STATUS_IO and errno. */
enum status step_folders_list(int parent, struct step_folder **ret_folders, size_t *ret_count);

/* Opens a folder in an open one: no link, and ours or root's. -1 and errno (EPERM: of others). */
int step_folder_open(int parent, const char *name);

/* Opens a regular file of ours or root's for reading, no link; its size. -1 and errno. */
int step_file_open(int folder, const char *name, uint64_t *ret_size);

/* Brings the names in an open folder to the disk, or the folder's own name. True also where the
 * file system cannot sync a folder, and need not; false and errno. */
bool step_folder_sync(int folder);
bool step_folder_sync_name(int folder);

/* Removes a file, a link (and not its target), or a folder of ours with the files in it. True also
 * if there is none; false and errno. */
bool step_folder_remove(int parent, const char *name);

/* Removes all checkpoints in an open folder. What cannot be removed stays, without a word. */
void step_folders_remove_all(int parent);

/* Whether somebody has removed a checkpoint, or is about to: its manifest goes first. `path` is in
 * an open folder, or AT_FDCWD. */
bool step_folder_was_removed(int parent, const char *path);

/* What an error of a disk means to the user, and what to do. Static text. */
const char *step_folder_advice(int error);

#endif
