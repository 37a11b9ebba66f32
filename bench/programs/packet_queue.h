/* The packets that a rule `-j NFQUEUE --queue-num 0` of iptables holds in a network namespace, each
 * until its verdict. The kernel keeps them, and says over netlink which ones have come, and when
 * (linux/netfilter/nfnetlink_queue.h). */
#ifndef BENCH_PROGRAMS_PACKET_QUEUE_H
#define BENCH_PROGRAMS_PACKET_QUEUE_H

#include <stddef.h>
#include <stdint.h>

// Packets that may wait in one queue. The kernel drops any more.
#define PACKET_QUEUE_MAX 65536

struct packet {
    uint32_t id;      // in its queue; the next packet has the next one
    uint64_t came_ns; // when it came, since 1970; 0: the kernel does not say
};

struct packet_queue {
    const char *name; // of the namespace, borrowed
    int descriptor;   // readable when there are messages; -1: not open
    uint32_t id;      // of the last packet that was taken; 0: of none
};

/* Begins to listen in a namespace of `ip netns`, which the calling thread enters. Returns 0, or -1
 * once what went wrong is printed. Either way packet_queue_close may be called. */
int packet_queue_open(struct packet_queue *queue, const char *name);

/* The kernel drops what still waits. */
void packet_queue_close(struct packet_queue *queue);

/* Takes up to `count` packets in the order in which they came, and waits for none. Returns how
 * many, or -1 once what went wrong is printed. */
int packet_queue_take(struct packet_queue *queue, struct packet *packets, size_t count);

/* Lets a packet go on, with all that came before it. Returns 0, or -1 once what went wrong is
 * printed. */
int packet_queue_release(struct packet_queue *queue, uint32_t id);

#endif
