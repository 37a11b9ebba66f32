/* Messages over the simulated network, in the place of libzmq: all of transport.h. */
#include "tests/sim/transport_sim.h"

#include "common/transport/transport.h"
#include "tests/sim/network.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// One receiver in so many lets others run before it takes a message.
#define YIELD_ONE_IN 8

void payload_keep(void *hint)
{
    (void)hint;
}

enum status transport_create(struct transport **ret_transport)
{
    struct transport *transport = calloc(1, sizeof(*transport));
    if (transport == NULL) {
        return STATUS_NO_MEMORY;
    }
    transport->process = world_current();
    network_add(world_network(), transport);
    *ret_transport = transport;
    return STATUS_OK;
}

static struct parcel *take_first(struct transport *transport)
{
    struct parcel *parcel = transport->first;
    if (parcel != NULL) {
        transport->first = parcel->next;
        transport->last = transport->first != NULL ? transport->last : NULL;
    }
    return parcel;
}

void transport_destroy(struct transport *transport, int linger_ms)
{
    (void)linger_ms;
    if (transport == NULL) {
        return;
    }
    network_remove(world_network(), transport);
    while (transport->first != NULL) {
        parcel_destroy(take_first(transport));
    }
    departures_finish(&transport->departures);
    free(transport);
}

/* ============================================================================================
 * Who may connect: whoever knows the endpoint
 * ========================================================================================== */

enum status transport_secure(struct transport *transport, const struct security *security)
{
    (void)transport;
    (void)security;
    return STATUS_OK;
}

bool transport_allows_tcp(const struct transport *transport)
{
    (void)transport;
    return true;
}

void transport_leave_clear(struct transport *transport)
{
    (void)transport;
}

void transport_limit_frames(struct transport *transport, uint64_t bytes)
{
    (void)transport;
    (void)bytes;
}

enum handshake transport_handshake(const struct transport *transport, uint64_t peer)
{
    return network_is_connected(world_network(), transport, peer) ? HANDSHAKE_DONE : HANDSHAKE_NONE;
}

bool transport_is_shut_out(const struct transport *transport)
{
    (void)transport;
    return false;
}

const char *transport_explain(const struct transport *transport, uint64_t peer)
{
    (void)transport;
    (void)peer;
    return "nobody listens there";
}

uint64_t transport_refused_count(const struct transport *transport)
{
    (void)transport;
    return 0;
}

/* ============================================================================================
 * Connections
 * ========================================================================================== */

/* A star as the port, or as the name, becomes a number that nobody else has. */
enum status transport_bind(struct transport *transport, const char *endpoint,
                           char ret_endpoint[TRANSPORT_ENDPOINT_BYTES])
{
    int size = (int)strcspn(endpoint, "*");
    if (endpoint[size] == '*') {
        snprintf(ret_endpoint, TRANSPORT_ENDPOINT_BYTES, "%.*s%u", size, endpoint,
                 network_new_port(world_network()));
    } else {
        snprintf(ret_endpoint, TRANSPORT_ENDPOINT_BYTES, "%s", endpoint);
    }
    network_listen(world_network(), transport, ret_endpoint);
    return STATUS_OK;
}

enum status transport_bind_given(struct transport *transport, const char *endpoint, int listener)
{
    char bound[TRANSPORT_ENDPOINT_BYTES];
    (void)listener;
    return transport_bind(transport, endpoint, bound);
}

enum status transport_connect(struct transport *transport, const char *endpoint, uint64_t *ret_peer)
{
    *ret_peer = network_connect(world_network(), transport, endpoint);
    return STATUS_OK;
}

enum status transport_reconnect(struct transport *transport, const char *endpoint, uint64_t *peer)
{
    network_disconnect(world_network(), transport, *peer);
    return transport_connect(transport, endpoint, peer);
}

struct departures *transport_note_departures(struct transport *transport)
{
    transport->notes_departures = true;
    return &transport->departures;
}

bool transport_was_closed(struct transport *transport, uint64_t peer)
{
    return transport_has_left(transport, peer);
}

bool transport_has_left(struct transport *transport, uint64_t peer)
{
    bool has_waiting = false;
    for (const struct parcel *at = transport->first; at != NULL; at = at->next) {
        has_waiting = has_waiting || at->peer == peer;
    }
    return !has_waiting && network_has_left(world_network(), transport, peer);
}

