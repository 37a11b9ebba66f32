/* Looks at what a coordinator on this host does, and says who does not go. */
#include "deploy/launch/launch_held.h"

#include "common/base/clock.h"
#include "common/base/log.h"
#include "deploy/system/process.h"

#define LOOK_MS 1000
#define END_MS  3000 // what ends is gone by then, unless the kernel holds it

static bool is_here(const struct launch *launch)
{
    const struct member *coordinator = &launch->members.list[0];
    return coordinator->is_started && !coordinator->is_over && coordinator->pid > 0 &&
           !launch_is_remote(launch, coordinator->host);
}

uint64_t launch_held_look_ms(const struct launch *launch)
{
    return is_here(launch) ? clock_now_ms() + LOOK_MS : UINT64_MAX;
}

bool launch_coordinator_is_held(struct launch *launch)
{
    const pid_t pid = (pid_t)launch->members.list[0].pid;
    if (!is_here(launch) || !process_is_ending(pid) || !process_is_held(pid)) {
        launch->ending_ms = 0;
        return false;
    }
    uint64_t now_ms = clock_now_ms();
    launch->ending_ms = launch->ending_ms > 0 ? launch->ending_ms : now_ms;
    return now_ms - launch->ending_ms >= END_MS;
}

/* Names a coordinator that has done all that the job needs, and has not ended. */
static void note_recorded(const struct launch *launch)
{
    const struct member *coordinator = &launch->members.list[0];
    const char *mirror = launch->mirror.folder;
    log_warn(
        "the coordinator (pid %u on %s) has recorded how the job ended, but has not ended itself: "
        "the kernel holds it, perhaps because %s%s hangs",
        coordinator->pid, launch->launcher->crew.links[coordinator->host].name,
        mirror[0] != '\0' ? "the disk of --mirror " : "a disk", mirror);
}

void launch_note_held(struct launch *launch)
{
    const struct member *coordinator = &launch->members.list[0];
    bool is_held = is_here(launch) && process_is_held((pid_t)coordinator->pid);
    bool is_done = is_held && launch->is_recorded;
    if (is_done) {
        note_recorded(launch);
    }
    for (size_t i = is_done ? 1 : 0; i < launch->members.count; i++) {
        const struct member *member = &launch->members.list[i];
        bool is_near = !launch_is_remote(launch, member->host);
        if (!member->is_started || member->is_over ||
            (is_near && !process_is_held((pid_t)member->pid))) {
            continue;
        }
        log_error("%s (pid %u on %s) was killed, and %s, as where a disk hangs, until that goes on",
                  i == 0 ? "the coordinator" : member->name, member->pid,
                  launch->launcher->crew.links[member->host].name,
                  is_near ? "has not ended: the kernel holds it"
                          : "nothing is heard of its end: that host's kernel may hold it");
    }
    launch->launcher->is_folder_held = is_held && !is_done;
}
