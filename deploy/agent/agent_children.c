/* Starts and ends an agent's processes, and passes on their output. */
#include "deploy/agent/agent_children.h"

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/security/security.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define OUTPUT_LINE_MAX  4096 // longer ones are told in pieces
#define EXIT_NOT_STARTED (127 << 8)

// How long a coordinator is given to write down how its job has ended.
#define END_MS  3000
#define POLL_MS 5

static const char *const stream_names[CHILD_STREAMS] = {"output", "error", "announce"};

static void close_stream(struct line_reader *stream)
{
    if (stream->bytes != NULL) {
        close(stream->fd);
        line_reader_finish(stream);
    }
}

static void close_told(struct child *child)
{
    if (child->told_fd >= 0) {
        close(child->told_fd);
        child->told_fd = -1;
    }
}

static void child_destroy(struct child *child)
{
    close_told(child);
    for (size_t i = 0; i < CHILD_STREAMS; i++) {
        close_stream(&child->streams[i]);
    }
    free(child);
}

/* A pipe whose read end is the stream; its write end, or -1. */
static int open_stream(struct line_reader *stream)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) {
        return -1;
    }
    if (line_reader_init(stream, ends[0], OUTPUT_LINE_MAX) != STATUS_OK) {
        close(ends[0]);
        close(ends[1]);
        return -1;
    }
    return ends[1];
}

static void close_all(const int fds[CHILD_STREAMS])
{
    for (size_t i = 0; i < CHILD_STREAMS; i++) {
        if (fds[i] > 0) {
            close(fds[i]);
        }
    }
}

/* The pipes that this child needs; 0 for those that it does not. */
static enum status open_streams(struct child *child, const struct agent_message *command,
                                bool has_terminal, int ret_fds[CHILD_STREAMS])
{
    const bool is_wanted[CHILD_STREAMS] = {
        [CHILD_OUTPUT] = command->log == NULL && !has_terminal,
        [CHILD_ERROR] = command->log == NULL,
        [CHILD_ANNOUNCE] = command->announces,
    };
    for (size_t i = 0; i < CHILD_STREAMS; i++) {
        ret_fds[i] = 0;
    }
    for (size_t i = 0; i < CHILD_STREAMS; i++) {
        if (is_wanted[i] && (ret_fds[i] = open_stream(&child->streams[i])) < 0) {
            log_error("cannot make a pipe: %m");
            close_all(ret_fds);
            return STATUS_IO;
        }
    }
    return STATUS_OK;
}

/* Opens the pipe of --launcher-fd. Returns the child's end; -1 if there is none. */
static int open_told(struct child *child, const struct agent_message *command)
{
    int ends[2];
    if (!command->is_told) {
        return -1;
    }
    // The child may hang, and the agent must not wait for it.
    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) {
        log_warn("process %u cannot be told why others end: there is no pipe: %m", command->id);
        return -1;
    }
    child->told_fd = ends[1];
    return ends[0];
}

static void close_listening(struct listening *listening)
{
    if (listening->is_open && listening->socket.listener >= 0) {
        close(listening->socket.listener);
    }
    if (listening->is_open && listening->socket.file >= 0) {
        close(listening->socket.file);
    }
    listening->is_open = false;
}

/* Opens the place where the process listens. One that is started again under its id has the same:
 * its connections find it. */
static const struct private_socket *open_listening(struct listening *listening, uint32_t id)
{
    if (!listening->is_open || listening->id != id) {
        close_listening(listening);
        private_socket_open(&listening->socket);
        listening->is_open = true;
        listening->id = id;
    }
    return &listening->socket;
}

