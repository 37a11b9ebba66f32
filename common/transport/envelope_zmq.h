/* Finds the library's frames inside an envelope. Private to the transport. */
#ifndef COMMON_TRANSPORT_ENVELOPE_ZMQ_H
#define COMMON_TRANSPORT_ENVELOPE_ZMQ_H

#include "common/transport/transport.h"

#define ENVELOPE_FRAMES 2 // header, payload

/* A zmq_msg_t. */
void *envelope_frame(struct envelope *envelope, unsigned index);

/* Points a received envelope at its frames, both of which are initialised. Moves a payload that is
 * not aligned for floats. */
void envelope_settle(struct envelope *envelope);

#endif
