/* Watches the disk that checkpoints go to: one may hang, as a server of files does that is not
 * reached, and then neither the job nor its end waits for it. Time is an argument. */
#ifndef PS_SERVER_CHECKPOINT_DISK_WATCH_H
#define PS_SERVER_CHECKPOINT_DISK_WATCH_H

#include "common/thread/task_thread.h"
#include "ps-server/coordinator/coordinator.h"

#include <stdbool.h>
#include <stdint.h>

/* Zeroed before the first look. One for all generations of a job: a disk that hangs does not begin
 * anew with them. */
struct disk_watch {
    struct task_watch idle; // since the disk had nothing to do, or did something, last
};

/* Several times a second. `folder` is that of the checkpoints; `has_moved`: since the last look the
 * disk has done something of what it was given. One that takes long is named once; one that takes
 * nothing for half of --stall-fail hangs, and the checkpoint that it has is given up. Time in which
 * nobody has looked does not count, as what the disk did then is not known yet. The next generation
 * knows what was said (generation_next). */
void disk_watch_look(struct disk_watch *watch, struct coordinator *coordinator, const char *folder,
                     bool has_moved, uint64_t now_ms);

#endif
