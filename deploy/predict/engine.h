/* Messages between processes, in virtual time.
 *
 * A process has one thread that sends and receives messages, one after the other. Between two
 * processes there is one connection each way. It carries one message at a time: the next is the
 * waiting one of the highest bucket, as common/channel/pacer.h has it. Connections that carry
 * something are flows. They share links fairly, by progressive filling: the rates of all rise alike
 * until a link is full, whose flows keep that rate, and so on (max-min fairness; Bertsekas and
 * Gallager 1992). When a flow begins or ends, only rates of those change that it shares a link
 * with, directly or by way of others. */
#ifndef DEPLOY_PREDICT_ENGINE_H
#define DEPLOY_PREDICT_ENGINE_H

#include "common/base/status.h"
#include "deploy/predict/network.h"

#include <stdbool.h>
#include <stdint.h>

struct engine;

struct packet {
    uint32_t from, to; // processes
    double bytes;
    uint64_t step;
    uint32_t kind, bucket, chunk, segment, hop;
    uint32_t next; // for the engine
};

struct engine_model {
    /* How long the receiver's thread works on a packet, besides taking it. */
    double (*work_s)(void *owner, const struct packet *packet);
    void (*deliver)(void *owner, const struct packet *packet);
    void (*wake)(void *owner, uint32_t process, uint32_t tag);
    void *owner;
};

/* hosts: of each process; borrowed, as the network is. message_s: of sender and of receiver. */
enum status engine_create(const struct network *network, const uint32_t *hosts,
                          uint32_t process_count, double message_s,
                          const struct engine_model *model, struct engine **ret_engine);
void engine_destroy(struct engine *engine);

double engine_now(const struct engine *engine);
void engine_send(struct engine *engine, const struct packet *packet);

/* Delivers a packet that is so small that it takes latency alone. */
void engine_send_small(struct engine *engine, const struct packet *packet);

/* Calls wake. */
void engine_wake_after(struct engine *engine, double seconds, uint32_t process, uint32_t tag);

/* Keeps the thread of a process busy. */
void engine_occupy(struct engine *engine, uint32_t process, double seconds);

/* Handles the next event. STATUS_END_OF_DATA: there is none. STATUS_NO_MEMORY: nor room. */
enum status engine_step(struct engine *engine);

/* What went over a link, and how long the thread of a process was busy. */
double engine_link_bytes(const struct engine *engine, uint32_t link);
double engine_busy_s(const struct engine *engine, uint32_t process);

#endif
