/* Whether a process of this host is still there, and may run: what tells one that starves from one
 * that has died or was stopped. */
#ifndef COMMON_CHANNEL_PRESENCE_H
#define COMMON_CHANNEL_PRESENCE_H

#include <stdbool.h>
#include <stdint.h>

enum presence {
    PRESENCE_UNKNOWN, // of another host or container, or not to be seen from here
    PRESENCE_RUNS,    // there; it runs, waits, or waits for a processor
    PRESENCE_STOPPED, // there, but stopped by a signal or a debugger
    PRESENCE_ENDED,   // has ended
};

/* A process, and when it was seen first. The caller sets the host and the number. */
struct sighting {
    uint64_t host_id, process_id;
    bool is_met;    // was looked at
    uint64_t began; // when it was started, as the kernel counts; 0: was not seen when it was met
};

/* What has become of the process since it was looked at first, when it was known to be there. */
enum presence presence_look(struct sighting *sighting);

#endif
