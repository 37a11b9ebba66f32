/* Starts the members of a job, and keeps track of their output and ends. */
#include "deploy/launch/members.h"

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/new_file.h"
#include "common/base/printable.h"
#include "common/service/launch_number.h"
#include "deploy/launch/log_tail.h"
#include "deploy/system/process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum status members_init(struct members *members, struct crew *crew, size_t count)
{
    *members =
        (struct members){.crew = crew, .count = count, .first_id = crew_take_ids(crew, count)};
    members->list = calloc(count, sizeof(*members->list));
    for (size_t i = 0; members->list != NULL && i < count; i++) {
        members->list[i].log_fd = -1;
    }
    return members->list != NULL ? STATUS_OK : STATUS_NO_MEMORY;
}

void members_finish(struct members *members)
{
    for (size_t i = 0; members->list != NULL && i < members->count; i++) {
        if (members->list[i].log_fd >= 0) {
            close(members->list[i].log_fd);
        }
    }
    free(members->list);
    *members = (struct members){0};
}

/* Whether its lines also go to the terminal. */
static bool is_shown(const struct members *members, const struct member *member)
{
    return (size_t)(member - members->list) >= members->shown_from;
}

/* Opens the member's log. On this host the agent writes it, unless its lines are shown as well. */
static enum status open_log(const struct members *members, struct member *member)
{
    if (members->crew->links[member->host].is_local && !is_shown(members, member)) {
        return STATUS_OK;
    }
    member->log_fd = new_file_append(member->log);
    if (member->log_fd < 0) {
        log_error("cannot write the log %s: %m", member->log);
        return STATUS_IO;
    }
    return STATUS_OK;
}

static enum status fill_list(const char *const *from, const char **to)
{
    size_t count = 0;
    for (; from[count] != NULL && count < AGENT_LIST_MAX; count++) {
        to[count] = from[count];
    }
    to[count] = NULL;
    return from[count] == NULL ? STATUS_OK : STATUS_INVALID;
}

/* What the program gets, and behind that which of the starts it is, if it is to join somebody.
 * `number` is borrowed. */
static enum status fill_environment(const struct member_start *start, const char *number,
                                    const char **to)
{
    enum status status = fill_list(start->environment, to);
    size_t count = 0;
    if (start->endpoint == NULL) {
        return status;
    }
    while (to[count] != NULL) {
        count++;
    }
    if (status != STATUS_OK || count == AGENT_LIST_MAX) {
        return STATUS_INVALID;
    }
    to[count] = number;
    to[count + 1] = NULL;
    return STATUS_OK;
}

enum status members_start(struct members *members, size_t index, const struct member_start *start)
{
    struct member *member = &members->list[index];
    const struct host_link *link = &members->crew->links[start->host];
    static const char variable[] = LAUNCH_NUMBER_VARIABLE "=";
    char directory[MEMBER_LOG_BYTES], number[sizeof(variable) + LAUNCH_NUMBER_TEXT_BYTES];
    if (member->log_fd >= 0) {
        close(member->log_fd); // of the process before this one
    }
    *member = (struct member){
        .log_fd = -1,
        .launch = launch_number_make(crew_take_ids(members->crew, 1) + 1, (uint32_t)index)};
    memcpy(number, variable, sizeof(variable));
    launch_number_write(member->launch, start->endpoint != NULL ? start->endpoint : "",
                        number + strlen(variable));
    snprintf(member->name, sizeof(member->name), "%s", start->name);
    snprintf(member->log, sizeof(member->log), "%s", start->log);
    member->log_from = log_tail_end(member->log);
    member->host = start->host;
    enum status status = open_log(members, member);
    if (status != STATUS_OK) {
        return status;
    }
    struct agent_message message = {
        .kind = AGENT_START,
        .id = members->first_id + (uint32_t)index,
        .input = start->input,
        .log = member->log_fd < 0 ? member->log : NULL,
        .announces = start->announces,
        .listens = start->listens,
        .is_told = start->is_told,
        .has_terminal = start->has_terminal && link->is_local,
        .directory = link->is_local ? NULL : getcwd(directory, sizeof(directory)),
    };
    status = fill_list(start->argv, message.argv);
    if (status == STATUS_OK) {
        status = fill_environment(start, number, message.environment);
    }
    if (status != STATUS_OK || link->state != HOST_LINK_UP) {
        log_error("%s cannot be started on %s: %s", start->name, link->name,
                  status != STATUS_OK ? "it has too many arguments" : link->why);
        return status != STATUS_OK ? status : STATUS_UNREACHABLE;
    }
    crew_say(members->crew, start->host, &message);
    member->is_started = true;
    return STATUS_OK;
}

