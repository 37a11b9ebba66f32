/* Exchanges lines with an agent, and notices when it is gone. */
#include "deploy/hosts/host_link.h"

#include "common/base/clock.h"
#include "common/base/log.h"
#include "deploy/hosts/link_start.h"
#include "deploy/hosts/srun_command.h"
#include "deploy/hosts/ssh_command.h"
#include "deploy/system/process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define PING_MS       1000
#define TURN_MS       1500 // a turn of a healthy launcher takes less
#define CLOSE_MS      2000
#define SRUN_CLOSE_MS 10000 // srun waits for the node to report the end of the step
#define POLL_MS       5
// ssh gives up after its ConnectTimeout. Name lookup, keys and the start take extra time.
#define SSH_HELLO_MS  (SSH_CONNECT_SECS * 1000 + 2000)
#define SRUN_HELLO_MS (SRUN_CONNECT_SECS * 1000)

bool host_link_is_here(const char *name, const struct allocation *allocation)
{
    if (allocation != NULL) {
        return strcmp(name, allocation->own) == 0;
    }
    char own[HOST_NAME_BYTES] = "";
    gethostname(own, sizeof(own) - 1);
    size_t short_size = strcspn(own, ".");
    return strcmp(name, "localhost") == 0 || strcmp(name, "127.0.0.1") == 0 ||
           (own[0] != '\0' && (strcmp(name, own) == 0 || (strlen(name) == short_size &&
                                                          strncmp(name, own, short_size) == 0)));
}

static void lose(struct host_link *link, const char *why, const char *advice)
{
    if (link->state != HOST_LINK_LOST) {
        link->state = HOST_LINK_LOST;
        snprintf(link->why, sizeof(link->why), "%s", why);
        snprintf(link->advice, sizeof(link->advice), "%s", advice);
    }
}

static unsigned hello_ms(const struct host_link *link)
{
    return link_is_by_srun(link) ? SRUN_HELLO_MS : SSH_HELLO_MS;
}

void host_link_open(struct host_link *link, const char *name,
                    const struct host_link_options *options)
{
    *link = (struct host_link){.options = options};
    snprintf(link->name, sizeof(link->name), "%s", name);
    link->is_local = host_link_is_here(name, options->allocation);
    link->reader.fd = link->errors.fd = link->writer.fd = -1;
    link->opened_ms = link->heard_ms = link->pinged_ms = link->stepped_ms = clock_now_ms();
    link->attention.looked_ms = link->opened_ms;
    enum status status = link_start(link);
    if (status == STATUS_INVALID) {
        lose(link, "the command that reaches it cannot be built",
             "give --ssh and --remote-ringside without quotes and special characters");
    } else if (status != STATUS_OK) {
        lose(link, "this host cannot start a process",
             "are there too many open files? (ulimit -n)");
    }
}

void host_link_say(struct host_link *link, const struct agent_message *message)
{
    if (link->state == HOST_LINK_LOST) {
        return;
    }
    char *line = agent_message_encode(message);
    if (line == NULL || line_writer_add(&link->writer, line) != STATUS_OK) {
        lose(link, "it no longer takes commands", "check its load and the network");
    }
    agent_message_free_line(line);
}

static void ping(struct host_link *link)
{
    const struct agent_message message = {.kind = AGENT_PING, .time_us = clock_now_ns() / 1000};
    link->pinged_ms = clock_now_ms();
    host_link_say(link, &message);
}

/* The host read its clock half a round trip ago. The shortest round trip gives the best
 * estimate. */
static void take_pong(struct host_link *link, const struct agent_message *pong)
{
    uint64_t round_us = clock_now_ns() / 1000 - pong->time_us;
    if (link->has_clock && round_us >= link->round_us) {
        return;
    }
    link->has_clock = true;
    link->round_us = round_us;
    link->clock_ahead_us =
        (int64_t)pong->clock_us + (int64_t)(round_us / 2) - (int64_t)(clock_day_ns() / 1000);
}

