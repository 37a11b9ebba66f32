/* Measures the path to another worker by sending messages there and back. */
#include "worker/link/probe.h"

#include "common/base/clock.h"

#include <stdlib.h>

// The first message also waits for the connection.
#define SMALL_ROUNDS 6
#define BURST_ROUNDS 4
#define LARGE_ROUNDS 3
#define ROUNDS       (SMALL_ROUNDS + BURST_ROUNDS + LARGE_ROUNDS)

#define BURST        16 // messages
#define LARGE_FLOATS (UINT64_C(256) * 1024)

enum round_kind { ROUND_SMALL, ROUND_BURST, ROUND_LARGE };

static enum round_kind kind_of(uint32_t round)
{
    if (round < SMALL_ROUNDS) {
        return ROUND_SMALL;
    }
    return round < SMALL_ROUNDS + BURST_ROUNDS ? ROUND_BURST : ROUND_LARGE;
}

static enum status send_round(struct probe *probe, struct channel *channel)
{
    enum round_kind kind = kind_of(probe->round);
    const struct wire_probe asked = {.round = probe->round};
    const struct message message = {
        .kind = MESSAGE_PROBE,
        .probe = &asked,
        .span = {0, kind == ROUND_LARGE ? LARGE_FLOATS : 1},
        .values = probe->payload,
    };
    enum status status = STATUS_OK;
    probe->out = kind == ROUND_BURST ? BURST : 1;
    probe->sent_ns = clock_now_ns();
    for (uint32_t i = 0; i < probe->out && status == STATUS_OK; i++) {
        status = channel_send(channel, probe->peer, &message, NULL, NULL);
    }
    return status;
}

enum status probe_begin(struct probe *probe, struct channel *channel, uint64_t peer)
{
    *probe = (struct probe){.is_running = true,
                            .peer = peer,
                            .small_ns = UINT64_MAX,
                            .burst_ns = UINT64_MAX,
                            .large_ns = UINT64_MAX};
    probe->payload = calloc(LARGE_FLOATS, sizeof(float));
    return probe->payload != NULL ? send_round(probe, channel) : STATUS_NO_MEMORY;
}

static enum status answer(struct channel *channel, uint64_t peer, uint32_t round)
{
    const float nothing = 0;
    const struct wire_probe answered = {.round = round, .is_answer = true};
    const struct message message = {
        .kind = MESSAGE_PROBE, .probe = &answered, .span = {0, 1}, .values = &nothing};
    return channel_send(channel, peer, &message, NULL, NULL);
}

enum status probe_take(struct probe *probe, struct channel *channel, uint64_t peer,
                       const struct message *message, bool *ret_is_over)
{
    const struct wire_probe *heard = message->probe;
    *ret_is_over = false;
    if (!heard->is_answer) {
        return answer(channel, peer, heard->round);
    }
    if (!probe->is_running || peer != probe->peer || heard->round != probe->round) {
        return STATUS_MALFORMED;
    }
    if (--probe->out > 0) {
        return STATUS_OK;
    }
    uint64_t took_ns = clock_now_ns() - probe->sent_ns;
    uint64_t *const quickest[] = {[ROUND_SMALL] = &probe->small_ns,
                                  [ROUND_BURST] = &probe->burst_ns,
                                  [ROUND_LARGE] = &probe->large_ns};
    uint64_t *best_ns = quickest[kind_of(probe->round)];
    *best_ns = took_ns < *best_ns ? took_ns : *best_ns;
    if (++probe->round < ROUNDS) {
        return send_round(probe, channel);
    }
    probe->is_running = false;
    *ret_is_over = true;
    return STATUS_OK;
}

/* How much longer than a small message it took; never 0. */
static uint64_t more_than_small(const struct probe *probe, uint64_t ns)
{
    return ns > probe->small_ns ? ns - probe->small_ns : 1;
}

struct all_reduce_path probe_path(const struct probe *probe)
{
    double large_ns = (double)more_than_small(probe, probe->large_ns);
    return (struct all_reduce_path){
        .latency_ns = probe->small_ns / 2 + 1,
        .message_ns = more_than_small(probe, probe->burst_ns) / (BURST - 1) + 1,
        .bandwidth = (uint64_t)((double)(LARGE_FLOATS * sizeof(float)) * 1e9 / large_ns),
    };
}

void probe_finish(struct probe *probe)
{
    free(probe->payload);
    *probe = (struct probe){0};
}
