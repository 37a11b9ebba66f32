/* Makes a connection, and watches its handshake. Private to the transport.
 *
 * libzmq connects in the background and keeps trying, whatever the peer says. So the socket is
 * watched until its first handshake is done. */
#ifndef COMMON_TRANSPORT_DEALER_ZMQ_H
#define COMMON_TRANSPORT_DEALER_ZMQ_H

#include "common/base/status.h"
#include "common/transport/guard_zmq.h"
#include "common/transport/transport.h"

#include <stdbool.h>
#include <stdint.h>

struct dealer {
    void *socket;
    void *monitor; // until its handshake is done, unless its end is to be noted; then NULL
    enum handshake handshake;
    bool notes_end, has_left; // whether to note that its connection was closed; it was
    bool wakes_at_end;        // and whether that ends a wait
    bool has_keys;            // this side shows some
    uint32_t broken_count;    // handshakes in a row that the peer broke off
    int descriptor;           // libzmq's, of its connection when that was made; -1: none was
};

/* Logs. */
enum status dealer_open(struct dealer *dealer, void *context, const struct guard *guard,
                        const char *endpoint);
void dealer_close(struct dealer *dealer, int linger_ms);

/* Makes another connection in the place of this one, which ends with what is queued for it. Logs.
 */
enum status dealer_reopen(struct dealer *dealer, void *context, const struct guard *guard,
                          const char *endpoint);

/* Whether the other side has refused this one for good. */
bool dealer_is_shut_out(const struct dealer *dealer);

/* Whether it goes over ipc. */
bool dealer_is_near(const struct dealer *dealer);

/* As transport_explain. */
const char *dealer_explain(const struct dealer *dealer);

/* As transport_has_left, if it wakes, or transport_was_closed. */
bool dealer_has_left(struct dealer *dealer, bool wakes);

/* Its monitor, if what that says is to end a wait; otherwise NULL. */
void *dealer_waker(const struct dealer *dealer);

/* Takes what its monitor says. Logs handshakes that fail, once for each kind. */
void dealer_watch(struct dealer *dealer);

#endif
