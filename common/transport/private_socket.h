/* A Unix socket that only processes of this user can find.
 *
 * An abstract name is in reach of every user of the host. Strangers can be turned away, but a
 * crowd of them can fill the queue of connections that wait to be accepted. So the socket gets a
 * name that the kernel guards: it is bound in a folder of mode 0700, and is found through the
 * descriptor of its file, at /proc/PID/fd/N, where nobody but this user (and root) may look. The
 * file and the folder are removed at once, so nothing is left behind, however the process ends. */
#ifndef COMMON_TRANSPORT_PRIVATE_SOCKET_H
#define COMMON_TRANSPORT_PRIVATE_SOCKET_H

// A queue of so many connections that wait to be accepted: those of a whole job may come at once.
#define PRIVATE_SOCKET_BACKLOG 1024

#define PRIVATE_SOCKET_ENDPOINT_BYTES 96

struct private_socket {
    char endpoint[PRIVATE_SOCKET_ENDPOINT_BYTES];
    int listener; // listens already; owned until somebody takes it; -1: nobody listens so far
    int file;     // owned; keeps the name alive; -1: there is none
};

/* Where the system has no such names, or hides this process from others of its user, the endpoint
 * is an abstract name, at which nobody listens so far. Logs that. */
void private_socket_open(struct private_socket *ret_socket);

#endif
