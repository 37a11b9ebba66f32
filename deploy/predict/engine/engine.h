/* Messages between processes, in virtual time, and what their threads do.
 *
 * A process has one thread that sends and receives messages, one after the other. It takes those
 * that have arrived in their order. What it sends, it sends before it takes the next. Between two
 * processes there is one connection each way. It carries one message at a time: the next is the
 * waiting one of the highest bucket, as common/channel/pacer.h has it. Connections that carry
 * something are flows, which share links (flows.h).
 *
 * Threads of hosts that have a number of cores share these (cores.h). There, a message has also to
 * be carried by a thread at each of its ends, beside its way: it has come when all that is done. */
#ifndef DEPLOY_PREDICT_ENGINE_ENGINE_H
#define DEPLOY_PREDICT_ENGINE_ENGINE_H

#include "common/base/status.h"
#include "deploy/predict/basis/network.h"
#include "deploy/predict/engine/cores.h"

#include <stdbool.h>
#include <stdint.h>

struct engine;

struct packet {
    uint32_t from, to; // processes
    double bytes;
    double counted_bytes; // of them on links; 0: all of them
    double each; // messages that it stands for, on connections of their own; 0: itself alone
    uint64_t step;
    uint32_t kind, bucket, chunk, segment, hop;
    bool is_lent;              // its values stay where they are: no link carries them
    bool is_copied;            // by its receiver: nobody else moves its values
    bool is_paced;             // links let none of it pass at once
    bool is_in_turn;           // small: it comes behind what its connection holds
    uint32_t next, connection; // for the engine, as the others below
    uint32_t awaited;          // its way, and those that carry it
    bool is_moved;
    double ready_s, arrived_s;
    uint64_t order;
};

static inline double packet_each(const struct packet *packet)
{
    return packet->each > 0 ? packet->each : 1;
}

struct engine_model {
    /* How long the receiver's thread works on a packet, besides taking it. Asked once, when the
     * thread begins; the packet is delivered when it has done that. */
    double (*work_s)(void *owner, const struct packet *packet);
    void (*deliver)(void *owner, const struct packet *packet);
    void (*wake)(void *owner, uint32_t process, uint32_t tag);
    void *owner;
    double message_s, message_byte_s; // of each message, at both of its ends
    const double *message_scale;      // (threads) how many times that; borrowed
    const double *work_scale;         // likewise of work_s, and of carriage
    uint32_t threads; // of the first processes; those behind them have the same again
    struct cores_share cores;
    double carriage_message_s, carriage_byte_s; // where cores are limited
    // What connections between hosts hold, by the rate of their path, 0: none, and its round trip.
    // NULL: as the network has it.
    double (*fit_buffer)(double rate, double rtt_s);
    bool encrypts_near, encrypts_far; // a packet whole as its turn comes: within hosts, between
};

/* hosts: of each process; borrowed, as the network is. */
enum status engine_create(const struct network *network, const uint32_t *hosts,
                          const struct engine_model *model, struct engine **ret_engine);
void engine_destroy(struct engine *engine);

double engine_now(const struct engine *engine);
void engine_send(struct engine *engine, const struct packet *packet);

/* Delivers a packet that is so small that it takes latency alone, and, where cores are shared, what
 * a message takes of them. One that is in turn waits for what was sent before over its connection,
 * as far as that has left the queues in which messages overtake each other. */
void engine_send_small(struct engine *engine, const struct packet *packet);

/* Moves values by the threads that compute: the packet is delivered when the links have carried
 * them, without latency, and no thread for messages has a part in it. */
void engine_move(struct engine *engine, const struct packet *packet);

/* Calls wake. */
void engine_wake_after(struct engine *engine, double seconds, uint32_t process, uint32_t tag);

/* Whether the threads of a process share cores. */
bool engine_shares_cores(const struct engine *engine, uint32_t process);

/* Calls wake when a thread of a process has done so much work, behind what it has to do. */
void engine_run(struct engine *engine, enum cores_thread thread, double seconds, uint32_t process,
                uint32_t tag);

/* Keeps the thread of a process that has messages busy. */
void engine_occupy(struct engine *engine, uint32_t process, double seconds);

/* Handles the next event. STATUS_END_OF_DATA: there is none. STATUS_NO_MEMORY: nor room. */
enum status engine_step(struct engine *engine);

/* Memory of what grows while messages are on their way, as far as it is used. */
double engine_bytes(const struct engine *engine);

/* What went over each link of the network. */
void engine_link_bytes(const struct engine *engine, double *ret_bytes);

/* How long the thread of a process was busy, how long packets have waited for it, together, and how
 * many it has taken. */
struct engine_usage {
    double busy_s, waited_s;
    uint64_t taken;
};
struct engine_usage engine_usage(const struct engine *engine, uint32_t process);

#endif
