/* Cuts this process off for a while, as an experiment (--fault …,partition=3s).
 *
 * While a partition lasts, whoever calls send(2) or recv(2) in this process waits for its end
 * (door_hooks.c). libzmq calls them in a thread of its own, so no message leaves this process or
 * comes in, and all else goes on. Connections stay open, as when packets are lost: what was queued
 * arrives afterwards. Connections of this process that others begin are made by the system, and say
 * nothing. It is not what a network does that drops packets: nothing is sent a second time, and
 * what others have sent before lies in this host's buffers.
 *
 * Memory that processes share is no network, and is not cut. */
#ifndef COMMON_TRANSPORT_PARTITION_H
#define COMMON_TRANSPORT_PARTITION_H

#include <stddef.h>
#include <sys/types.h>

/* From now on, for so many seconds; or for as long as one that lasts already, if that is longer.
 * Does not wait. Any thread. Nothing is cut in a program that does not link door_hooks.c. */
void partition_begin(double seconds);

/* As send(2) and recv(2), after the end of a partition that lasts. */
ssize_t partition_send(int fd, const void *bytes, size_t size, int flags);
ssize_t partition_receive(int fd, void *bytes, size_t size, int flags);

#endif
