/* The context of libzmq: what the sockets of a transport share. Private to the transport. */
#ifndef COMMON_TRANSPORT_CONTEXT_ZMQ_H
#define COMMON_TRANSPORT_CONTEXT_ZMQ_H

/* With room for so many sockets, and its threads started. NULL: errno says why. To be ended by
 * zmq_ctx_term. */
void *context_create(int sockets_max);

#endif
