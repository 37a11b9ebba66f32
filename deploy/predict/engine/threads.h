/* The threads of an engine that have messages, and what work they and others are given. */
#ifndef DEPLOY_PREDICT_ENGINE_THREADS_H
#define DEPLOY_PREDICT_ENGINE_THREADS_H

#include "deploy/predict/engine/packets.h"

#include <stdbool.h>
#include <stdint.h>

enum work_kind {
    WORK_OWN,    // what the thread was occupied with
    WORK_SEND,   // a packet is ready
    WORK_HANDLE, // it has taken a packet
    WORK_CARRY,  // a packet has been carried at one end
    WORK_RUN,    // of engine_run; its token is the tag
};

struct thread {                           // of a process
    double busy_until;                    // with what it was given so far
    double busy;                          // altogether
    double waited;                        // by packets that had arrived, altogether
    uint64_t taken;                       // packets
    struct packet_queue waiting, sending; // that have come, and that it sends
    bool is_taking;                       // or will, once it is free
};

/* How long a thread is busy with one end of a message, and with the values that travel in it. */
static inline double threads_message_s(const struct engine_model *model, uint32_t thread,
                                       const struct packet *packet, bool is_sender)
{
    double bytes = packet->is_lent || (packet->is_copied && is_sender) ? 0 : packet->bytes;
    return model->message_scale[thread] * packet_each(packet) *
           (model->message_s + bytes * model->message_byte_s);
}

#endif
