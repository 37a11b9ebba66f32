/* The agent's loop: carries out the launcher's commands, and reports their results. */
#include "deploy/agent/agent.h"

#include "common/base/attention.h"
#include "common/base/clock.h"
#include "common/base/cores.h"
#include "common/base/log.h"
#include "common/base/signals.h"
#include "common/options/options.h"
#include "common/transport/transport.h"
#include "deploy/agent/agent_children.h"
#include "deploy/agent/agent_folder.h"
#include "deploy/agent/agent_message.h"
#include "deploy/agent/agent_reach.h"
#include "deploy/system/folder.h"
#include "deploy/system/interfaces.h"
#include "deploy/system/line_stream.h"
#include "deploy/system/poll_list.h"
#include "deploy/system/process.h"
#include "deploy/system/programs.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

// With more than this on its way, children have to wait before they can write.
#define WAITING_MAX ((size_t)1 << 20)

// How often it checks for silence, and how long a turn of a healthy loop takes at most.
#define LOOK_MS 1000
#define TURN_MS 1500

struct agent {
    const struct agent_options *options;
    struct line_reader reader;
    struct line_writer writer;
    int signal_fd;
    uint64_t heard_ms;
    struct attention attention;
    bool is_over;
    int ended_by; // a signal; 0: none
    struct children children;
    struct reach reach;
    struct agent_folder folder;
    struct poll_list polls;
};

static void say(void *context, const struct agent_message *message)
{
    struct agent *agent = context;
    char *line = agent_message_encode(message);
    if (line == NULL || line_writer_add(&agent->writer, line) != STATUS_OK) {
        log_error("the launcher does not read what this agent tells it: %s",
                  agent_kind_name(message->kind));
        agent->is_over = true;
    }
    agent_message_free_line(line);
}

/* The addresses of both ends of the way to the launcher, as ssh or Slurm say it: "" where neither
 * does. */
static void read_link_addresses(char *ret_peer, char *ret_own, size_t size)
{
    const char *connection = getenv("SSH_CONNECTION"); // "PEER PORT OWN PORT"
    const char *launcher = getenv("SLURM_LAUNCH_NODE_IPADDR");
    char route[INTERFACE_ADDRESS_BYTES];
    ret_peer[0] = ret_own[0] = '\0';
    if (connection == NULL) {
        if (launcher != NULL && interfaces_route(launcher, route) == STATUS_OK) {
            snprintf(ret_peer, size, "%s", launcher);
            snprintf(ret_own, size, "%s", route);
        }
        return;
    }
    snprintf(ret_peer, size, "%.*s", (int)strcspn(connection, " "), connection);
    const char *at = connection;
    for (unsigned i = 0; i < 2 && at != NULL; i++) {
        at = strchr(at, ' ');
        at = at != NULL ? at + 1 : NULL;
    }
    if (at != NULL) {
        snprintf(ret_own, size, "%.*s", (int)strcspn(at, " "), at);
    }
}

static void say_hello(struct agent *agent)
{
    struct programs programs = {0};
    struct interfaces interfaces = {0};
    char host[65] = "", host_id[20], peer[64], own[64];
    bool has_programs = programs_find(&programs) == STATUS_OK;
    gethostname(host, sizeof(host) - 1);
    snprintf(host_id, sizeof(host_id), "%016llx", (unsigned long long)transport_host_id());
    read_link_addresses(peer, own, sizeof(own));
    struct agent_message hello = {
        .kind = AGENT_HELLO,
        .protocol = AGENT_PROTOCOL,
        .version = RINGSIDE_VERSION,
        .host = host,
        .host_id = host_id,
        .cores = cores_available(),
        .peer = peer,
        .own = own,
        .ps = has_programs ? programs.ps : "",
        .worker = has_programs ? programs.worker : "",
    };
    if (interfaces_find(&interfaces) == STATUS_OK) {
        for (size_t i = 0; i < interfaces.count && 2 * i + 1 < AGENT_LIST_MAX; i++) {
            hello.interfaces[2 * i] = interfaces.list[i].name;
            hello.interfaces[2 * i + 1] = interfaces.list[i].address;
        }
    }
    say(agent, &hello);
}

