/* Replaces accept(2), accept4(2), connect(2), send(2) and recv(2) in the programs that link this
 * file: `ps` and `worker`.
 *
 * The dynamic linker takes a program's own functions for those of the C library, also in the
 * libraries that call them. It is the only way to see a connection before libzmq does; see door.h
 * for why that is needed, and to hold up what it sends and receives: see partition.h. Nothing else
 * may link it but tests of it, and bench_exchange, which is a worker. */
#include "common/transport/door.h"
#include "common/transport/partition.h"

/* The linker knows them by these names; in C, <sys/socket.h> has them, with types of its own. */
int door_hook_accept(int fd, struct sockaddr *address, socklen_t *address_size) __asm__("accept");
int door_hook_accept4(int fd, struct sockaddr *address, socklen_t *address_size,
                      int flags) __asm__("accept4");
int door_hook_connect(int fd, const struct sockaddr *address, socklen_t size) __asm__("connect");

ssize_t door_hook_send(int fd, const void *bytes, size_t size, int flags) __asm__("send");
ssize_t door_hook_recv(int fd, void *bytes, size_t size, int flags) __asm__("recv");

int door_hook_accept(int fd, struct sockaddr *address, socklen_t *address_size)
{
    return door_take(fd, address, address_size, 0);
}

int door_hook_accept4(int fd, struct sockaddr *address, socklen_t *address_size, int flags)
{
    return door_take(fd, address, address_size, flags);
}

int door_hook_connect(int fd, const struct sockaddr *address, socklen_t size)
{
    return door_reach(fd, address, size);
}

ssize_t door_hook_send(int fd, const void *bytes, size_t size, int flags)
{
    return partition_send(fd, bytes, size, flags);
}

ssize_t door_hook_recv(int fd, void *bytes, size_t size, int flags)
{
    return partition_receive(fd, bytes, size, flags);
}
