/* Reads from /proc whether a process is alive, stopped or running. */
#include "common/channel/presence.h"

#include "common/transport/transport.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define STAT_BYTES 1024

// The index among the fields after the name, which ends with the last parenthesis. The state is the
// first field.
#define BEGAN_FIELD 20

/* Returns false if there is no such process, or if it cannot be seen. */
static bool read_stat(uint64_t process_id, char *ret_state, uint64_t *ret_began)
{
    char path[64], text[STAT_BYTES];
    snprintf(path, sizeof(path), "/proc/%llu/stat", (unsigned long long)process_id);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t size = file >= 0 ? read(file, text, sizeof(text) - 1) : -1;
    if (file >= 0) {
        close(file);
    }
    text[size > 0 ? size : 0] = '\0';
    const char *at = strrchr(text, ')'); // names may have parentheses, too
    if (at == NULL || at[1] != ' ') {
        return false;
    }
    at += 2;
    *ret_state = *at;
    for (unsigned i = 1; i < BEGAN_FIELD && at != NULL; i++) {
        at = strchr(at, ' ');
        at = at != NULL ? at + 1 : NULL;
    }
    *ret_began = at != NULL ? strtoull(at, NULL, 10) : 0;
    return *ret_began != 0;
}

enum presence presence_look(struct sighting *sighting)
{
    char state = '?';
    uint64_t began = 0;
    bool is_met = sighting->is_met;
    sighting->is_met = true;
    if (is_met && sighting->began == 0) {
        return PRESENCE_UNKNOWN;
    }
    bool is_here = is_met || sighting->host_id == transport_host_id();
    bool is_there = is_here && read_stat(sighting->process_id, &state, &began);
    if (!is_met) {
        sighting->began = is_there ? began : 0;
    }
    if (!is_there || began != sighting->began) {
        return is_met ? PRESENCE_ENDED
                      : PRESENCE_UNKNOWN; // another process may have its number now
    }
    return state == 'Z' || state == 'X'   ? PRESENCE_ENDED
           : state == 'T' || state == 't' ? PRESENCE_STOPPED
                                          : PRESENCE_RUNS;
}
