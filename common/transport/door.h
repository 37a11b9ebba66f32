/* The door of this process: which connections have come in that have not said anything yet, and
 * which user is at the other end of a local one.
 *
 * libzmq takes every connection that comes. It does not say where a connection came from that fails
 * before it is a peer, it has no bound on them, and it has no hook before it accepts one. Where it
 * runs out of file descriptors it spins (tcp) or ends the process (ipc). So the programs that take
 * part in jobs, `ps` and `worker`, link door_hooks.c, which puts door_take in the place of
 * accept(2) and door_reach in the place of connect(2). In other programs nothing comes through the
 * door, and it counts nothing.
 *
 * A connection that comes in
 *
 *     is closed at once if too many others have not said anything so far and none of them gives
 *     way, half of that from one address, so that one stranger cannot keep out others; or if it
 *     would take one of the last file descriptors, which this process needs itself; or if it comes
 *     over a Unix socket and belongs to another user (abstract ones have no file, and so no
 *     permissions); or if it comes over tcp from this host, and its other end has hung up already;
 *     is counted apart from all others if it comes over tcp from a process of this user on this
 *     host, so that nobody else can take its place; and there is less room, and only so much in a
 *     second, for those of other users of this host, who may have keys after all;
 *     is a visitor otherwise, with its address, until it sends a message or goes, or is sent away.
 *
 * A Unix socket's name becomes free when its owner ends, and any user of the host may take it then.
 * So a connection to a name of ours (SECURITY_NAME_PREFIX, or a private path) at which another
 * user's process listens is shut down before anything is sent, and fails.
 *
 * The state is the process's, like its descriptors, and any thread may call. */
#ifndef COMMON_TRANSPORT_DOOR_H
#define COMMON_TRANSPORT_DOOR_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#define DOOR_ADDRESS_BYTES 64 // "[2001:db8::7]:40113", terminator included

// A connection that has said nothing for so long is sent away. It has finished its handshake, for
// which it has less time (see guard_zmq.h), so nothing else would end it.
#define DOOR_VISIT_MS 15000

// After this a visitor that was not sent away stops counting against the limit, but stays open.
#define DOOR_FORGET_MS 60000

// A connection that has said nothing for so long gives way: where there is no room for the next
// one, the oldest of them is sent away. A member has finished its handshake, and asked to join,
// sooner than that. So whoever holds connections keeps nobody out.
#define DOOR_SETTLE_MS 1000

#define DOOR_VISITORS_MAX 2048 // or half of the file descriptors; so many of our own, too
#define DOOR_OTHERS_MAX   64   // of other users of this host; and so many of them in a second
#define DOOR_RESERVE      64   // file descriptors that are kept; or a quarter of them

/* Connections that were closed at once. */
struct door_turned_away {
    uint64_t count;
    char address[DOOR_ADDRESS_BYTES]; // of the last one
    const char *why;                  // static
};

/* Allows this process as many file descriptors as the system lets it have. Before anything listens;
 * again does no harm. */
void door_open(void);

/* The id of a listening socket; 0: the descriptor has none. No other socket of this system has it,
 * while a descriptor may belong to several sockets, one after the other. */
uint32_t door_listener_id(int listener);

#define DOOR_EXEMPT_MAX 2

/* Connections to this listening socket are no visitors: its owner has limits of its own, which for
 * all owners together are fewer than DOOR_RESERVE. At most DOOR_EXEMPT_MAX sockets; further ones
 * are not exempt. Call it before anybody can connect; it holds until the socket is closed. */
void door_exempt(int listener);
void door_exempt_no_more(int listener);

/* As accept4(2), for a connection that may stay; errors are those that libzmq can take. */
int door_take(int fd, struct sockaddr *address, socklen_t *address_size, int flags);

/* As connect(2); ECONNREFUSED where another user's process listens at a name of ours. */
int door_reach(int fd, const struct sockaddr *address, socklen_t size);

/* How many visitors there are. 0: nobody needs to be admitted. */
uint32_t door_visitor_count(void);

/* The connection has sent a message: it is no visitor any more. */
void door_admit(int fd);

/* A process at that address ("10.0.0.7") has shown an allowed key. Which connection it has is not
 * known: it counts for the visitor that came last from there, of those that have shown none. */
void door_note_key(const char *host);

/* What a connection was when it was closed. */
enum door_visit {
    DOOR_NO_VISIT, // it has sent a message
    DOOR_VISIT,    // a visitor
    DOOR_KEY,      // a visitor that has shown an allowed key
};

/* The connection was closed. Writes the address of a visitor. */
enum door_visit door_leave(int fd, char ret_address[DOOR_ADDRESS_BYTES]);

/* Shuts down the connections to the listener that have said nothing for DOOR_VISIT_MS; then they
 * leave like any other. Those that have said nothing for DOOR_SETTLE_MS give way from now on. For
 * the owner of the listener, when it has received all that has come: a message that waits for it is
 * no silence. As it may have been stopped for long itself, nobody is sent away for being late
 * before the second call that finds it late; calls are to be a second apart. */
void door_end_visits(uint32_t listener_id, uint64_t now_ms);

/* Forgets all connections to a listener. For its owner, once the listener and these connections are
 * closed: nobody calls door_leave for them. Otherwise a connection to another listener that gets
 * one of their descriptors would be taken for one that was admitted. */
void door_forget(uint32_t listener_id);

/* Whether another user's process was found listening at that name (an abstract one without its
 * zero, or a private path), lately; then writes which. */
bool door_find_stranger(const char *name, char ret_address[DOOR_ADDRESS_BYTES]);

/* Those since the last call, found listening among them; count 0 if there were none. */
struct door_turned_away door_take_turned_away(void);

#endif
