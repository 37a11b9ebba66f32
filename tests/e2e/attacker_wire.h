/* The attacker's side of a connection: ZMTP as libzmq speaks it, by hand.
 *
 * Not by our own transport, which says nothing to other users, and takes nothing from them. What is
 * said in it is encoded and decoded by common/wire. */
#ifndef TESTS_E2E_ATTACKER_WIRE_H
#define TESTS_E2E_ATTACKER_WIRE_H

#include "common/channel/wire.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/un.h>

#define HEARD_BYTES ((size_t)1 << 20)

/* A connection that we have made, or taken. */
struct attacker_wire {
    const char *endpoint; // borrowed
    int fd;               // -1: there is none, or it was closed
    bool is_greeted;      // the other side has said its greeting,
    bool is_open;         // and ended its handshake: no message may come sooner
    bool is_over;         // it has closed the connection
    size_t heard;         // bytes that have come, and were not taken
    unsigned char *bytes; // (HEARD_BYTES), owned
    unsigned char header[WIRE_HEADER_BYTES];
    size_t header_size; // of a message whose payload is to come; 0: none
};

/* The address of an endpoint, or of a name as /proc/net/unix has it. Its size; 0: it is none. */
socklen_t attacker_wire_address(const char *endpoint, struct sockaddr_storage *ret_address);

/* Connects, and begins a handshake without keys. False if nobody is there. */
bool attacker_wire_connect(struct attacker_wire *wire, const char *endpoint);

/* Answers one whom listener has let in, as a coordinator would. */
void attacker_wire_accept(struct attacker_wire *wire, int listener);

void attacker_wire_close(struct attacker_wire *wire); // none is fine

/* Sends a message, if there is a connection, and it was let in; closes it otherwise. */
void attacker_wire_say(struct attacker_wire *wire, const struct message *message);

/* The next message that has come; false if there is none. It borrows until the next call. Does not
 * wait. */
bool attacker_wire_hear(struct attacker_wire *wire, struct message *ret_message);

#endif
