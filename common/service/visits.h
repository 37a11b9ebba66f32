/* The open connections of a small web server, and which of them has to make room for a new one.
 * Pure but for the shutdown of that one. Belongs to the server's thread.
 *
 * A request comes with its connection, so one that has been open for long and has asked for nothing
 * can go. The oldest goes of those from the address that has most of them. So neither many
 * half-open requests nor one address keep out others. */
#ifndef COMMON_SERVICE_VISITS_H
#define COMMON_SERVICE_VISITS_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#define VISITS_MAX 24

/* A connection that is open. */
struct visit {
    int fd; // the server's; -1: none
    struct in6_addr address;
    uint64_t number; // in the order in which they came
    bool is_kept;    // never makes room: it has shown that it may be here
};

struct visits {
    struct visit list[VISITS_MAX];
    uint64_t count; // so far
};

void visits_init(struct visits *visits);

/* Takes a new connection. Shuts down another one if there is no room, which the server then sees
 * end. NULL if all of them are kept. */
struct visit *visits_add(struct visits *visits, int fd, const struct sockaddr *from);

/* The connection is closed, unless another has its place already. */
void visits_remove(struct visit *visit, int fd);

#endif
