/* A connection of TCP over loopback, without libzmq. */
#ifndef TESTS_SUPPORT_COMMON_TCP_ENDS_H
#define TESTS_SUPPORT_COMMON_TCP_ENDS_H

/* Both ends; the caller closes them. */
void tcp_ends_open(int ret_ends[2]);

#endif
