/* Whether hosts reach each other: an agent listens, others connect to it. Nothing is said. */
#ifndef DEPLOY_AGENT_AGENT_REACH_H
#define DEPLOY_AGENT_AGENT_REACH_H

#include "deploy/agent/agent_children.h"
#include "deploy/agent/agent_message.h"
#include "deploy/system/poll_list.h"

#include <stdint.h>

#define AGENT_CONNECTS_MAX 1024

struct reach_connect {
    uint32_t id;
    int fd;
    uint32_t timeout_ms;
    uint64_t deadline_ms;
};

struct reach {
    struct agent_port port;
    int listener; // -1: none
    struct reach_connect connects[AGENT_CONNECTS_MAX];
    size_t connect_count;
};

/* Answers an AGENT_LISTEN; the listener before it is closed. */
void reach_listen(struct reach *reach, const struct agent_message *command);

/* Begins what an AGENT_CONNECT asks for; answered when it is known. */
void reach_connect(struct reach *reach, const struct agent_message *command, uint64_t now_ms);

void reach_add_polls(const struct reach *reach, struct poll_list *polls);

/* Takes connections and ends them, tells which of ours came about or failed. */
void reach_tell(struct reach *reach, uint64_t now_ms);

/* When reach_tell has something to say at the latest; UINT64_MAX: never. */
uint64_t reach_deadline_ms(const struct reach *reach);

void reach_close(struct reach *reach); // the listener
void reach_finish(struct reach *reach);

#endif
