/* The processes of an agent: starts them, reports their output in lines, and their ends. */
#ifndef DEPLOY_AGENT_AGENT_CHILDREN_H
#define DEPLOY_AGENT_AGENT_CHILDREN_H

#include "common/base/status.h"
#include "common/transport/private_socket.h"
#include "deploy/agent/agent_message.h"
#include "deploy/system/line_stream.h"
#include "deploy/system/poll_list.h"
#include "deploy/system/process.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define AGENT_CHILDREN_MAX 8192

enum { CHILD_OUTPUT, CHILD_ERROR, CHILD_ANNOUNCE, CHILD_STREAMS };

struct child {
    uint32_t id;
    struct process process;
    int told_fd;                               // our end of its --launcher-fd pipe; -1: none
    struct line_reader streams[CHILD_STREAMS]; // each owns its descriptor; bytes == NULL: closed
};

/* How messages leave. */
struct agent_port {
    void *context;
    void (*say)(void *context, const struct agent_message *message);
};

/* Where a process listens, as long as another one with its id may be started in its place. */
struct listening {
    bool is_open;
    uint32_t id;
    struct private_socket socket;
};

struct children {
    struct agent_port port;
    int terminal_fd;            // of those that have the terminal; -1: there is none
    struct listening listening; // the last that was asked for
    struct child **list;        // owned; those that run
    size_t count, size;
};

/* Starts what an AGENT_START asks for, and says so. What cannot be started has exited, with 127. */
void children_start(struct children *children, const struct agent_message *command);

void children_signal(struct children *children, uint32_t id, int signal_number);

/* Adds what there is to wait for. */
void children_add_polls(const struct children *children, struct poll_list *polls);

/* Tells what they have written, and who has ended. Does not wait. */
void children_tell(struct children *children);

/* Writes a line to the --launcher-fd of a process that has one. */
void children_hear(struct children *children, uint32_t id, const char *line);

/* Ends them all, with all that they have started, and waits for that. Those with a --launcher-fd
 * get this line, and a moment to end by themselves; then all are killed. */
void children_end(struct children *children, const char *line);

#endif
