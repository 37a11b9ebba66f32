/* Whose mirror a folder has.
 *
 * A run that has a mirror has a number, which nobody else has. A file of the same name says it in
 * its run folder and in that of the mirror. So a mirror is taken for that of a run only if both say
 * the same, whatever the folders are called, and one that was left by an earlier run never is. */
#ifndef COMMON_CHECKPOINT_MIRROR_OWNER_H
#define COMMON_CHECKPOINT_MIRROR_OWNER_H

#include "common/base/status.h"
#include "common/checkpoint/run_number.h"

#include <stdbool.h>
#include <stddef.h>

#define MIRROR_FILE "mirror.json"

struct mirror_owner {
    char run[RUN_NUMBER_BYTES]; // the run's number; "": not known
    char other[4096];           // the run folder, in that of the mirror; and the other way round
                                // (deploy/slurm/requeue.sbatch reads this one)
    bool is_made;               // the mirror's folder, for it
};

/* Reads the file in a folder; zeroed if there is none. STATUS_IO and errno, if it cannot be read.
 */
enum status mirror_owner_read(const char *folder, struct mirror_owner *ret_owner);

/* Writes it, as a whole or not at all. STATUS_IO and errno. */
enum status mirror_owner_write(const char *folder, const struct mirror_owner *owner);

/* Gives the run in a run folder a number that no mirror has. So the run never takes the mirror that
 * it leaves again, in which copies are old by then, whatever number a launcher knows. STATUS_IO and
 * errno. */
enum status mirror_owner_leave(const char *run_folder);

/* Removes it, on a thread that may wait for the disk: a run that goes on without its mirror does
 * not take that again later, when it is old. Takes the folder's path, which is owned. */
void mirror_owner_forget(void *folder);

#endif
