/* Creates the context of libzmq that a transport's sockets share, with its threads. */
#include "common/transport/context_zmq.h"

#include "common/base/cores.h"
#include "common/base/slice.h"
#include "common/transport/transport.h"

#include <zmq.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

// Cores of the host for each thread of libzmq; the others compute.
#define CORES_PER_THREAD 4
#define THREADS_MAX      4

/* The number of libzmq's threads, over which it spreads connections. One moves 1.5 to 2.5 GB/s,
 * which is more than most links carry. */
static int thread_count(void)
{
    uint32_t count = cores_available() / CORES_PER_THREAD;
    return (int)(count < 1 ? 1 : count > THREADS_MAX ? THREADS_MAX : count);
}

/* Starts libzmq's threads, which it does for a context's first socket. They move values that other
 * threads compute, and must not wait until those end their turns. */
static bool start_threads(void *context)
{
    zmq_ctx_set(context, ZMQ_IO_THREADS, thread_count());
    uint64_t slice_ns = slice_of_thread();
    (void)slice_shorten();
    void *socket = zmq_socket(context, ZMQ_DEALER);
    slice_restore(slice_ns);
    return socket != NULL && zmq_close(socket) == 0;
}

void *context_create(int sockets_max)
{
    void *context = zmq_ctx_new();
    if (context == NULL) {
        return NULL;
    }
    zmq_ctx_set(context, ZMQ_MAX_SOCKETS, sockets_max);
    if (!start_threads(context)) {
        zmq_ctx_term(context);
        return NULL;
    }
    return context;
}

void transport_describe(char *ret_text, size_t text_size)
{
    int major, minor, patch;
    zmq_version(&major, &minor, &patch);
    snprintf(ret_text, text_size, "libzmq %d.%d.%d, ipc %s, curve %s", major, minor, patch,
             zmq_has("ipc") != 0 ? "yes" : "no", zmq_has("curve") != 0 ? "yes" : "no");
}
