/* The other end of a tcp connection: its address, and whose it is if it is on this host. And the
 * names of Unix sockets.
 *
 * The kernel knows both ends of a connection within a host, and tells any process whose the other
 * one is (sock_diag(7)). That takes some microseconds, however many connections there are. */
#ifndef COMMON_TRANSPORT_LOCAL_PEER_H
#define COMMON_TRANSPORT_LOCAL_PEER_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/un.h>

enum local_peer {
    LOCAL_PEER_UNKNOWN, // it is on another host, or the system does not tell
    LOCAL_PEER_OWN,     // of this process's user
    LOCAL_PEER_OTHER,   // of another user of this host
    LOCAL_PEER_GONE,    // it has broken off, or was on this host and has hung up
};

struct local_peer_address {
    struct in6_addr host; // of IPv4 as it is mapped into IPv6
    uint16_t port;
};

/* False for other families than IPv4 and IPv6. */
bool local_peer_read_address(const struct sockaddr_storage *storage,
                             struct local_peer_address *ret_address);

/* NULL, or why the process at the other end of a Unix socket may not connect: a static text. Writes
 * the process and its user. */
const char *local_peer_find_no_right(int fd, char *ret_text, size_t text_size);

/* "10.0.0.7", "2001:db8::7". False: it is no address. */
bool local_peer_parse_host(const char *text, struct in6_addr *ret_host);

/* "10.0.0.7:40113", "[2001:db8::7]:40113" */
void local_peer_format_address(const struct local_peer_address *address, char *ret_text,
                               size_t text_size);

/* A descriptor to ask through, from one thread at a time; closed by the caller. -1: the system does
 * not tell. */
int local_peer_open(void);

/* Of a connection that was accepted; `descriptor` may be -1. *ret_user is written for
 * LOCAL_PEER_OTHER. */
enum local_peer local_peer_find(int descriptor, int fd, uid_t *ret_user);

#define LOCAL_PEER_NAME_BYTES sizeof(((struct sockaddr_un *)0)->sun_path)

/* The name of a Unix socket's address, an abstract one without its zero, if it is one of ours. */
bool local_peer_read_name(const struct sockaddr *address, socklen_t size,
                          char ret_name[LOCAL_PEER_NAME_BYTES]);

#endif
