/* Waits for sockets and for posted messages. */
#include "common/channel/arrivals.h"

#include "common/base/clock.h"

#include <sched.h>

// While messages are posted without a pause, sockets are checked after this many of them.
#define MAIL_TURNS 64

// How long a wait lets others run before it sleeps: waking takes as long.
#define YIELD_NS 50000

/* Takes a posted message, if it is that message's turn. */
static bool take_mail(struct channel *channel, struct envelope *envelope)
{
    struct mail_taken taken;
    if (channel->is_holding) {
        struct peer *peer = peers_find(&channel->peers, channel->held.peer);
        if (peer != NULL && mail_take_of(&channel->mail, &peer->mail, &taken)) {
            envelope_of_header(taken.peer, taken.header, taken.size, envelope);
            return true;
        }
        if (peer != NULL) {
            mail_note_received(&peer->mail);
        }
        envelope_move(envelope, &channel->held);
        channel->is_holding = false;
        return true;
    }
    if (channel->mail_turns >= MAIL_TURNS || !mail_take(&channel->mail, &taken)) {
        channel->mail_turns = 0;
        return false;
    }
    channel->mail_turns++;
    envelope_of_header(taken.peer, taken.header, taken.size, envelope);
    return true;
}

/* Polls sockets and queues for a while, and lets others run in between. */
static enum status yield_for_any(struct channel *channel, struct envelope *envelope)
{
    uint64_t start_ns = clock_now_ns();
    enum status status;
    do {
        sched_yield();
        status = transport_receive(channel->transport, 0, envelope);
        if (status == STATUS_TIMED_OUT && mail_is_due(&channel->mail)) {
            status = STATUS_INTERRUPTED;
        }
    } while (status == STATUS_TIMED_OUT && clock_now_ns() - start_ns < YIELD_NS);
    return status;
}

/* Waits for a message on a socket, or for a posted one. */
static enum status wait_for_any(struct channel *channel, int timeout_ms, struct envelope *envelope)
{
    bool has_mail = channel->mail.peer_count > 0;
    bool may_yield = has_mail && timeout_ms != 0 && !channel->is_far;
    enum status status = may_yield ? yield_for_any(channel, envelope) : STATUS_TIMED_OUT;
    if (status == STATUS_TIMED_OUT && has_mail && timeout_ms != 0 && !mail_sleep(&channel->mail)) {
        return STATUS_INTERRUPTED;
    }
    if (status == STATUS_TIMED_OUT) {
        status = transport_receive(channel->transport, timeout_ms, envelope);
    }
    mail_wake(&channel->mail);
    if (status == STATUS_INTERRUPTED) {
        mail_silence(&channel->mail);
    }
    return status;
}

enum status arrivals_next(struct channel *channel, int timeout_ms, struct envelope *envelope)
{
    if (take_mail(channel, envelope)) {
        return STATUS_OK;
    }
    enum status status = wait_for_any(channel, timeout_ms, envelope);
    if (status == STATUS_OK) {
        envelope_move(&channel->held, envelope);
        channel->is_holding = true;
    }
    bool may_go_on =
        status == STATUS_OK || status == STATUS_INTERRUPTED || status == STATUS_TIMED_OUT;
    return may_go_on && take_mail(channel, envelope) ? STATUS_OK : status;
}
