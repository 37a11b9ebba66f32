/* Whose the other end of a tcp connection is, if it is on this host.
 *
 * The kernel knows both ends of a connection within a host, and tells any process whose the other
 * one is (sock_diag(7)). That takes some microseconds, however many connections there are. */
#ifndef COMMON_TRANSPORT_LOCAL_PEER_H
#define COMMON_TRANSPORT_LOCAL_PEER_H

#include <sys/types.h>

enum local_peer {
    LOCAL_PEER_UNKNOWN, // it is on another host, or the system does not tell
    LOCAL_PEER_OWN,     // of this process's user
    LOCAL_PEER_OTHER,   // of another user of this host
    LOCAL_PEER_GONE,    // it has broken off, or was on this host and has hung up
};

/* A descriptor to ask through, from one thread at a time; closed by the caller. -1: the system does
 * not tell. */
int local_peer_open(void);

/* Of a connection that was accepted; `descriptor` may be -1. *ret_user is written for
 * LOCAL_PEER_OTHER. */
enum local_peer local_peer_find(int descriptor, int fd, uid_t *ret_user);

#endif