/* Writes a line by one write, so lines of several processes never mix. What another host sends must
 * not act as a command to this terminal. */
static void write_line(int fd, const char *head, const char *text)
{
    char line[8192];
    bool may_follow_progress = fd == STDERR_FILENO && isatty(fd) != 0;
    int erased = snprintf(line, sizeof(line), "%s", may_follow_progress ? "\r\033[K" : "");
    size_t begin = (size_t)erased, room = sizeof(line) - 1 - begin;
    int size = snprintf(line + begin, room, "%s%s", head, text);
    size_t used = begin + ((size_t)size < room ? (size_t)size : room - 1);
    printable_make(line + begin, used - begin);
    line[used++] = '\n';
    while (write(fd, line, used) < 0 && errno == EINTR) {
    } // any other failure: there is nowhere to report it
}

static void take_line(struct members *members, struct member *member,
                      const struct agent_message *message)
{
    char head[HOST_NAME_BYTES + MEMBER_NAME_BYTES + 8];
    bool is_progress = strcmp(message->stream, "output") == 0 && member == &members->list[0];
    if (is_progress) {
        write_line(STDOUT_FILENO, "", message->text);
        return;
    }
    if (member->log_fd >= 0) {
        write_line(member->log_fd, "", message->text);
    }
    if (is_shown(members, member)) {
        bool is_alone = members->crew->count == 1;
        snprintf(head, sizeof(head), "[%s%s%s] ",
                 is_alone ? "" : members->crew->links[member->host].name, is_alone ? "" : " ",
                 member->name);
        write_line(STDERR_FILENO, head, message->text);
    }
}

/* Whether a stop of --fault has come that was not told before. The process continues by itself. */
static bool is_planned_stop(struct member *member)
{
    char fault[FAULT_TEXT_BYTES];
    const struct log_part log = member_log(member);
    if (!log_tail_fault(&log, FAULT_STOP, fault, sizeof(fault)) ||
        strcmp(fault, member->stood_still) == 0) {
        return false;
    }
    memcpy(member->stood_still, fault, sizeof(fault));
    return true;
}

static void take_stop(const struct members *members, struct member *member, int signal_number)
{
    char text[80];
    const char *name = member == &members->list[0] ? "the coordinator" : member->name;
    member->stopped = signal_number;
    member->stopped_ms = clock_now_ms();
    if (signal_number == 0) {
        return;
    }
    process_name_signal(signal_number, text, sizeof(text));
    if (signal_number == SIGSTOP && is_planned_stop(member)) {
        log_warn("%s was stopped by %s, as planned (--fault %s); it continues by itself", name,
                 text, member->stood_still);
    } else {
        log_warn("%s was stopped by %s; kill -CONT %u lets it continue", name, text, member->pid);
    }
}

/* What a coordinator says behind its endpoint (ps-server/launcher/signs.h). Returns whether it was
 * that. */
static bool take_sign(struct member *member, const char *text)
{
    static const char alive[] = "alive ";
    if (strncmp(text, alive, strlen(alive)) == 0) {
        member->alive_ms = clock_now_ms();
        member->patience_ms = strtoull(text + strlen(alive), NULL, 10);
        return true;
    }
    if (strcmp(text, "busy") == 0) {
        member->alive_ms = 0;
        return true;
    }
    return false;
}

bool members_take(struct members *members, size_t host, const struct agent_message *message,
                  char *ret_announcement, size_t announcement_size)
{
    bool is_ours = message->kind == AGENT_OUTPUT || message->kind == AGENT_EXITED ||
                   message->kind == AGENT_STARTED || message->kind == AGENT_STOPPED;
    uint32_t index = message->id - members->first_id; // large for ids of earlier jobs
    if (!is_ours || index >= members->count || members->list[index].host != host) {
        return false;
    }
    struct member *member = &members->list[index];
    if (message->kind == AGENT_EXITED) {
        member->is_over = true;
        member->result = (int)message->status;
    } else if (message->kind == AGENT_STARTED) {
        member->pid = message->pid;
    } else if (message->kind == AGENT_STOPPED) {
        take_stop(members, member, (int)message->signal);
    } else if (message->kind == AGENT_OUTPUT && strcmp(message->stream, "announce") == 0) {
        if (!take_sign(member, message->text) && ret_announcement != NULL) {
            snprintf(ret_announcement, announcement_size, "%s", message->text);
        }
    } else if (message->kind == AGENT_OUTPUT) {
        take_line(members, member, message);
    }
    return true;
}

