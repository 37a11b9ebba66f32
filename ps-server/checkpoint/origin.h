/* The checkpoint on the disk that a job goes on from: the newest one in its run folder, or in its
 * mirror. */
#ifndef PS_SERVER_CHECKPOINT_ORIGIN_H
#define PS_SERVER_CHECKPOINT_ORIGIN_H

#include "common/base/status.h"
#include "common/checkpoint/checkpoint_reader.h"
#include "common/job/job.h"
#include "common/thread/slow_disk.h"
#include "ps-server/checkpoint/job_part.h"

#include <stdbool.h>
#include <stdint.h>

struct origin_options {
    const struct job *job; // resolved; borrowed for the call, as the rest is
    const char *resume;    // folder to go on from; "": the job begins
    const char *folder;    // run folder; "" for none
    const char *mirror;    // of the run in that folder; NULL or "": none
    bool may_lack_mirror;  // if the mirror's disk hangs, the job goes on without what is there
    bool goes_on;          // from the newest checkpoint of both, before resume, if there is one
    bool was_completed;    // the run in the folder
    bool was_lost;         // the run in `resume`: it has begun, and was not completed
    struct slow_disk_wait wait, mirror_wait; // for the disk, and for that of the mirror
};

/* Zeroed: there is none, and the job begins. */
struct origin {
    struct checkpoint_reader *reader; // owned
    struct job_part part;             // owned
    uint64_t written;                 // step of the one in the run folder, or in `resume`; 0: none
    bool is_of_mirror;                // the checkpoint
    bool lacks_mirror;                // its disk hangs: what is there was not looked at
};

/* Opens the checkpoint, and checks that it is whole and of this job. A thread does that in each
 * folder, for which this waits as long as it gets on: a disk that gives nothing for half of
 * --stall-fail hangs, which is STATUS_IO. STATUS_INTERRUPTED: a turn has said so. Logs.
 * STATUS_END_OF_DATA, without a word: it goes on in a folder in which nothing is left to do. */
enum status origin_find(const struct origin_options *options, struct origin *ret_origin);
void origin_finish(struct origin *origin);

#endif
