/* Holds received messages of libzmq as envelopes. */
#include "common/transport/envelope_zmq.h"

#include <zmq.h>

#include <assert.h>
#include <stdio.h>
#include <string.h>

static_assert(sizeof(zmq_msg_t) == sizeof(((struct envelope *)0)->frames[0]), "frame storage");

void *envelope_frame(struct envelope *envelope, unsigned index)
{
    assert(index < ENVELOPE_FRAMES);
    return envelope->frames[index];
}

static void align_payload(zmq_msg_t *frame)
{
    if (zmq_msg_size(frame) == 0 || (uintptr_t)zmq_msg_data(frame) % _Alignof(float) == 0) {
        return;
    }
    zmq_msg_t aligned;
    if (zmq_msg_init_size(&aligned, zmq_msg_size(frame)) != 0) {
        zmq_msg_close(frame);
        zmq_msg_init(frame);
        return; // an empty payload: the decoder refuses the message
    }
    memcpy(zmq_msg_data(&aligned), zmq_msg_data(frame), zmq_msg_size(frame));
    zmq_msg_close(frame);
    zmq_msg_init(frame);
    zmq_msg_move(frame, &aligned);
    zmq_msg_close(&aligned);
}

static void point(struct envelope *envelope)
{
    zmq_msg_t *header = envelope_frame(envelope, 0), *payload = envelope_frame(envelope, 1);
    envelope->header = zmq_msg_data(header);
    envelope->header_size = zmq_msg_size(header);
    envelope->payload_size = zmq_msg_size(payload);
    envelope->payload = envelope->payload_size > 0 ? zmq_msg_data(payload) : NULL;
    envelope->loan = (struct loan){0};
}

void envelope_settle(struct envelope *envelope)
{
    align_payload(envelope_frame(envelope, 1));
    point(envelope);
}

void envelope_address(struct envelope *envelope, char ret_address[TRANSPORT_ADDRESS_BYTES])
{
    const char *address = zmq_msg_gets(envelope_frame(envelope, 0), "Peer-Address");
    snprintf(ret_address, TRANSPORT_ADDRESS_BYTES, "%s", address != NULL ? address : "unknown");
}

void envelope_release(struct envelope *envelope)
{
    if (envelope->loan.end != NULL) {
        envelope->loan.end(envelope->loan.context, envelope->peer, envelope->loan.ticket);
        envelope->loan = (struct loan){0};
    }
    for (unsigned i = 0; i < ENVELOPE_FRAMES; i++) {
        zmq_msg_close(envelope_frame(envelope, i));
    }
    envelope->header = envelope->payload = NULL;
    envelope->header_size = envelope->payload_size = 0;
}

void envelope_move(struct envelope *to, struct envelope *from)
{
    struct loan loan = from->loan;
    const void *payload = from->payload;
    size_t payload_size = from->payload_size;
    to->peer = from->peer;
    for (unsigned i = 0; i < ENVELOPE_FRAMES; i++) {
        zmq_msg_init(envelope_frame(to, i));
        zmq_msg_move(envelope_frame(to, i), envelope_frame(from, i));
    }
    point(to);
    point(from);
    if (loan.end != NULL) {
        to->loan = loan;
        to->payload = payload;
        to->payload_size = payload_size;
    }
}

void envelope_of_header(uint64_t peer, const void *header, size_t size,
                        struct envelope *ret_envelope)
{
    for (unsigned i = 0; i < ENVELOPE_FRAMES; i++) {
        zmq_msg_init(envelope_frame(ret_envelope, i));
    }
    point(ret_envelope);
    ret_envelope->peer = peer;
    ret_envelope->header = header;
    ret_envelope->header_size = size;
}

enum status envelope_make_floats(size_t count, struct envelope *ret_envelope, float **ret_values)
{
    zmq_msg_init(envelope_frame(ret_envelope, 0));
    if (zmq_msg_init_size(envelope_frame(ret_envelope, 1), count * sizeof(float)) != 0) {
        return STATUS_NO_MEMORY;
    }
    ret_envelope->peer = 0;
    ret_envelope->loan = (struct loan){0};
    *ret_values = zmq_msg_data(envelope_frame(ret_envelope, 1));
    point(ret_envelope);
    return STATUS_OK;
}