bool transport_is_near(const struct transport *transport, uint64_t peer)
{
    (void)transport;
    (void)peer;
    return false;
}

void transport_fit(struct transport *transport, uint64_t peer, uint64_t rate, uint32_t rtt_us)
{
    (void)transport;
    (void)peer;
    (void)rate;
    (void)rtt_us;
}

void transport_fit_answers(struct transport *transport)
{
    (void)transport;
}

void transport_watch(struct transport *transport, int descriptor)
{
    (void)transport;
    (void)descriptor;
}

void transport_describe(char *ret_text, size_t text_size)
{
    snprintf(ret_text, text_size, "simulated");
}

/* ============================================================================================
 * Messages
 * ========================================================================================== */

enum status transport_send(struct transport *transport, uint64_t peer, const void *header,
                           size_t header_size, const struct payload *payload)
{
    union {
        const void *in;
        void *out;
    } cast = {.in = header};
    const struct parcel parcel = {.header = cast.out, .header_size = header_size};
    return network_send(world_network(), transport, peer, &parcel, payload);
}

void transport_wake(struct transport *transport)
{
    transport->is_woken = true;
    world_wake(transport->process, transport, true);
}

/* The two blocks of an envelope, in its frames. */
struct blocks {
    void *header, *payload;
};

static struct blocks blocks_of(const struct envelope *envelope)
{
    struct blocks blocks;
    memcpy(&blocks, envelope->frames, sizeof(blocks));
    return blocks;
}

static void fill(struct envelope *envelope, struct blocks blocks, size_t header_size,
                 size_t payload_size)
{
    memcpy(envelope->frames, &blocks, sizeof(blocks));
    envelope->header = blocks.header;
    envelope->header_size = header_size;
    envelope->payload = blocks.payload;
    envelope->payload_size = payload_size;
    envelope->loan = (struct loan){0};
}

enum status transport_receive(struct transport *transport, int timeout_ms,
                              struct envelope *ret_envelope)
{
    uint64_t until_ns =
        timeout_ms < 0 ? WORLD_NEVER : world_now_ns() + (uint64_t)timeout_ms * UINT64_C(1000000);
    if (world_draw(YIELD_ONE_IN) == 0) {
        world_yield();
    }
    while (transport->first == NULL) {
        if (transport->is_woken) {
            transport->is_woken = false;
            return STATUS_INTERRUPTED;
        }
        if (timeout_ms == 0 || world_now_ns() >= until_ns) {
            return STATUS_TIMED_OUT;
        }
        world_wait(transport, until_ns);
    }
    world_spend(world_costs()->receive_ns + transport->process->receive_ns);
    struct parcel *parcel = take_first(transport);
    ret_envelope->peer = parcel->peer;
    fill(ret_envelope, (struct blocks){parcel->header, parcel->payload}, parcel->header_size,
         parcel->payload_size);
    free(parcel);
    return STATUS_OK;
}

void envelope_release(struct envelope *envelope)
{
    if (envelope->loan.end != NULL) {
        envelope->loan.end(envelope->loan.context, envelope->peer, envelope->loan.ticket);
    }
    const struct blocks blocks = blocks_of(envelope);
    free(blocks.header);
    free(blocks.payload);
    fill(envelope, (struct blocks){NULL, NULL}, 0, 0);
}

void envelope_address(struct envelope *envelope, char ret_address[TRANSPORT_ADDRESS_BYTES])
{
    snprintf(ret_address, TRANSPORT_ADDRESS_BYTES, "peer %llu", (unsigned long long)envelope->peer);
}

void envelope_move(struct envelope *to, struct envelope *from)
{
    *to = *from;
    fill(from, (struct blocks){NULL, NULL}, 0, 0);
}

void envelope_of_header(uint64_t peer, const void *header, size_t size,
                        struct envelope *ret_envelope)
{
    fill(ret_envelope, (struct blocks){NULL, NULL}, 0, 0);
    ret_envelope->peer = peer;
    ret_envelope->header = header;
    ret_envelope->header_size = size;
}

enum status envelope_make_floats(size_t count, struct envelope *ret_envelope, float **ret_values)
{
    float *values = calloc(count > 0 ? count : 1, sizeof(*values));
    if (values == NULL) {
        return STATUS_NO_MEMORY;
    }
    fill(ret_envelope, (struct blocks){NULL, values}, 0, count * sizeof(float));
    ret_envelope->peer = 0;
    *ret_values = values;
    return STATUS_OK;
}
