/* How the device of worker 0 computes, for the workers that ask: so all of a job compute alike. The
 * text is the devices' own; here nobody reads it. */
#ifndef PS_SERVER_COORDINATOR_CHOICES_H
#define PS_SERVER_COORDINATOR_CHOICES_H

#include "common/channel/wire.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct choices {
    bool are_known; // or there are none, which worker 0 has shown by being ready without
    char text[WIRE_CHOICES_BYTES];
};

struct coordinator;
struct sender;

/* CHOICES of a worker that prepares: worker 0 tells its own, others ask for them, and are answered
 * now or once they are known. Then they may begin: they are waited for from there. */
void choices_take(struct coordinator *coordinator, const struct sender *from, const char *text,
                  uint64_t now_ms);

/* The worker is ready: one that has told nothing before will not. */
void choices_note_ready(struct coordinator *coordinator, const struct sender *from);

/* The ranks of workers that compute otherwise than worker 0: "1 and 3"; false, and nothing, if all
 * compute alike, or have nothing to choose. All have to be ready. */
bool choices_differ(const struct coordinator *coordinator, char *ret_ranks, size_t ranks_size);

#endif
