/* Starts the agents of all hosts, and waits for all of them at once. */
#include "deploy/hosts/crew.h"

#include "common/base/clock.h"
#include "common/base/log.h"
#include "deploy/system/process.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/signalfd.h>
#include <unistd.h>

#define WAIT_MS_MAX 60000

static void ignore(void *context, size_t host, const struct agent_message *message)
{
    (void)context;
    (void)host;
    (void)message;
}

static int open_signal_fd(void)
{
    sigset_t set;
    process_ending_signals(&set);
    return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

static enum status wait_for_hellos(struct crew *crew)
{
    bool is_waiting = true;
    while (is_waiting && crew->interrupts == 0) {
        is_waiting = false;
        for (size_t i = 0; i < crew->count; i++) {
            is_waiting = is_waiting || crew->links[i].state == HOST_LINK_CONNECTING;
        }
        if (is_waiting) {
            crew_step(crew, UINT64_MAX);
        }
    }
    return crew->interrupts == 0 ? STATUS_OK : STATUS_INTERRUPTED;
}

enum status crew_open(struct crew *crew, const struct hosts *hosts,
                      const struct host_link_options *options)
{
    signal(SIGPIPE, SIG_IGN);
    *crew = (struct crew){.signal_fd = open_signal_fd(), .handle = ignore};
    crew->links = calloc(hosts->count, sizeof(*crew->links));
    if (crew->links == NULL || crew->signal_fd < 0) {
        log_error("cannot prepare to launch: out of memory or file descriptors");
        return STATUS_NO_MEMORY;
    }
    for (crew->count = 0; crew->count < hosts->count; crew->count++) {
        host_link_open(&crew->links[crew->count], hosts->list[crew->count].name, options);
    }
    return wait_for_hellos(crew);
}

enum status crew_reopen(struct crew *crew)
{
    for (size_t i = 0; i < crew->count; i++) {
        struct host_link *link = &crew->links[i];
        if (link->state == HOST_LINK_LOST) {
            char name[HOST_NAME_BYTES];
            const struct host_link_options *options = link->options;
            snprintf(name, sizeof(name), "%s", link->name);
            host_link_close(link);
            host_link_open(link, name, options);
        }
    }
    return wait_for_hellos(crew);
}

void crew_close(struct crew *crew)
{
    // Closes all inputs first, so that the agents end at the same time.
    for (size_t i = 0; i < crew->count; i++) {
        host_link_hang_up(&crew->links[i]);
    }
    for (size_t i = 0; i < crew->count; i++) {
        host_link_close(&crew->links[i]);
    }
    free(crew->links);
    poll_list_finish(&crew->polls);
    if (crew->signal_fd > 0) {
        close(crew->signal_fd);
    }
    *crew = (struct crew){0};
}

void crew_listen(struct crew *crew,
                 void (*handle)(void *context, size_t host, const struct agent_message *message),
                 void *context)
{
    crew->handle = handle != NULL ? handle : ignore;
    crew->context = context;
}

uint32_t crew_take_ids(struct crew *crew, size_t count)
{
    uint32_t first = crew->next_id;
    crew->next_id += (uint32_t)count;
    return first;
}

void crew_say(struct crew *crew, size_t host, const struct agent_message *message)
{
    host_link_say(&crew->links[host], message);
}

static void take_signals(struct crew *crew)
{
    struct signalfd_siginfo info;
    while (read(crew->signal_fd, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
        crew->interrupts++;
        crew->last_signal = (int)info.ssi_signo;
    }
}

void crew_step(struct crew *crew, uint64_t deadline_ms)
{
    uint64_t now_ms = clock_now_ms();
    poll_list_clear(&crew->polls);
    poll_list_add(&crew->polls, crew->signal_fd, POLLIN);
    for (size_t i = 0; i < crew->count; i++) {
        uint64_t its_ms = host_link_deadline_ms(&crew->links[i]);
        deadline_ms = its_ms < deadline_ms ? its_ms : deadline_ms;
        host_link_add_polls(&crew->links[i], &crew->polls);
    }
    uint64_t wait_ms = deadline_ms > now_ms ? deadline_ms - now_ms : 0;
    poll_list_wait(&crew->polls, wait_ms < WAIT_MS_MAX ? (int)wait_ms : WAIT_MS_MAX);
    take_signals(crew);
    for (size_t i = 0; i < crew->count; i++) {
        host_link_step(&crew->links[i], i, crew->handle, crew->context);
    }
}
