/* The newest checkpoint in memory a second time, in a folder (--mirror): what a coordinator goes on
 * from that is started in the place of one that was lost with its memory.
 *
 * A thread writes the checkpoint that the vault has, as one in a run folder is written. Until that
 * is done the vault holds it, and the schedule asks for no further one. A disk that fails or hangs
 * ends no job: that is said once, and when it takes copies again. While it hangs, memory alone has
 * them, and nothing is waited for.
 *
 * Belongs to the coordinator's thread. */
#ifndef PS_SERVER_CHECKPOINT_MIRROR_H
#define PS_SERVER_CHECKPOINT_MIRROR_H

#include "common/base/status.h"
#include "common/thread/slow_disk.h"
#include "ps-server/checkpoint/vault.h"
#include "ps-server/coordinator/coordinator.h"

#include <stdbool.h>
#include <stdint.h>

struct mirror;

struct mirror_options {
    const char *folder;     // of the mirror; copied, as those below are
    const char *run_folder; // which says whose mirror it is
    const char *run;        // number of the run, by a launcher; NULL or "": it chooses one
    bool goes_on;           // the run in the run folder
    bool is_again;          // the same launcher has started its coordinator again
    struct slow_disk_wait wait;
};

/* Makes and locks the folder, and looks whose mirror is there. STATUS_INVALID if that is not of
 * this run; STATUS_IO, STATUS_DENIED or STATUS_TIMED_OUT if the folder cannot be used or is in use;
 * STATUS_INTERRUPTED: a turn has said so. Logs. */
enum status mirror_open(const struct mirror_options *options, struct mirror **ret_mirror);

/* Whether a job that goes on may take what is there: it is of this run. */
bool mirror_is_of_run(const struct mirror *mirror);

/* The run folder is there, and is this run's: notes whose mirror it is, and gets ready to write.
 * Logs. */
enum status mirror_begin(struct mirror *mirror);

/* The run goes on without it: nothing is taken from it or written to it any more. Its folder stays
 * locked until mirror_destroy, which gives the disk little time. */
void mirror_leave(struct mirror *mirror);

/* The vault has a newer one: has it written, unless the one before is not done yet. */
void mirror_take(struct mirror *mirror, struct vault *vault);

/* Several times a second: what was done, and whether the disk gets on. */
void mirror_look(struct mirror *mirror, struct vault *vault, struct coordinator *coordinator,
                 uint64_t now_ms);

/* Ends it, once what is being written is done, for which that gets so many milliseconds. `is_over`:
 * nobody goes on from it, so it is removed. False: the disk hangs, and the thread has it, and what
 * the vault holds, until the process ends. NULL is fine. */
bool mirror_destroy(struct mirror *mirror, bool is_over, uint64_t patience_ms);

#endif
