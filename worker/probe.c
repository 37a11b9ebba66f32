/* Messages there and back. */
#include "worker/probe.h"

#include "common/clock.h"

#include <stdlib.h>

// The first message also waits for the connection.
#define SMALL_ROUNDS 6
#define LARGE_ROUNDS 3
#define LARGE_FLOATS (UINT64_C(256) * 1024)

enum { IS_ASKED = 0, IS_ANSWER = 1 }; // as hop

static enum status send_round(struct probe *probe, struct channel *channel)
{
    bool is_small = probe->round < SMALL_ROUNDS;
    const struct message message = {
        .kind = MESSAGE_PROBE,
        .step = probe->round,
        .hop = IS_ASKED,
        .span = {0, is_small ? 1 : LARGE_FLOATS},
        .values = probe->payload,
    };
    probe->sent_ns = clock_now_ns();
    return channel_send(channel, probe->peer, &message, NULL, NULL);
}

enum status probe_begin(struct probe *probe, struct channel *channel, uint64_t peer)
{
    *probe = (struct probe){
        .is_running = true, .peer = peer, .small_ns = UINT64_MAX, .large_ns = UINT64_MAX};
    probe->payload = calloc(LARGE_FLOATS, sizeof(float));
    return probe->payload != NULL ? send_round(probe, channel) : STATUS_NO_MEMORY;
}

static enum status answer(struct channel *channel, uint64_t peer, const struct message *asked)
{
    const float nothing = 0;
    const struct message message = {.kind = MESSAGE_PROBE,
                                    .step = asked->step,
                                    .hop = IS_ANSWER,
                                    .span = {0, 1},
                                    .values = &nothing};
    return channel_send(channel, peer, &message, NULL, NULL);
}

enum status probe_take(struct probe *probe, struct channel *channel, uint64_t peer,
                       const struct message *message, bool *ret_is_over)
{
    *ret_is_over = false;
    if (message->hop == IS_ASKED) {
        return answer(channel, peer, message);
    }
    if (!probe->is_running || peer != probe->peer || message->step != probe->round) {
        return STATUS_MALFORMED;
    }
    uint64_t took_ns = clock_now_ns() - probe->sent_ns;
    uint64_t *best_ns = probe->round < SMALL_ROUNDS ? &probe->small_ns : &probe->large_ns;
    *best_ns = took_ns < *best_ns ? took_ns : *best_ns;
    if (++probe->round < SMALL_ROUNDS + LARGE_ROUNDS) {
        return send_round(probe, channel);
    }
    probe->is_running = false;
    *ret_is_over = true;
    return STATUS_OK;
}

uint64_t probe_latency_ns(const struct probe *probe)
{
    return probe->small_ns / 2 + 1;
}

uint64_t probe_bandwidth(const struct probe *probe)
{
    uint64_t more_ns = probe->large_ns > probe->small_ns ? probe->large_ns - probe->small_ns : 1;
    return (uint64_t)((double)(LARGE_FLOATS * sizeof(float)) * 1e9 / (double)more_ns);
}

void probe_finish(struct probe *probe)
{
    free(probe->payload);
    *probe = (struct probe){0};
}
