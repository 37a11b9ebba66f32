/* The folder of a mirror: made, locked, known to be of this run, and removed. What may hang with
 * the disk is done by one thread at a time, which takes the place as its `data`. */
#ifndef PS_SERVER_CHECKPOINT_MIRROR_PLACE_H
#define PS_SERVER_CHECKPOINT_MIRROR_PLACE_H

#include "common/base/folder_lock.h"
#include "common/base/status.h"
#include "common/checkpoint/checkpoint_writer.h"
#include "common/checkpoint/mirror_owner.h"

#include <stdbool.h>

#define MIRROR_PATH_BYTES 4096

struct mirror_place {
    char folder[MIRROR_PATH_BYTES], run_folder[MIRROR_PATH_BYTES];
    char run[RUN_NUMBER_BYTES]; // number of the run; "": as the folders say, or a new one
    bool goes_on;               // the run in the run folder
    bool is_again;              // the same launcher has started its coordinator again
    bool is_of_run;             // what is there, so a job that goes on may take it
    bool is_made;               // the folder, for a mirror of this run
    bool removes;               // at the end, what is there
    struct folder_lock lock;
    struct checkpoint_writer *writer; // owned; NULL until it begins
    enum status status;               // of what was done last
};

/* Makes and locks the folder, and looks whose mirror is there. Logs. */
void mirror_place_open(void *data);

/* Notes in both folders whose it is, and opens the writer. Logs. */
void mirror_place_begin(void *data);

/* Closes the writer, removes what is there if it is to, and gives the lock back. */
void mirror_place_end(void *data);

/* After a copy was written: if somebody had moved or removed the folder, so that it was made again,
 * it says whose it is, too. False and errno: it does not. */
bool mirror_place_restore(struct mirror_place *place);

#endif
