/* Finds out whether a process of this host still exists and may run. This distinguishes a starving
 * process from one that has died or was stopped. */
#ifndef COMMON_CHANNEL_PRESENCE_H
#define COMMON_CHANNEL_PRESENCE_H

#include <stdbool.h>
#include <stdint.h>

enum presence {
    PRESENCE_UNKNOWN, // on another host or in another container, or otherwise invisible from here
    PRESENCE_RUNS,    // exists; it runs, waits, or waits for a processor
    PRESENCE_STOPPED, // exists, but is stopped by a signal or a debugger
    PRESENCE_ENDED,   // has ended
};

/* A process, and when it was seen first. The caller sets the host and the number. */
struct sighting {
    uint64_t host_id, process_id;
    bool is_met;    // was looked at
    uint64_t began; // when it was started, as the kernel counts; 0: it could not be seen at first
};

/* Returns what became of the process since it was first looked at, when it was known to exist. */
enum presence presence_look(struct sighting *sighting);

#endif