void members_take_losses(struct members *members)
{
    for (size_t i = 0; i < members->count; i++) {
        struct member *member = &members->list[i];
        if (member->is_started && !member->is_over &&
            members->crew->links[member->host].state == HOST_LINK_LOST) {
            member->is_over = member->is_lost = true;
        }
    }
}

void members_signal(struct members *members, size_t index, int signal_number)
{
    const struct member *member = &members->list[index];
    if (member->is_started && !member->is_over) {
        const struct agent_message message = {.kind = AGENT_SIGNAL,
                                              .id = members->first_id + (uint32_t)index,
                                              .signal = (uint32_t)signal_number};
        crew_say(members->crew, member->host, &message);
    }
}

void members_tell(struct members *members, size_t index, const char *line)
{
    const struct member *member = &members->list[index];
    if (member->is_started && !member->is_over) {
        const struct agent_message message = {
            .kind = AGENT_TELL, .id = members->first_id + (uint32_t)index, .text = line};
        crew_say(members->crew, member->host, &message);
    }
}

bool members_all_over(const struct members *members)
{
    for (size_t i = 0; i < members->count; i++) {
        if (members->list[i].is_started && !members->list[i].is_over) {
            return false;
        }
    }
    return true;
}

bool member_was_killed(const struct member *member)
{
    return member->is_over && (member->is_lost || WIFSIGNALED(member->result));
}

struct log_part member_log(const struct member *member)
{
    return (struct log_part){member->log, member->log_from};
}

/* What the member has of what a fault names, where that is not the member's own number. */
static void describe_part(const struct member *member, const char *fault_text, char *ret_text,
                          size_t text_size)
{
    struct faults faults;
    char why[256];
    const char *own = strrchr(member->name, ' ');
    ret_text[0] = '\0';
    if (own != NULL && faults_parse(fault_text, &faults, why, sizeof(why)) == STATUS_OK &&
        faults.count == 1 && strtoul(own, NULL, 10) != faults.list[0].number) {
        bool is_rank = faults.list[0].place == FAULT_AT_RANK;
        snprintf(ret_text, text_size, is_rank ? ": it carried rank %u" : ": it held shard %u",
                 faults.list[0].number);
    }
}

static void describe_end(const struct members *members, size_t index, char *ret_text,
                         size_t text_size)
{
    const struct member *member = &members->list[index];
    const struct host_link *link = &members->crew->links[member->host];
    const struct log_part log = member_log(member);
    char fault[FAULT_TEXT_BYTES], has[64];
    bool is_killed = WIFSIGNALED(member->result) && WTERMSIG(member->result) == SIGKILL;
    if (member->is_lost) {
        snprintf(ret_text, text_size, "was lost with %s: %s", link->name, link->why);
    } else if (is_killed && log_tail_fault(&log, FAULT_KILL, fault, sizeof(fault))) {
        describe_part(member, fault, has, sizeof(has));
        snprintf(ret_text, text_size, "was killed by signal 9, as planned (--fault %s%s)", fault,
                 has);
    } else {
        process_describe_end(member->result, ret_text, text_size);
    }
}

void members_explain_end(const struct members *members, size_t index, char *ret_text,
                         size_t text_size)
{
    const struct member *member = &members->list[index];
    const struct log_part log = member_log(member);
    describe_end(members, index, ret_text, text_size);
    size_t used = strlen(ret_text);
    if (!member_was_killed(member) && used + 2 < text_size) {
        memcpy(ret_text + used, ": ", 3);
        log_tail_sentence(&log, ret_text + used + 2, text_size - used - 2);
        if (ret_text[used + 2] == '\0') {
            ret_text[used] = '\0'; // its log says nothing
        }
    }
}