static void answer_ping(struct agent *agent, const struct agent_message *ping)
{
    const struct agent_message pong = {
        .kind = AGENT_PONG, .time_us = ping->time_us, .clock_us = clock_day_ns() / 1000};
    say(agent, &pong);
}

static void answer_route(struct agent *agent, const char *address)
{
    char own[INTERFACE_ADDRESS_BYTES] = "";
    if (interfaces_route(address, own) != STATUS_OK) {
        own[0] = '\0';
    }
    const struct agent_message routed = {.kind = AGENT_ROUTED, .own = own};
    say(agent, &routed);
}

static void refuse(struct agent *agent, const char *why)
{
    const struct agent_message refused = {.kind = AGENT_REFUSED, .text = why};
    say(agent, &refused);
}

static void take_command(struct agent *agent, const struct agent_message *command)
{
    switch ((int)command->kind) { // an agent's message is not a command
    case AGENT_START:
        children_start(&agent->children, command);
        break;
    case AGENT_TELL:
        children_hear(&agent->children, command->id, command->text);
        break;
    case AGENT_SIGNAL:
        children_signal(&agent->children, command->id, (int)command->signal);
        break;
    case AGENT_PING:
        answer_ping(agent, command);
        break;
    case AGENT_ROUTE:
        answer_route(agent, command->address);
        break;
    case AGENT_LISTEN:
        reach_listen(&agent->reach, command);
        break;
    case AGENT_CONNECT:
        reach_connect(&agent->reach, command, clock_now_ms());
        break;
    case AGENT_CLOSE:
        reach_close(&agent->reach);
        break;
    case AGENT_FOLDER:
        agent_folder_make(&agent->folder);
        break;
    case AGENT_FETCH:
        agent_folder_fetch(&agent->folder);
        break;
    default:
        refuse(agent, "an agent's message is not a command");
        break;
    }
}

static void take_lines(struct agent *agent)
{
    char *line = NULL, error[256];
    enum status end = line_reader_fill(&agent->reader);
    enum status status = line_reader_next(&agent->reader, false, &line);
    while (status == STATUS_OK && line != NULL) {
        struct agent_message command;
        size_t size = strlen(line);
        agent->heard_ms = clock_now_ms();
        if (agent_message_decode(line, &command, error, sizeof(error)) == STATUS_OK) {
            take_command(agent, &command);
            agent_message_finish(&command);
        } else {
            refuse(agent, error);
        }
        explicit_bzero(line, size); // it may hold keys
        status = line_reader_next(&agent->reader, false, &line);
    }
    if (status != STATUS_OK) {
        log_error("a command is longer than %zu bytes", AGENT_LINE_MAX);
    }
    agent->is_over = agent->is_over || end != STATUS_OK || status != STATUS_OK;
}

