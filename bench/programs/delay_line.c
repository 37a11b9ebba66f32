/* Delays the packets that hosts receive, where the kernel has no netem.
 *
 *     delay_line DELAY_US NAMESPACE...
 *
 * Each network namespace is a host. The program listens to queue 0 of each (packet_queue.h) and
 * prints "ready". From then on each packet that a rule of the host puts there goes on DELAY_US
 * microseconds after it came, in order. The program ends when its standard input does, and prints a
 * line of JSON: how many packets there were, how late they went on, and the CPU seconds of the
 * program, which include the kernel's work for the receivers. If a packet is lost, or the program
 * is killed, hosts receive nothing any more.
 *
 * Packets wait in the kernel, which notes when each of them came. So the program need not wake for
 * an arrival, only when a packet is due: it then reads what came meanwhile, which is due later. It
 * runs before other programs on busy cores, as netem's timers would. */
#include "bench/programs/packet_queue.h"
#include "common/base/clock.h"

#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#define HOSTS_MAX    256
#define DELAY_US_MAX 10000000
#define TAKEN_MAX    32         // packets at once
#define INPUT        UINT32_MAX // in the place of a host's number
#define DAY_ERROR    100        // the time of day goes faster or slower by one part of so many
#define READING_NS   50000      // between the readings of two clocks, at most

struct waiting {
    uint32_t id;
    uint64_t due_ns; // by clock_now_ns
};

struct host {
    struct packet_queue queue;
    struct waiting *ring; // (PACKET_QUEUE_MAX), owned: packets in the order in which they came
    uint32_t first, count;
};

/* By both clocks. */
struct moment {
    uint64_t clock_ns, day_ns;
};

struct line {
    struct host hosts[HOSTS_MAX];
    uint32_t host_count;
    uint64_t delay_ns;
    struct moment looked; // what came before this has been read
    int poll;             // of the hosts' queues and the standard input; -1: not open
    uint64_t packets, late_ns, late_ns_max;
};

/* ---- One host's packets ---- */

/* In this order: an interruption in between makes packets late, and none early. */
static struct moment read_clocks(void)
{
    uint64_t day_ns = clock_day_ns();
    return (struct moment){.clock_ns = clock_now_ns(), .day_ns = day_ns};
}

static struct waiting *waiting_at(const struct host *host, uint32_t index)
{
    return &host->ring[(host->first + index) % PACKET_QUEUE_MAX];
}

/* When a packet came, by clock_now_ns, or a little later. The kernel says so in the time of day,
 * which may go faster or slower than that clock. If it was set meanwhile, the packet counts as one
 * that came now. */
static uint64_t came_at(const struct moment *looked, const struct moment *now, uint64_t came_day_ns)
{
    uint64_t passed_ns = now->clock_ns - looked->clock_ns;
    uint64_t day_passed_ns = now->day_ns - looked->day_ns;
    uint64_t slack_ns = passed_ns / DAY_ERROR + READING_NS;
    bool was_set = day_passed_ns + slack_ns < passed_ns || day_passed_ns > passed_ns + slack_ns;
    uint64_t age_ns = now->day_ns - came_day_ns;
    if (was_set || came_day_ns == 0 || came_day_ns > now->day_ns || age_ns > passed_ns + slack_ns) {
        return now->clock_ns;
    }
    return now->clock_ns - (age_ns - age_ns / DAY_ERROR);
}

/* Reads which packets have come. Returns 0, or -1 once what went wrong is printed. */
static int take(struct line *line, struct host *host)
{
    struct packet packets[TAKEN_MAX];
    int taken;
    do {
        taken = packet_queue_take(&host->queue, packets, TAKEN_MAX);
        struct moment now = read_clocks();
        for (int i = 0; i < taken && host->count < PACKET_QUEUE_MAX; i++) {
            *waiting_at(host, host->count++) = (struct waiting){
                .id = packets[i].id,
                .due_ns = came_at(&line->looked, &now, packets[i].came_ns) + line->delay_ns};
        }
    } while (taken == TAKEN_MAX);
    if (host->count == PACKET_QUEUE_MAX) {
        fprintf(stderr, "delay_line: namespace %s: %u packets wait, and no more may\n",
                host->queue.name, host->count);
        return -1;
    }
    return taken < 0 ? -1 : 0;
}

/* Lets the packets go on that are due. */
static int release(struct line *line, struct host *host)
{
    uint64_t now_ns = clock_now_ns();
    uint32_t count = 0, last = 0;
    for (; count < host->count && waiting_at(host, count)->due_ns <= now_ns; count++) {
        uint64_t late_ns = now_ns - waiting_at(host, count)->due_ns;
        line->late_ns += late_ns;
        line->late_ns_max = late_ns > line->late_ns_max ? late_ns : line->late_ns_max;
        last = waiting_at(host, count)->id;
    }
    line->packets += count;
    host->first = (host->first + count) % PACKET_QUEUE_MAX;
    host->count -= count;
    return count > 0 ? packet_queue_release(&host->queue, last) : 0;
}

/* ---- All hosts ---- */

static int watch(const struct line *line, int descriptor, uint32_t number)
{
    struct epoll_event event = {.events = EPOLLIN, .data.u32 = number};
    return epoll_ctl(line->poll, EPOLL_CTL_ADD, descriptor, &event);
}

