/* Sends TRY, START and GO: members connect to each other, then training begins. */
#include "ps-server/coordinator/coordinator_states.h"

static void send(const struct coordinator *coordinator, uint64_t peer,
                 const struct message *message)
{
    coordinator->port.send(coordinator->port.context, peer, message);
}

/* To each worker, with the places that it needs. */
static void send_places(struct coordinator *coordinator, struct message *message)
{
    static char text[TOPOLOGY_TEXT_BYTES];
    const struct membership *membership = &coordinator->membership;
    message->text = text;
    for (uint32_t i = 0; i < membership->worker_count; i++) {
        topology_places(coordinator->job, membership, coordinator->topology.all_reduce, i, text,
                        sizeof(text));
        message->rank = i;
        send(coordinator, membership->workers[i].peer, message);
    }
}

void connecting_try(struct coordinator *coordinator, uint64_t now_ms)
{
    coordinator->state = COORDINATOR_CONNECTING;
    coordinator->arrived_ms = now_ms;
    struct message trial = {.kind = MESSAGE_TRY, .all_reduce = coordinator->topology.all_reduce};
    send_places(coordinator, &trial);
}

/* How large the buckets of the phase are. */
static uint64_t begin_tuning(struct coordinator *coordinator)
{
    uint32_t phase = coordinator->phase_index;
    char text[COORDINATOR_REASON_BYTES];
    if (phase == 0) {
        bool is_shared = coordinator->topology.all_reduce == ALL_REDUCE_SHARED;
        tuning_init(coordinator->job, coordinator->train_samples, is_shared, &coordinator->tuning);
    }
    uint64_t bucket_bytes = tuning_begin_phase(&coordinator->tuning, phase);
    if (tuning_describe_news(&coordinator->tuning, phase, text, sizeof(text))) {
        coordinator->port.log(coordinator->port.context, false, text);
    }
    return bucket_bytes;
}

void connecting_start(struct coordinator *coordinator, uint64_t now_ms)
{
    struct membership *membership = &coordinator->membership;
    coordinator->state = COORDINATOR_CONNECTING;
    coordinator->arrived_ms = now_ms;
    uint64_t bucket_bytes = begin_tuning(coordinator);
    layout_merge(&coordinator->layout, bucket_bytes, &coordinator->phase_layout);
    // `step` carries the training samples: schedules follow from them.
    struct message start = {.kind = MESSAGE_START,
                            .step = coordinator->train_samples,
                            .phase = coordinator->phase_index,
                            .all_reduce = coordinator->topology.all_reduce,
                            .limits = coordinator->topology.limits,
                            .bucket_bytes = bucket_bytes,
                            .layout = &coordinator->phase_layout,
                            .text = ""};
    for (uint32_t i = 0; i < membership->server_count; i++) {
        send(coordinator, membership->servers[i].peer, &start);
    }
    for (uint32_t i = 0; i < membership->worker_count; i++) {
        membership->workers[i].state = SLOT_READY;
    }
    send_places(coordinator, &start);
}

void connecting_go(struct coordinator *coordinator, uint64_t now_ms)
{
    struct membership *membership = &coordinator->membership;
    coordinator->state = COORDINATOR_TRAINING;
    coordinator->stall_warned_ms = now_ms;
    for (uint32_t i = 0; i < membership->worker_count; i++) {
        membership->workers[i].step_since_ms = now_ms;
    }
    if (coordinator->phase_index == 0) {
        coordinator->started_ms = now_ms;
        coordinator->port.started(coordinator->port.context);
    } else {
        coordinator->port.switched(coordinator->port.context);
    }
    const struct message go = {.kind = MESSAGE_GO};
    for (uint32_t i = 0; i < membership->worker_count; i++) {
        send(coordinator, membership->workers[i].peer, &go);
    }
    for (uint32_t i = 0; i < membership->server_count; i++) {
        send(coordinator, membership->servers[i].peer, &go);
    }
}
