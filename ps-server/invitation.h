/* The line that tells a user how to start the workers: a command that can be pasted into any shell
 * of this host. */
#ifndef PS_SERVER_INVITATION_H
#define PS_SERVER_INVITATION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define INVITATION_BYTES 16384

struct invitation {
    uint32_t workers;
    const char *endpoint;
    const char *keys; // file of them, as the user said; "": none
    bool is_insecure;
};

/* Without a line's end. Names the worker beside this program, by its path. */
void invitation_write(const struct invitation *invitation, char ret_text[INVITATION_BYTES]);

#endif