static enum status run(struct children *children, struct child *child,
                       const struct agent_message *command)
{
    const char *argv[AGENT_LIST_MAX + 5];
    char announce[32], told[32], listen_fd[32], name[PROCESS_NAME_MAX];
    char listen_at[16 + PRIVATE_SOCKET_ENDPOINT_BYTES];
    int fds[CHILD_STREAMS], extra_fds[3];
    size_t count = 0, extra_count = 0;
    bool has_terminal = command->has_terminal && children->terminal_fd >= 0;
    enum status status = open_streams(child, command, has_terminal, fds);
    if (status != STATUS_OK) {
        return status;
    }
    for (; command->argv[count] != NULL; count++) {
        argv[count] = command->argv[count];
    }
    if (command->announces) {
        snprintf(announce, sizeof(announce), "--announce-fd=%d", fds[CHILD_ANNOUNCE]);
        argv[count++] = announce;
        extra_fds[extra_count++] = fds[CHILD_ANNOUNCE];
    }
    int told_fd = open_told(child, command);
    if (told_fd >= 0) {
        snprintf(told, sizeof(told), "--launcher-fd=%d", told_fd);
        argv[count++] = told;
        extra_fds[extra_count++] = told_fd;
    }
    if (command->listens) {
        const struct private_socket *at = open_listening(&children->listening, command->id);
        snprintf(listen_at, sizeof(listen_at), "--listen-at=%s", at->endpoint);
        argv[count++] = listen_at;
        if (at->listener >= 0) {
            snprintf(listen_fd, sizeof(listen_fd), "--listen-fd=%d", at->listener);
            argv[count++] = listen_fd;
            extra_fds[extra_count++] = at->listener;
        }
    }
    argv[count] = NULL;
    snprintf(name, sizeof(name), "process %u", command->id);
    const struct process_options options = {
        .argv = argv,
        .environment = command->environment,
        .log = command->log,
        .error_fd = fds[CHILD_ERROR],
        .output_fd = has_terminal ? children->terminal_fd : fds[CHILD_OUTPUT],
        .extra_fds = extra_fds,
        .extra_count = extra_count,
        .input = command->input,
        .directory = command->directory,
    };
    status = process_start(&child->process, name, &options);
    close_all(fds);
    if (told_fd >= 0) {
        close(told_fd);
    }
    return status;
}

static enum status make_room(struct children *children)
{
    if (children->count < children->size) {
        return STATUS_OK;
    }
    size_t size = children->size > 0 ? 2 * children->size : 16;
    struct child **list =
        size <= AGENT_CHILDREN_MAX ? realloc(children->list, size * sizeof(struct child *)) : NULL;
    if (list == NULL) {
        return STATUS_NO_MEMORY;
    }
    children->list = list;
    children->size = size;
    return STATUS_OK;
}

void children_start(struct children *children, const struct agent_message *command)
{
    if (command->input != NULL) {
        security_forbid_core_dumps(); // it is secret, and it was in our memory
    }
    struct child *child = calloc(1, sizeof(*child));
    enum status status = child != NULL ? make_room(children) : STATUS_NO_MEMORY;
    if (status == STATUS_OK) {
        child->told_fd = -1;
        status = run(children, child, command);
    }
    struct agent_message answer = {.kind = AGENT_STARTED, .id = command->id};
    if (status == STATUS_OK) {
        child->id = command->id;
        children->list[children->count++] = child;
        answer.pid = (uint32_t)child->process.pid;
    } else {
        log_error("cannot start %s: %s", command->argv[0], status_text(status));
        if (child != NULL) {
            child_destroy(child);
        }
        answer.kind = AGENT_EXITED;
        answer.status = EXIT_NOT_STARTED;
    }
    children->port.say(children->port.context, &answer);
}

void children_signal(struct children *children, uint32_t id, int signal_number)
{
    for (size_t i = 0; i < children->count; i++) {
        if (children->list[i]->id == id) {
            process_signal(&children->list[i]->process, signal_number);
        }
    }
}

