/* Maps the regions of peers, and keeps the loans that peers have of this side's region. */
#include "common/channel/sharing.h"

#include <assert.h>
#include <stdlib.h>

// The most loans of one peer: a bound on the table, far above what the protocols need.
#define LOANS_MAX 65536

void sharing_return_all(struct sharing *sharing)
{
    for (uint32_t i = 0; i < sharing->loan_count; i++) {
        if (sharing->loans[i].is_out) {
            sharing->loans[i].is_out = false;
            sharing->loans[i].payload.release(sharing->loans[i].payload.hint);
        }
    }
    sharing->own = NULL;
}

void sharing_finish(struct sharing *sharing)
{
    free(sharing->loans);
    *sharing = (struct sharing){0};
}

void sharing_forget(struct sharing_peer *peer)
{
    if (peer->device != NULL && peer->view.bytes != NULL) {
        peer->device->ops->unmap(peer->device, peer->view.bytes);
        peer->view = (struct region_view){0};
    }
    region_close(&peer->view);
}

/* Both sides share memory of devices, or neither does. */
static enum status map_device(const struct sharing_device *device, struct sharing_peer *peer,
                              const struct wire_offer *offer)
{
    void *memory;
    enum status status =
        device->vectors->ops->map(device->vectors, offer->share, offer->region.size, &memory);
    if (status == STATUS_OK) {
        peer->device = device->vectors;
        peer->view = (struct region_view){.bytes = memory, .size = offer->region.size};
    }
    return status;
}

enum status sharing_map(const struct sharing *sharing, struct sharing_peer *peer,
                        const struct wire_offer *offer)
{
    if (sharing->own == NULL || (sharing->device != NULL) != offer->has_share) {
        return STATUS_UNSUPPORTED;
    }
    // A peer has only one region, because what was lent from it may still be read.
    if (peer->view.bytes != NULL) {
        return STATUS_MALFORMED;
    }
    return sharing->device != NULL ? map_device(sharing->device, peer, offer)
                                   : region_open(&offer->region, REGION_READ, &peer->view);
}

bool sharing_begin_offer(const struct sharing *sharing, struct sharing_peer *peer)
{
    if (sharing->own == NULL || peer->was_offered) {
        return false;
    }
    peer->was_offered = true;
    return true;
}

enum status sharing_note_answer(struct sharing *sharing, struct sharing_peer *peer,
                                enum status answer)
{
    if (sharing->own == NULL || !peer->was_offered) {
        return STATUS_MALFORMED;
    }
    if (answer != STATUS_OK) {
        sharing->refusal = answer;
        return STATUS_OK;
    }
    peer->may_borrow = true;
    return STATUS_OK;
}

/* Finds a free ticket. Returns false if too many are in use. */
static bool take_ticket(struct sharing *sharing, uint32_t *ret_ticket)
{
    uint32_t ticket = 0;
    while (ticket < sharing->loan_count && sharing->loans[ticket].is_out) {
        ticket++;
    }
    if (ticket == sharing->loan_count) {
        uint32_t count = sharing->loan_count == 0 ? 64 : 2 * sharing->loan_count;
        struct sharing_loan *loans =
            count <= LOANS_MAX ? realloc(sharing->loans, count * sizeof(*loans)) : NULL;
        if (loans == NULL) {
            return false;
        }
        for (uint32_t i = sharing->loan_count; i < count; i++) {
            loans[i] = (struct sharing_loan){0};
        }
        sharing->loans = loans;
        sharing->loan_count = count;
    }
    *ret_ticket = ticket;
    return true;
}

bool sharing_lend(struct sharing *sharing, const struct sharing_peer *peer,
                  const struct payload *payload, struct wire_loan *ret_loan)
{
    if (!peer->may_borrow) {
        return false;
    }
    // Compares numbers, because the bytes may lie in another object.
    uintptr_t start = (uintptr_t)sharing->own->bytes, at = (uintptr_t)payload->bytes;
    if (at < start || at - start > sharing->own->key.size ||
        payload->size > sharing->own->key.size - (at - start)) {
        return false;
    }
    ret_loan->offset = at - start;
    ret_loan->ticket = WIRE_NO_TICKET;
    if (payload->release == payload_keep) {
        return true;
    }
    if (!take_ticket(sharing, &ret_loan->ticket)) {
        return false;
    }
    sharing->loans[ret_loan->ticket] =
        (struct sharing_loan){.is_out = true, .peer = peer, .payload = *payload};
    return true;
}

void sharing_cancel_loan(struct sharing *sharing, uint32_t ticket)
{
    if (ticket == WIRE_NO_TICKET) {
        return;
    }
    assert(ticket < sharing->loan_count && sharing->loans[ticket].is_out);
    sharing->loans[ticket] = (struct sharing_loan){0};
}

enum status sharing_end_loan(struct sharing *sharing, const struct sharing_peer *peer,
                             uint32_t ticket)
{
    if (ticket >= sharing->loan_count || !sharing->loans[ticket].is_out ||
        sharing->loans[ticket].peer != peer) {
        return STATUS_MALFORMED;
    }
    struct sharing_loan loan = sharing->loans[ticket];
    sharing->loans[ticket] = (struct sharing_loan){0};
    loan.payload.release(loan.payload.hint);
    return STATUS_OK;
}

enum status sharing_find(const struct sharing_peer *peer, const struct wire_loan *loan, size_t size,
                         const float **ret_values)
{
    if (peer->view.bytes == NULL || loan->offset % sizeof(float) != 0 ||
        loan->offset > peer->view.size || size > peer->view.size - loan->offset) {
        return STATUS_MALFORMED;
    }
    *ret_values = (const float *)(const void *)(peer->view.bytes + loan->offset);
    return STATUS_OK;
}
