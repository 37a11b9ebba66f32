/* Says that a disk takes long, and judges that it hangs. */
#include "ps-server/checkpoint/disk_watch.h"

#include "common/thread/slow_disk.h"
#include "ps-server/coordinator/checkpointing.h"
#include "ps-server/coordinator/coordinator_port.h"

#include <stdio.h>

#define STEP_BYTES 80

/* Whether the disk has something to do. A checkpoint whose pieces do not come is not its fault. */
static bool is_owing(const struct checkpointing *of)
{
    bool owes = of->has_rest || (of->is_written && of->state == CHECKPOINTING_COMMITTING);
    for (uint32_t i = 0; i < of->share_count && !owes; i++) {
        owes = of->is_written && of->state == CHECKPOINTING_COLLECTING &&
               of->shares[i].stored < of->shares[i].pieces;
    }
    return owes;
}

/* Whether what it has is the checkpoint that is collected, and not one of a generation before. */
static bool is_current(const struct checkpointing *of)
{
    return of->is_written && of->state != CHECKPOINTING_IDLE;
}

static void say_slow(const struct coordinator *coordinator, const char *folder, uint64_t idle_ms)
{
    const struct checkpointing *of = &coordinator->checkpointing;
    char which[STEP_BYTES] = "taken nothing of an earlier checkpoint in";
    char text[COORDINATOR_REASON_BYTES];
    if (is_current(of)) {
        snprintf(which, sizeof(which), "taken nothing of the checkpoint of step %llu in",
                 (unsigned long long)of->step);
    }
    slow_disk_describe(which, folder, idle_ms, text, sizeof(text));
    coordinator_port_say(&coordinator->port, true, "%s; training goes on meanwhile", text);
}

static void say_hanging(const struct coordinator *coordinator, const char *folder, uint64_t idle_ms)
{
    const struct checkpointing *of = &coordinator->checkpointing;
    char last[CHECKPOINTING_LAST_BYTES], which[STEP_BYTES] = "";
    char text[COORDINATOR_REASON_BYTES];
    slow_disk_describe_hanging("taken nothing of", folder, idle_ms, text, sizeof(text));
    checkpointing_describe_last(of, last);
    if (is_current(of)) {
        snprintf(which, sizeof(which),
                 "no checkpoint at step %llu: ", (unsigned long long)of->step);
    }
    coordinator_port_say(&coordinator->port, true, "%s%s; %s, and %s", which, text,
                         of->step < of->plan.total
                             ? "training goes on, without checkpoints until it takes something"
                             : "the job ends without it",
                         last);
}

void disk_watch_look(struct disk_watch *watch, struct coordinator *coordinator, const char *folder,
                     bool has_moved, uint64_t now_ms)
{
    struct checkpointing *of = &coordinator->checkpointing;
    uint64_t idle_ms = task_watch_note(&watch->idle, has_moved || !is_owing(of), now_ms);
    if (idle_ms == 0) {
        of->is_slow = false;
        return;
    }
    if (!of->is_slow && !of->hangs && (double)idle_ms >= 1000 * coordinator->job->stall_warn) {
        of->is_slow = true;
        say_slow(coordinator, folder, idle_ms);
    }
    if (!of->hangs && (double)idle_ms >= 1000 * job_disk_fail_s(coordinator->job)) {
        say_hanging(coordinator, folder, idle_ms);
        checkpointing_set_aside(coordinator, now_ms);
    }
}
