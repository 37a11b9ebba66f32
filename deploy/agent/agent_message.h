/* What the launcher and its agents say to each other: JSON objects, one a line. Pure.
 *
 * An agent runs on each host of a job, behind `ssh HOST ringside agent` (or a socket, on this
 * host). The launcher's lines are commands, the agent's are what came of them:
 *
 *     {"is": "start", "id": 3, "argv": ["/usr/libexec/ringside/worker", "--rank", "2"]}
 *     {"is": "started", "id": 3, "pid": 4711}
 *     {"is": "output", "id": 3, "stream": "error", "text": "2026-11-20T21:04:11.123Z warn ..."}
 *     {"is": "exited", "id": 3, "status": 0}
 *
 * The table in agent_message.c says which fields each kind has. Fields that nobody knows are
 * ignored; those that are missing, or of another type or size, make the line malformed. */
#ifndef DEPLOY_AGENT_AGENT_MESSAGE_H
#define DEPLOY_AGENT_AGENT_MESSAGE_H

#include "common/base/status.h"

#include <jansson.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define AGENT_PROTOCOL 2                   // raised by every change that breaks the other side
#define AGENT_LINE_MAX ((size_t)256 << 10) // bytes of a line, without its end
#define AGENT_LIST_MAX 160                 // texts of a list

enum agent_kind {
    // What the launcher says.
    AGENT_START,   // run a program; started, output ..., exited are of it
    AGENT_TELL,    // write a line to the --launcher-fd of a process
    AGENT_SIGNAL,  // to a process; SIGKILL to all that it has started, too
    AGENT_PING,    // a sign of life, answered by pong
    AGENT_ROUTE,   // answered by routed: the host's own address on the way to `address`
    AGENT_LISTEN,  // on `address`, at a free port of `ports`, until `close`; answered by listening
    AGENT_CONNECT, // to `address`, at `port`; answered by connected
    AGENT_CLOSE,   // what listen opened
    AGENT_FOLDER,  // make an empty folder that lives as long as the agent; answered by folder
    AGENT_FETCH,   // send what is in that folder: file ..., then fetched
    // What the agent says.
    AGENT_HELLO, // first: who it is, and what its host has
    AGENT_STARTED,
    AGENT_OUTPUT,
    AGENT_EXITED,  // after its last output
    AGENT_STOPPED, // by a signal; by 0: it goes on
    AGENT_PONG,
    AGENT_ROUTED,
    AGENT_LISTENING,
    AGENT_CONNECTED,
    AGENT_MADE,
    AGENT_FILE, // the next piece of a file; the first one has offset 0
    AGENT_FETCHED,
    AGENT_REFUSED, // a command that it could not read

    AGENT_KIND_COUNT
};

/* Texts are borrowed from the tree, or from whoever encodes. Fields that a kind does not have are
 * zero. */
struct agent_message {
    enum agent_kind kind;
    uint32_t id; // of a process, or of a question; the launcher chooses it
    uint32_t pid, signal, port, timeout_ms, protocol, cores;
    uint32_t status;            // as waitpid gives it
    uint64_t time_us;           // of whoever asks, in any unit of time: comes back in pong
    uint64_t clock_us;          // of the host, since 1970
    uint64_t offset;            // of a piece of a file
    bool announces;             // start: it gets --announce-fd; what it writes there is output
    bool listens;               // start: it gets --listen-fd and --listen-at; the same for an id
    bool is_told;               // start: it gets --launcher-fd; what tell says comes out there
    bool has_terminal;          // start: its standard output is the launcher's
    const char *text;           // of output; or what went wrong, "" if nothing did
    const char *stream;         // of output: "output", "error", "announce"
    const char *address, *own;  // IPv4
    const char *peer;           // hello: where ssh came from, "" if there was none
    const char *ports;          // "*" or "A-B"
    const char *path;           // of a folder, or of a file in it
    const char *data;           // of a file, in base64
    const char *input;          // start: all of its standard input; NULL: none
    const char *log;            // start: file for what it writes, in the place of output; or NULL
    const char *directory;      // start: to run in, if it is there; or NULL
    const char *version, *host; // hello
    const char *host_id;        // hello: equal for agents that share a network namespace, in hex
    const char *ps, *worker;    // hello: paths; "" if they are not there
    const char *argv[AGENT_LIST_MAX + 1];        // start; ends with NULL
    const char *environment[AGENT_LIST_MAX + 1]; // start: NAME=VALUE; ends with NULL
    const char *interfaces[AGENT_LIST_MAX + 1];  // hello: name, address, name, ...; ends with NULL
    json_t *tree;                                // owned by who has decoded it
};

const char *agent_kind_name(enum agent_kind kind);

/* The line without its end, for agent_message_free_line. In a text that is no UTF-8, bytes beyond
 * ASCII become question marks. NULL: there is no memory, or the line would be longer than
 * AGENT_LINE_MAX.
 */
char *agent_message_encode(const struct agent_message *message);

/* Wipes it, too: it may hold keys. NULL is fine. */
void agent_message_free_line(char *line);

/* STATUS_MALFORMED with a sentence on what is wrong. */
enum status agent_message_decode(const char *line, struct agent_message *ret_message,
                                 char *ret_error, size_t error_size);
void agent_message_finish(struct agent_message *message);

/* From here on the JSON library wipes what it gives back. Once, before there are threads. */
void agent_message_wipe_memory(void);

#endif