static void take_hello(struct host_link *link, const struct agent_message *hello)
{
    struct host_facts *facts = &link->facts;
    snprintf(facts->version, sizeof(facts->version), "%s", hello->version);
    snprintf(facts->host, sizeof(facts->host), "%s", hello->host);
    snprintf(facts->host_id, sizeof(facts->host_id), "%s", hello->host_id);
    snprintf(facts->own, sizeof(facts->own), "%s", hello->own);
    snprintf(facts->peer, sizeof(facts->peer), "%s", hello->peer);
    snprintf(facts->programs.ps, sizeof(facts->programs.ps), "%s", hello->ps);
    snprintf(facts->programs.worker, sizeof(facts->programs.worker), "%s", hello->worker);
    facts->cores = hello->cores > 0 ? hello->cores : 1;
    for (size_t i = 0; hello->interfaces[i] != NULL && hello->interfaces[i + 1] != NULL &&
                       facts->interfaces.count < INTERFACES_MAX;
         i += 2) {
        struct interface *interface = &facts->interfaces.list[facts->interfaces.count++];
        snprintf(interface->name, sizeof(interface->name), "%s", hello->interfaces[i]);
        snprintf(interface->address, sizeof(interface->address), "%s", hello->interfaces[i + 1]);
    }
    if (strcmp(facts->version, RINGSIDE_VERSION) != 0 || hello->protocol != AGENT_PROTOCOL) {
        char why[OPTION_ERROR_BYTES];
        snprintf(why, sizeof(why), "it has version %s (protocol %u); this is %s (protocol %d)",
                 facts->version, hello->protocol, RINGSIDE_VERSION, AGENT_PROTOCOL);
        lose(link, why, "install the same version on all hosts, or use --ship");
        return;
    }
    if (facts->programs.ps[0] == '\0' || facts->programs.worker[0] == '\0') {
        lose(link, "it has ringside, but not ps and worker",
             "install them next to it, or use --ship");
        return;
    }
    link->state = HOST_LINK_UP;
    ping(link);
}

static void take_line(struct host_link *link, size_t host, const char *line,
                      void (*handle)(void *context, size_t host,
                                     const struct agent_message *message),
                      void *context)
{
    struct agent_message message;
    char error[256], why[OPTION_ERROR_BYTES];
    if (agent_message_decode(line, &message, error, sizeof(error)) != STATUS_OK) {
        if (link->state == HOST_LINK_CONNECTING) {
            return; // printed by a start file of the shell there
        }
        snprintf(why, sizeof(why), "it sent something that no agent sends: %s", error);
        lose(link, why, "is its ringside the same build as this one?");
        return;
    }
    if (link->state == HOST_LINK_CONNECTING && message.kind == AGENT_HELLO) {
        take_hello(link, &message);
    } else if (message.kind == AGENT_PONG) {
        take_pong(link, &message);
    } else if (message.kind == AGENT_REFUSED) {
        log_error("%s refuses a command: %s", link->name, message.text);
    } else if (link->state == HOST_LINK_UP && message.kind > AGENT_HELLO) {
        handle(context, host, &message);
    }
    agent_message_finish(&message);
}

/* Keeps the last line of standard error. Shows lines that come while the link is up. */
static void take_errors(struct host_link *link)
{
    char *line = NULL;
    if (link->errors.bytes == NULL) {
        return;
    }
    enum status status = line_reader_fill(&link->errors);
    while (line_reader_next(&link->errors, true, &line) == STATUS_OK && line != NULL) {
        line[strcspn(line, "\r")] = '\0';
        if (line[0] == '\0' || strncmp(line, "Warning: Permanently added", 26) == 0 ||
            (link_is_by_srun(link) && srun_is_noise(line))) {
            continue;
        }
        snprintf(link->said, sizeof(link->said), "%.500s", line);
        if (link->state == HOST_LINK_UP) {
            log_warn("%s: %s", link->name, line);
        }
    }
    if (status == STATUS_END_OF_DATA) {
        close(link->errors.fd);
        line_reader_finish(&link->errors);
    }
}

/* Waits for the end of ssh, srun or the agent, at most until the deadline, then kills it. */
static int reap(struct host_link *link, uint64_t deadline_ms)
{
    int result = 0;
    while (link->pid > 0 && waitpid(link->pid, &result, WNOHANG) != link->pid) {
        if (clock_now_ms() >= deadline_ms) {
            kill(-link->pid, SIGKILL);
            waitpid(link->pid, &result, 0);
            break;
        }
        poll(NULL, 0, POLL_MS);
    }
    link->pid = 0;
    return result;
}

/* Its output has ended, so ssh, srun or the agent has ended or is about to. */
static void take_end(struct host_link *link)
{
    char why[OPTION_ERROR_BYTES], advice[OPTION_ERROR_BYTES];
    int result = reap(link, clock_now_ms() + CLOSE_MS);
    take_errors(link);
    if (link->is_local) {
        char end[128];
        process_describe_end(result, end, sizeof(end));
        snprintf(why, sizeof(why), "the agent of this host %s", end);
        lose(link, why, "run the job again");
        return;
    }
    const struct link_program *program = link_is_by_srun(link) ? &srun_program : &ssh_program;
    link_end_explain(program, link->name, result, link->said, why, advice);
    lose(link, why, advice);
}

/* Lets a stopped agent continue. It would stall the job unnoticed, because it neither hears nor
 * says anything. */
