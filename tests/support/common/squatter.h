/* Who has taken a name of a Unix socket: a process of another user that listens there. */
#ifndef TESTS_SUPPORT_COMMON_SQUATTER_H
#define TESTS_SUPPORT_COMMON_SQUATTER_H

#include <stdbool.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/un.h>

struct squatter {
    pid_t child;
    struct sockaddr_un address; // an abstract name
    socklen_t size;
};

/* Listens at a fresh name with that prefix, as that user. Needs root. */
void squatter_open(struct squatter *squatter, const char *prefix, uid_t user);

/* Waits until the first who connects has gone, or said something. Whether it has said something. */
bool squatter_close(const struct squatter *squatter);

#endif
