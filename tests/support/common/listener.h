/* A socket that listens on the loopback interface, and those who connect to it. */
#ifndef TESTS_SUPPORT_COMMON_LISTENER_H
#define TESTS_SUPPORT_COMMON_LISTENER_H

#include "common/transport/door.h"

#include <netinet/in.h>
#include <sys/resource.h>

struct listener {
    int fd;
    struct sockaddr_in address;
};

/* The caller closes it. */
void listener_open(struct listener *listener);

/* Connects to it, from 127.0.0.`last`; writes its own address. */
int listener_visit(const struct listener *listener, unsigned char last,
                   char address[DOOR_ADDRESS_BYTES]);

/* The other end has closed the connection, or does so in ten seconds. */
void listener_assert_closed(int fd);

/* So many file descriptors, for this test alone; returns what was before. */
struct rlimit listener_limit_descriptors(rlim_t count);

#endif