static void let_go_on(struct host_link *link)
{
    siginfo_t info = {0};
    link->pinged_ms = clock_now_ms();
    char name[80];
    if (waitid(P_PID, (id_t)link->pid, &info, WSTOPPED | WNOHANG) != 0 || info.si_pid == 0) {
        return;
    }
    process_name_signal(info.si_status, name, sizeof(name));
    log_warn("the agent of this host (pid %ld) was stopped by %s; it is being continued",
             (long)link->pid, name);
    kill(link->pid, SIGCONT);
}

static void check_silence(struct host_link *link, uint64_t now_ms)
{
    char why[OPTION_ERROR_BYTES];
    if (link->state == HOST_LINK_CONNECTING && now_ms - link->opened_ms >= hello_ms(link)) {
        snprintf(why, sizeof(why), "no agent has answered within %.1f s", hello_ms(link) / 1000.0);
        lose(link, why, "is the host overloaded, or does its shell wait for something?");
    }
    if (link->state == HOST_LINK_UP && !link->is_local &&
        (double)(now_ms - link->heard_ms) >= 1000 * link->options->timeout) {
        snprintf(why, sizeof(why), "no sign of life for %g s", link->options->timeout);
        lose(link, why, "are the host and the network up? (--link-timeout)");
    }
}

void host_link_step(struct host_link *link, size_t host,
                    void (*handle)(void *context, size_t host, const struct agent_message *message),
                    void *context)
{
    if (link->state == HOST_LINK_LOST) {
        return;
    }
    uint64_t now_ms = clock_now_ms();
    uint64_t away_ms = attention_away_ms(&link->attention, now_ms, TURN_MS);
    link->opened_ms = attention_excuse(link->opened_ms, away_ms, now_ms);
    link->heard_ms = attention_excuse(link->heard_ms, away_ms, now_ms);
    link->stepped_ms = now_ms;
    char *line = NULL;
    take_errors(link);
    size_t before = link->reader.end - link->reader.begin;
    enum status end = line_reader_fill(&link->reader);
    if (link->reader.end - link->reader.begin > before) {
        link->heard_ms = now_ms;
    }
    enum status status = line_reader_next(&link->reader, false, &line);
    while (status == STATUS_OK && line != NULL) {
        take_line(link, host, line, handle, context);
        status = line_reader_next(&link->reader, false, &line);
    }
    if (status != STATUS_OK) {
        lose(link, "it sent something that no agent sends: a line without an end",
             "is its ringside the same build as this one?");
    }
    if (end != STATUS_OK && link->state != HOST_LINK_LOST) {
        take_end(link);
    }
    if (link->state == HOST_LINK_UP && now_ms - link->pinged_ms >= PING_MS) {
        if (link->is_local) {
            let_go_on(link);
        } else {
            ping(link);
        }
    }
    // If nobody reads from the writer, the end of the reader or its silence shows it.
    if (link->state != HOST_LINK_LOST && line_writer_flush(&link->writer) != STATUS_OK) {
        link->writer.begin = link->writer.end = 0;
    }
    check_silence(link, now_ms);
}

uint64_t host_link_deadline_ms(const struct host_link *link)
{
    if (link->state == HOST_LINK_LOST) {
        return UINT64_MAX;
    }
    return (link->state == HOST_LINK_UP ? link->pinged_ms : link->stepped_ms) + PING_MS;
}

void host_link_add_polls(const struct host_link *link, struct poll_list *polls)
{
    if (link->state == HOST_LINK_LOST) {
        return;
    }
    poll_list_add(polls, link->reader.fd, POLLIN);
    if (link->errors.bytes != NULL) {
        poll_list_add(polls, link->errors.fd, POLLIN);
    }
    if (line_writer_waiting(&link->writer) > 0) {
        poll_list_add(polls, link->writer.fd, POLLOUT);
    }
}

void host_link_hang_up(struct host_link *link)
{
    if (link->writer.fd >= 0) {
        close(link->writer.fd);
        line_writer_finish(&link->writer);
    }
}

void host_link_close(struct host_link *link)
{
    host_link_hang_up(link);
    unsigned close_ms = link->state == HOST_LINK_UP ? CLOSE_MS : 0;
    if (link_is_by_srun(link)) {
        close_ms = SRUN_CLOSE_MS;
        if (link->pid > 0 && link->state != HOST_LINK_UP) {
            kill(-link->pid, SIGTERM); // srun may still be waiting for its step
        }
    }
    reap(link, clock_now_ms() + close_ms);
    if (link->reader.bytes != NULL) {
        close(link->reader.fd);
    }
    if (link->errors.bytes != NULL) {
        close(link->errors.fd);
    }
    line_reader_finish(&link->reader);
    line_reader_finish(&link->errors);
    link->state = HOST_LINK_LOST;
}