static int open_hosts(struct line *line, char **names, uint32_t count)
{
    line->poll = epoll_create1(EPOLL_CLOEXEC);
    if (line->poll < 0 || watch(line, STDIN_FILENO, INPUT) != 0) {
        fprintf(stderr, "delay_line: the standard input has to be a pipe, whose end is the end of "
                        "delays: %m\n");
        return -1;
    }
    for (uint32_t i = 0; i < count; i++) {
        struct host *host = &line->hosts[line->host_count++];
        if (packet_queue_open(&host->queue, names[i]) != 0) {
            return -1;
        }
        host->ring = calloc(PACKET_QUEUE_MAX, sizeof(*host->ring));
        if (host->ring == NULL || watch(line, host->queue.descriptor, i) != 0) {
            fprintf(stderr, "delay_line: no memory\n");
            return -1;
        }
    }
    return 0;
}

static void close_hosts(struct line *line)
{
    for (uint32_t i = 0; i < line->host_count; i++) {
        packet_queue_close(&line->hosts[i].queue);
        free(line->hosts[i].ring);
    }
    if (line->poll >= 0) {
        close(line->poll);
    }
}

/* UINT64_MAX: no packet waits. */
static uint64_t next_due_ns(const struct line *line)
{
    uint64_t due_ns = UINT64_MAX;
    for (uint32_t i = 0; i < line->host_count; i++) {
        const struct host *host = &line->hosts[i];
        if (host->count > 0 && waiting_at(host, 0)->due_ns < due_ns) {
            due_ns = waiting_at(host, 0)->due_ns;
        }
    }
    return due_ns;
}

static void sleep_until(uint64_t due_ns)
{
    const struct timespec due = {.tv_sec = (time_t)(due_ns / 1000000000),
                                 .tv_nsec = (long)(due_ns % 1000000000)};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &due, NULL) == EINTR) {
    }
}

/* Reads which packets have come to all hosts. It waits for one if it may. */
static int look(struct line *line, bool may_wait, bool *ret_is_over)
{
    struct epoll_event events[HOSTS_MAX + 1];
    struct moment began = read_clocks();
    int count = epoll_wait(line->poll, events, HOSTS_MAX + 1, may_wait ? -1 : 0);
    for (int i = 0; i < count; i++) {
        if (events[i].data.u32 == INPUT) {
            *ret_is_over = true;
        } else if (take(line, &line->hosts[events[i].data.u32]) != 0) {
            return -1;
        }
    }
    line->looked = began;
    return 0;
}

static int run(struct line *line)
{
    bool is_over = false;
    line->looked = read_clocks();
    while (!is_over) {
        uint64_t due_ns = next_due_ns(line);
        if (due_ns != UINT64_MAX) {
            sleep_until(due_ns);
        }
        for (uint32_t i = 0; i < line->host_count; i++) {
            if (release(line, &line->hosts[i]) != 0) {
                return -1;
            }
        }
        if (look(line, next_due_ns(line) == UINT64_MAX, &is_over) != 0) {
            return -1;
        }
    }
    return 0;
}

static void print_counts(const struct line *line)
{
    double packets = line->packets > 0 ? (double)line->packets : 1;
    printf("{\"packets\":%" PRIu64 ",\"late_us_mean\":%.1f,\"late_us_max\":%.1f,"
           "\"cpu_seconds\":%.6f}\n",
           line->packets, (double)line->late_ns / packets / 1e3, (double)line->late_ns_max / 1e3,
           (double)clock_process_ns() / 1e9);
}

/* ---- The program ---- */

static int parse_delay(const char *word, uint64_t *ret_ns)
{
    char *end;
    errno = 0;
    unsigned long long us = strtoull(word, &end, 10);
    if (word[0] < '0' || word[0] > '9' || *end != '\0' || errno != 0 || us == 0 ||
        us > DELAY_US_MAX) {
        fprintf(stderr, "delay_line: a delay of '%s' is no number of microseconds from 1 to %d\n",
                word, DELAY_US_MAX);
        return -1;
    }
    *ret_ns = us * 1000;
    return 0;
}

/* Packets would be late if other programs ran first. */
static void run_before_others(void)
{
    const struct sched_param first = {.sched_priority = 1};
    if (sched_setscheduler(0, SCHED_FIFO, &first) != 0) {
        fprintf(stderr, "delay_line: packets may be late, as other programs can run first: %m\n");
    }
}

/* Returns -1, and says why, if not all of the output was written. */
static int flush_output(void)
{
    if (fflush(stdout) != 0 || ferror(stdout)) {
        fprintf(stderr, "delay_line: the standard output cannot be written: %m\n");
        return -1;
    }
    return 0;
}

int main(int argc, char **argv)
{
    static struct line line = {.poll = -1};
    if (argc < 3) {
        fprintf(stderr, "usage: delay_line DELAY_US NAMESPACE...\n");
        return 2;
    }
    if (parse_delay(argv[1], &line.delay_ns) != 0) {
        return 2;
    }
    if (argc - 2 > HOSTS_MAX) {
        fprintf(stderr, "delay_line: %d namespaces are more than %d\n", argc - 2, HOSTS_MAX);
        return 2;
    }
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL); // it does not outlive who started it
    run_before_others();
    int status = open_hosts(&line, argv + 2, (uint32_t)(argc - 2));
    if (status == 0) {
        printf("ready\n");
        status = flush_output();
    }
    if (status == 0) {
        status = run(&line);
        print_counts(&line);
        status = flush_output() != 0 ? -1 : status;
    }
    close_hosts(&line);
    return status == 0 ? 0 : 1;
}