void children_add_polls(const struct children *children, struct poll_list *polls)
{
    for (size_t i = 0; i < children->count; i++) {
        for (size_t k = 0; k < CHILD_STREAMS; k++) {
            const struct line_reader *stream = &children->list[i]->streams[k];
            if (stream->bytes != NULL) {
                poll_list_add(polls, stream->fd, POLLIN);
            }
        }
    }
}

static void hear(const struct child *child, const char *line)
{
    char text[1024];
    int size = snprintf(text, sizeof(text) - 1, "%s", line);
    size_t used = size < (int)sizeof(text) - 1 ? (size_t)size : sizeof(text) - 2;
    text[used++] = '\n';
    if (child->told_fd >= 0 && write(child->told_fd, text, used) < 0) {
        log_debug("process %u does not take what it is told: %m", child->id);
    }
}

void children_hear(struct children *children, uint32_t id, const char *line)
{
    for (size_t i = 0; i < children->count; i++) {
        if (children->list[i]->id == id) {
            hear(children->list[i], line);
        }
    }
}

static void tell_stop(const struct children *children, const struct child *child)
{
    int signal_number;
    while (process_take_stop(&child->process, &signal_number)) {
        const struct agent_message stopped = {
            .kind = AGENT_STOPPED, .id = child->id, .signal = (uint32_t)signal_number};
        children->port.say(children->port.context, &stopped);
    }
}

static void tell_stream(struct children *children, struct child *child, size_t index)
{
    struct line_reader *stream = &child->streams[index];
    char *line = NULL;
    enum status status = STATUS_OK;
    bool has_more = stream->bytes != NULL;
    while (has_more) {
        size_t before = stream->end - stream->begin;
        status = line_reader_fill(stream);
        has_more = stream->end - stream->begin > before;
        while (line_reader_next(stream, true, &line) == STATUS_OK && line != NULL) {
            const struct agent_message output = {
                .kind = AGENT_OUTPUT, .id = child->id, .stream = stream_names[index], .text = line};
            children->port.say(children->port.context, &output);
        }
    }
    if (status == STATUS_END_OF_DATA) {
        close_stream(stream);
    }
}

void children_tell(struct children *children)
{
    for (size_t i = 0; i < children->count;) {
        struct child *child = children->list[i];
        tell_stop(children, child);
        process_reap(&child->process, 1);
        for (size_t k = 0; k < CHILD_STREAMS; k++) {
            tell_stream(children, child, k);
        }
        if (!child->process.is_over) {
            i++;
            continue;
        }
        // A child of its own may hold the streams for longer; it is no business of ours.
        const struct agent_message exited = {
            .kind = AGENT_EXITED, .id = child->id, .status = (uint32_t)child->process.result};
        children->port.say(children->port.context, &exited);
        child_destroy(child);
        children->list[i] = children->list[--children->count];
    }
}

/* Whether a child that was told to end is still running. */
static bool any_is_ending(struct children *children)
{
    bool is_ending = false;
    for (size_t i = 0; i < children->count; i++) {
        struct child *child = children->list[i];
        process_reap(&child->process, 1);
        is_ending = is_ending || (child->told_fd >= 0 && !child->process.is_over);
    }
    return is_ending;
}

static void kill_all(struct children *children)
{
    for (size_t i = 0; i < children->count; i++) {
        process_signal(&children->list[i]->process, SIGKILL);
    }
    for (size_t i = 0; i < children->count; i++) {
        process_end_all(&children->list[i]->process, 1, 0);
        child_destroy(children->list[i]);
    }
    free(children->list);
    children->list = NULL;
    children->count = children->size = 0;
}

void children_end(struct children *children, const char *line)
{
    uint64_t deadline_ms = clock_now_ms() + END_MS;
    for (size_t i = 0; i < children->count; i++) {
        hear(children->list[i], line);
    }
    while (any_is_ending(children) && clock_now_ms() < deadline_ms) {
        poll(NULL, 0, POLL_MS);
    }
    kill_all(children);
    close_listening(&children->listening);
}
