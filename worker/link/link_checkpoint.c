/* Sends snapshots, and fetches vectors of checkpoints. */
#include "worker/link/link_checkpoint.h"

#include "common/base/log.h"
#include "worker/link/link_state.h"

#include <assert.h>

/* ==========================================================================================
 * The trainer's thread
 * ========================================================================================== */

uint64_t link_begin_step(const struct link *link)
{
    return link->member.begin_step;
}

bool link_is_in_place(const struct link *link)
{
    return link->member.is_in_place;
}

const struct wire_report *link_open_period(const struct link *link)
{
    return &link->member.open_period;
}

void link_open_slice(const struct link *link, uint32_t index, uint64_t *ret_images,
                     double *ret_loss_sum)
{
    assert(index < link->member.open_count);
    *ret_images = link->member.open_images[index];
    *ret_loss_sum = link->member.open_loss_sums[index];
}

enum status link_fetch(struct link *link, const struct fetch *wanted)
{
    struct link_checkpoint *of = &link->checkpoint;
    if (wanted->span.count == 0) {
        return STATUS_OK;
    }
    pthread_mutex_lock(&link->mutex);
    of->fetch = *wanted;
    of->fetch_status = STATUS_OK;
    of->is_fetching = true;
    pthread_mutex_unlock(&link->mutex);
    transport_wake(link->channel->transport);
    pthread_mutex_lock(&link->mutex);
    while (of->is_fetching && link->phase != LINK_ENDED) {
        pthread_cond_wait(&link->changed, &link->mutex);
    }
    enum status status = of->is_fetching ? link->ending : of->fetch_status;
    of->is_fetching = false;
    pthread_mutex_unlock(&link->mutex);
    return status;
}

uint64_t link_announced(struct link *link)
{
    return link->checkpoint.announced;
}

bool link_snapshot_is_gone(struct link *link)
{
    pthread_mutex_lock(&link->mutex);
    bool is_gone = link->checkpoint.snapshot == NULL;
    pthread_mutex_unlock(&link->mutex);
    return is_gone;
}

enum status link_await_snapshot(struct link *link)
{
    pthread_mutex_lock(&link->mutex);
    while (link->checkpoint.snapshot != NULL && link->phase != LINK_ENDED) {
        pthread_cond_wait(&link->changed, &link->mutex);
    }
    enum status status = link->checkpoint.snapshot == NULL ? STATUS_OK : link->ending;
    pthread_mutex_unlock(&link->mutex);
    return status;
}

static void post(struct link *link, struct message *message)
{
    message->rank = link->ranks.first;
    outbox_add(&link->outbox, message);
    transport_wake(link->channel->transport);
}

void link_offer_snapshot(struct link *link, struct snapshot *snapshot, uint64_t steps,
                         const struct wire_report *open_period, const struct wire_slices *slices)
{
    struct message message = {
        .kind = MESSAGE_SNAPSHOT, .step = steps, .report = open_period, .slices = slices};
    pthread_mutex_lock(&link->mutex);
    assert(link->checkpoint.snapshot == NULL);
    snapshot_rewind(snapshot, steps);
    link->checkpoint.snapshot = snapshot;
    pthread_mutex_unlock(&link->mutex);
    post(link, &message);
}

void link_skip_snapshot(struct link *link, uint64_t steps)
{
    struct message message = {
        .kind = MESSAGE_SNAPSHOT, .step = steps, .reason = STATUS_INTERRUPTED};
    post(link, &message);
}

/* ==========================================================================================
 * The communication thread
 * ========================================================================================== */

static void end_fetch(struct link *link, enum status status)
{
    pthread_mutex_lock(&link->mutex);
    link->checkpoint.is_fetching = false;
    link->checkpoint.fetch_status = status;
    pthread_cond_broadcast(&link->changed);
    pthread_mutex_unlock(&link->mutex);
}

static bool is_fetching(struct link *link)
{
    pthread_mutex_lock(&link->mutex);
    bool is = link->checkpoint.is_fetching;
    pthread_mutex_unlock(&link->mutex);
    return is;
}

