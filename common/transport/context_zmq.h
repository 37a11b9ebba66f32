/* Creates the context of libzmq, which a transport's sockets share. Private to the transport. */
#ifndef COMMON_TRANSPORT_CONTEXT_ZMQ_H
#define COMMON_TRANSPORT_CONTEXT_ZMQ_H

/* Creates a context with room for this many sockets, and starts its threads. Returns NULL on
 * failure, with errno. End it by zmq_ctx_term. */
void *context_create(int sockets_max);

#endif
