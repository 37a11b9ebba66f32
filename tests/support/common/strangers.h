/* Who is no member of any job: connections that say what a member would not. */
#ifndef TESTS_SUPPORT_COMMON_STRANGERS_H
#define TESTS_SUPPORT_COMMON_STRANGERS_H

#include <stdbool.h>
#include <stddef.h>

/* Bytes to say. A server with keys closes the connection, unless more is to come. */
struct noise {
    const char *bytes;
    size_t size;
    bool is_half; // more is to come: whoever says it has to go, or to be waited for
};

/* Garbage, half greetings, those of other versions and mechanisms of ZeroMQ, huge lengths. */
extern const struct noise stranger_noises[];
extern const size_t stranger_noise_count;

/* A command of 400 MiB, whose bytes are to come. */
extern const struct noise stranger_large_command;

/* A connection to a tcp endpoint of the loopback interface, over which that was said; closed by the
 * caller. -1 if nobody listens. */
int stranger_say(const char *endpoint, const struct noise *noise);

#endif