void link_run_fetch(struct link *link)
{
    struct wire_piece piece;
    struct message message;
    // While it is wanted the fetch belongs to this thread.
    while (is_fetching(link) && fetch_next(&link->checkpoint.fetch, &piece, &message)) {
        message.rank = link->ranks.first;
        if (channel_send(link->channel, link->member.coordinator, &message, NULL, NULL) !=
            STATUS_OK) {
            log_debug("cannot send FETCH: the coordinator is gone");
            break;
        }
    }
}

static void take_piece(struct link *link, const struct message *message)
{
    if (!is_fetching(link)) {
        return;
    }
    enum status status = fetch_take(&link->checkpoint.fetch, message);
    if (status == STATUS_MALFORMED) {
        return; // of a span that nobody waits for any more
    }
    if (status != STATUS_OK || fetch_is_over(&link->checkpoint.fetch)) {
        end_fetch(link, status);
    } else {
        link_run_fetch(link);
    }
}

/* A coordinator begins to collect what went to the one before it: it must not wait for that. */
static void say_gone(struct link *link, uint64_t steps)
{
    const struct message gone = {.kind = MESSAGE_SNAPSHOT,
                                 .rank = link->ranks.first,
                                 .step = steps,
                                 .reason = STATUS_UNREACHABLE};
    if (channel_send(link->channel, link->member.coordinator, &gone, NULL, NULL) != STATUS_OK) {
        log_debug("cannot send SNAPSHOT: the coordinator is gone");
    }
}

static enum status collect(struct link *link, const struct message *message)
{
    // The trainer leaves a snapshot alone while it is here.
    pthread_mutex_lock(&link->mutex);
    struct snapshot *snapshot = link->checkpoint.snapshot;
    pthread_mutex_unlock(&link->mutex);
    if (snapshot == NULL || snapshot->step != message->step) {
        if (message->reason == STATUS_OK && message->collect->credits == SNAPSHOT_CREDITS) {
            say_gone(link, message->step);
        }
        return STATUS_OK;
    }
    struct wire_piece piece;
    struct message next;
    enum status status = STATUS_OK;
    snapshot->credits += message->collect->credits;
    while (message->reason == STATUS_OK && status == STATUS_OK &&
           snapshot_next(snapshot, &piece, &next)) {
        next.rank = link->ranks.first;
        status = channel_send(link->channel, link->member.coordinator, &next, NULL, NULL);
    }
    if (message->reason != STATUS_OK || snapshot->is_over) {
        pthread_mutex_lock(&link->mutex);
        link->checkpoint.snapshot = NULL;
        pthread_cond_broadcast(&link->changed);
        pthread_mutex_unlock(&link->mutex);
    }
    if (status != STATUS_OK) {
        log_debug("cannot send PIECE: the coordinator is gone");
    }
    return STATUS_OK;
}

/* The coordinator asks for a snapshot. Of a phase that is over there will be none, and nobody may
 * wait for it: the others would, in the next one. */
static void take_request(struct link *link, uint64_t steps)
{
    pthread_mutex_lock(&link->mutex);
    uint64_t begin = link->phases.list[link->phase_index].begin;
    pthread_mutex_unlock(&link->mutex);
    if (steps > begin) {
        link->checkpoint.announced = steps;
        return;
    }
    const struct message none = {.kind = MESSAGE_SNAPSHOT,
                                 .rank = link->ranks.first,
                                 .step = steps,
                                 .reason = STATUS_INTERRUPTED};
    if (channel_send(link->channel, link->member.coordinator, &none, NULL, NULL) != STATUS_OK) {
        log_debug("cannot send SNAPSHOT: the coordinator is gone");
    }
}

enum status link_handle_checkpoint(struct link *link, const struct message *message)
{
    if (message->kind == MESSAGE_SNAPSHOT) {
        take_request(link, message->step);
    } else if (message->kind == MESSAGE_PIECE) {
        take_piece(link, message);
    } else if (message->kind == MESSAGE_COLLECT) {
        return collect(link, message);
    }
    return STATUS_OK;
}