static void take_signals(struct agent *agent)
{
    struct signalfd_siginfo info;
    while (read(agent->signal_fd, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
        if (info.ssi_signo != SIGCHLD) {
            agent->is_over = true;
            agent->ended_by = (int)info.ssi_signo;
        }
    }
}

/* Until something must be looked at, even if nothing comes. */
static int timeout_ms(const struct agent *agent, uint64_t now_ms)
{
    uint64_t deadline_ms = reach_deadline_ms(&agent->reach);
    uint32_t silence_ms = agent->options->silence_ms;
    if (silence_ms > 0 && now_ms + LOOK_MS < deadline_ms) {
        deadline_ms = now_ms + LOOK_MS;
    }
    if (silence_ms > 0 && agent->heard_ms + silence_ms < deadline_ms) {
        deadline_ms = agent->heard_ms + silence_ms;
    }
    if (deadline_ms == UINT64_MAX) {
        return -1;
    }
    return deadline_ms > now_ms ? (int)(deadline_ms - now_ms) : 0;
}

static void wait_for_event(struct agent *agent)
{
    size_t waiting = line_writer_waiting(&agent->writer);
    short room = waiting > 0 || agent_folder_is_sending(&agent->folder) ? POLLOUT : 0;
    poll_list_clear(&agent->polls);
    poll_list_add(&agent->polls, agent->signal_fd, POLLIN);
    poll_list_add(&agent->polls, agent->reader.fd, POLLIN);
    if (room != 0) {
        poll_list_add(&agent->polls, agent->writer.fd, room);
    }
    if (waiting < WAITING_MAX) {
        children_add_polls(&agent->children, &agent->polls);
    }
    reach_add_polls(&agent->reach, &agent->polls);
    poll_list_wait(&agent->polls, timeout_ms(agent, clock_now_ms()));
}

/* Called after all input was taken. Time in which the agent itself was stopped is no silence. */
static void check_silence(struct agent *agent)
{
    uint32_t silence_ms = agent->options->silence_ms;
    uint64_t now_ms = clock_now_ms();
    uint64_t away_ms = attention_away_ms(&agent->attention, now_ms, TURN_MS);
    agent->heard_ms = attention_excuse(agent->heard_ms, away_ms, now_ms);
    if (silence_ms > 0 && now_ms - agent->heard_ms >= silence_ms) {
        log_error(
            "nothing heard from the launcher for %.1f s: its processes on this host are ended",
            silence_ms / 1000.0);
        agent->is_over = true;
    }
}

static void loop(struct agent *agent)
{
    while (!agent->is_over) {
        wait_for_event(agent);
        take_signals(agent);
        take_lines(agent);
        if (line_writer_waiting(&agent->writer) < WAITING_MAX) {
            children_tell(&agent->children);
        }
        reach_tell(&agent->reach, clock_now_ms());
        if (agent_folder_is_sending(&agent->folder) &&
            line_writer_waiting(&agent->writer) < WAITING_MAX) {
            agent_folder_send(&agent->folder);
        }
        if (line_writer_flush(&agent->writer) != STATUS_OK) {
            agent->is_over = true;
        }
        check_silence(agent);
    }
}

/* Ends all children. The line is the reason that a coordinator on this host writes down. */
static void end_children(struct agent *agent)
{
    char line[160] = "failed the launcher is gone: was it killed?", name[80];
    if (agent->ended_by != 0) {
        process_name_signal(agent->ended_by, name, sizeof(name));
        snprintf(line, sizeof(line), "failed the agent on the coordinator's host was ended by %s",
                 name);
    }
    children_end(&agent->children, line);
}

static int open_signal_fd(void)
{
    sigset_t set;
    process_ending_signals(&set);
    sigaddset(&set, SIGCHLD);
    sigprocmask(SIG_BLOCK, &set, NULL);
    signal(SIGPIPE, SIG_IGN);
    return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

enum exit_code agent_run(const struct agent_options *options)
{
    struct agent *agent = calloc(1, sizeof(*agent));
    if (agent == NULL) {
        return EXIT_FAILED;
    }
    const struct agent_port port = {agent, say};
    const pid_t parent = getppid();
    agent->options = options;
    agent->signal_fd = open_signal_fd();
    agent->heard_ms = agent->attention.looked_ms = clock_now_ms();
    agent->children = (struct children){.port = port, .terminal_fd = options->terminal_fd};
    agent->reach.port = agent->folder.port = port;
    agent->reach.listener = agent->folder.file = -1;
    line_writer_init(&agent->writer, options->output_fd);
    if (line_reader_init(&agent->reader, options->input_fd, AGENT_LINE_MAX) == STATUS_OK &&
        agent->signal_fd >= 0) {
        say_hello(agent);
        loop(agent);
    }
    end_children(agent);
    if (process_has_gone(parent) && options->lock[0] != '\0') {
        folder_remove_lock(options->lock); // the launcher is gone: it is ours to remove
    }
    reach_finish(&agent->reach);
    agent_folder_finish(&agent->folder);
    line_reader_finish(&agent->reader);
    line_writer_finish(&agent->writer);
    poll_list_finish(&agent->polls);
    if (agent->signal_fd >= 0) {
        close(agent->signal_fd);
    }
    free(agent);
    return EXIT_COMPLETED;
}
