/* A socket that listens on the loopback interface, and those who connect to it. */
#ifndef TESTS_SUPPORT_COMMON_HOUSE_H
#define TESTS_SUPPORT_COMMON_HOUSE_H

#include "common/transport/door.h"

#include <netinet/in.h>
#include <sys/resource.h>

struct house {
    int fd;
    struct sockaddr_in address;
};

/* The caller closes it. */
void house_open(struct house *house);

/* Connects to it, from 127.0.0.`last`; writes its own address. */
int house_visit(const struct house *house, unsigned char last, char address[DOOR_ADDRESS_BYTES]);

/* The other end has closed the connection, or does so in ten seconds. */
void house_assert_closed(int fd);

/* So many file descriptors, for this test alone; returns what was before. */
struct rlimit house_limit_descriptors(rlim_t count);

#endif
