/* Attacks a job of another user of the same host, with messages that its members would believe.
 *
 * usage: attacker ATTACK [--job HEX] [--seconds S] ENDPOINT ...
 *
 * For check_attacks, which starts it as a user of its own and gives it the endpoints that such a
 * user can find; for `memory` they are numbers of processes. It speaks the job's wire, knows the
 * model (which is public), and is told the job's id if an attack before has got to know it. Each
 * attack goes to all endpoints at once. What it gets to know is a line on standard output, "read
 * ...". */
#include "common/base/clock.h"
#include "common/transport/transport.h"
#include "common/vector/layout.h"
#include "tests/e2e/attacker_wire.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define TARGETS_MAX 64
#define RANKS       2 // that the jobs have
#define VALUES      83126
#define FORGED      1e6F
#define STEPS_MAX   600

struct attacker {
    const char *targets[TARGETS_MAX]; // endpoints, or numbers of processes
    struct attacker_wire wires[TARGETS_MAX];
    uint32_t count;
    uint64_t job_id;
    uint32_t seconds;
    float values[VALUES]; // that are forged
};

static void say(struct attacker *attacker, uint32_t index, const struct message *message)
{
    struct message stamped = *message;
    stamped.job_id = attacker->job_id;
    attacker_wire_say(&attacker->wires[index], &stamped);
}

/* Prints what one has said to us. Learns the job's id. */
static void hear_one(struct attacker *attacker, struct attacker_wire *wire)
{
    struct message message;
    while (attacker_wire_hear(wire, &message)) {
        printf("read %s from %s: job=%016llx rank=%u step=%llu values=%llu text=%zu\n",
               message_kind_name(message.kind), wire->endpoint, (unsigned long long)message.job_id,
               message.rank, (unsigned long long)message.step,
               (unsigned long long)message.span.count, strlen(message.text));
        attacker->job_id = message.job_id != 0 ? message.job_id : attacker->job_id;
    }
}

/* Prints what is said to us, until the time has come, or everybody has closed the door; once at
 * least.
 */
static void hear(struct attacker *attacker, uint64_t until_ms)
{
    struct pollfd polled[TARGETS_MAX];
    uint32_t count;
    do {
        count = 0;
        for (uint32_t i = 0; i < attacker->count; i++) {
            struct attacker_wire *wire = &attacker->wires[i];
            hear_one(attacker, wire);
            if (wire->fd >= 0 && !wire->is_over) {
                polled[count++] = (struct pollfd){.fd = wire->fd, .events = POLLIN};
            }
        }
        uint64_t now_ms = clock_now_ms();
        if (now_ms < until_ms) {
            poll(polled, count, (int)(until_ms - now_ms));
        }
    } while (count > 0 && clock_now_ms() < until_ms);
}

static void connect_all(struct attacker *attacker)
{
    for (uint32_t i = 0; i < attacker->count; i++) {
        (void)attacker_wire_connect(&attacker->wires[i], attacker->targets[i]);
    }
}

static void hear_for_a_while(struct attacker *attacker)
{
    hear(attacker, clock_now_ms() + 1000 * (uint64_t)attacker->seconds);
}

/* Asks to be taken in: as any worker, as the second, and as a shard. */
static void attack_join(struct attacker *attacker)
{
    connect_all(attacker);
    for (uint32_t i = 0; i < attacker->count; i++) {
        struct wire_member member = {.role = ROLE_WORKER,
                                     .host_id = transport_host_id(),
                                     .host = "stranger",
                                     .process_id = (uint64_t)getpid()};
        struct message join = {.kind = MESSAGE_JOIN, .member = &member, .text = RINGSIDE_VERSION};
        say(attacker, i, &join);
    }
    hear_for_a_while(attacker);
}

/* Speaks for members, and for the coordinator. */
static void attack_control(struct attacker *attacker)
{
    struct wire_report report = {.steps = 1, .images = 1};
    struct wire_member member = {.role = ROLE_WORKER, .has_rank = true};
    const struct wire_passed passed = {.phase = 1};
    const struct wire_decision enough = {.is_enough = true};
    char digest[65];
    memset(digest, 'a', sizeof(digest) - 1);
    digest[sizeof(digest) - 1] = '\0';
    member.params_digest = digest;
    connect_all(attacker);
    for (uint32_t i = 0; i < attacker->count; i++) {
        for (uint32_t rank = 0; rank < RANKS; rank++) {
            const struct message messages[] = {
                {.kind = MESSAGE_REPORT, .rank = rank, .report = &report},
                {.kind = MESSAGE_DONE, .rank = rank, .report = &report, .member = &member},
                {.kind = MESSAGE_LEAVE, .rank = rank, .reason = STATUS_IO, .text = "gone"},
                {.kind = MESSAGE_PASSED, .rank = rank, .passed = &passed},
                {.kind = MESSAGE_STOP, .reason = STATUS_IO, .text = "stop"},
                {.kind = MESSAGE_PROCEED, .decision = &enough},
                {.kind = MESSAGE_HEARTBEAT, .rank = rank},
            };
            for (size_t k = 0; k < sizeof(messages) / sizeof(messages[0]); k++) {
                say(attacker, i, &messages[k]);
            }
        }
    }
    hear_for_a_while(attacker);
}

static void greet_all(struct attacker *attacker)
{
    connect_all(attacker);
    for (uint32_t i = 0; i < attacker->count; i++) {
        struct message greet = {.kind = MESSAGE_GREET};
        say(attacker, i, &greet);
    }
}

/* Says that it is a worker that is there already, and so gets what is meant for that one. */
static void attack_hello(struct attacker *attacker)
{
    const struct wire_hello lane = {0};
    greet_all(attacker);
    for (uint32_t i = 0; i < attacker->count; i++) {
        for (uint32_t rank = 0; rank < RANKS; rank++) {
            struct message hello = {.kind = MESSAGE_HELLO, .rank = rank, .hello = &lane};
            struct message pull = {.kind = MESSAGE_PULL, .rank = rank};
            say(attacker, i, &hello);
            say(attacker, i, &pull);
        }
    }
    hear_for_a_while(attacker);
}

/* Gradients for every step, of every rank; first parameters once more. */
static void attack_push(struct attacker *attacker)
{
    const struct wire_hello lane = {0};
    greet_all(attacker);
    const uint64_t until_ms = clock_now_ms() + 1000 * (uint64_t)attacker->seconds;
    for (uint32_t i = 0; i < attacker->count; i++) {
        for (uint32_t rank = 0; rank < RANKS; rank++) {
            struct message hello = {.kind = MESSAGE_HELLO, .rank = rank, .hello = &lane};
            say(attacker, i, &hello);
        }
        struct message seed = {
            .kind = MESSAGE_SEED, .span = {0, VALUES}, .values = attacker->values};
        say(attacker, i, &seed);
    }
    for (uint64_t step = 0; clock_now_ms() < until_ms; step = (step + 1) % STEPS_MAX) {
        for (uint32_t i = 0; i < attacker->count; i++) {
            for (uint32_t rank = 0; rank < RANKS; rank++) {
                struct message push = {.kind = MESSAGE_PUSH,
                                       .rank = rank,
                                       .step = step,
                                       .span = {0, VALUES},
                                       .values = attacker->values};
                say(attacker, i, &push);
            }
        }
        hear(attacker, 0);
    }
}

/* A part of the sum of all workers, which nobody has sent. */
static void attack_chunk(struct attacker *attacker)
{
    const struct span bucket = {0, VALUES};
    greet_all(attacker);
    const uint64_t until_ms = clock_now_ms() + 1000 * (uint64_t)attacker->seconds;
    for (uint64_t step = 0; clock_now_ms() < until_ms; step = (step + 1) % STEPS_MAX) {
        for (uint32_t way = 0; way < attacker->count * RANKS * RANKS; way++) {
            uint32_t rank = way / RANKS % RANKS;
            struct message chunk = {.kind = MESSAGE_CHUNK,
                                    .rank = rank,
                                    .step = step,
                                    .hop = 1,
                                    .span = span_part(bucket, RANKS, way % RANKS),
                                    .values = attacker->values};
            say(attacker, way / RANKS / RANKS, &chunk);
            chunk.hop = 2;
            say(attacker, way / RANKS / RANKS, &chunk);
        }
        hear(attacker, 0);
    }
}

/* Rings bells: datagrams to every name there is, until their queues are full, and again. */
static void attack_bells(struct attacker *attacker)
{
    int bell = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    const uint64_t until_ms = clock_now_ms() + 1000 * (uint64_t)attacker->seconds;
    while (clock_now_ms() < until_ms) {
        for (uint32_t i = 0; i < attacker->count; i++) {
            struct sockaddr_storage address;
            socklen_t size = attacker_wire_address(attacker->targets[i], &address);
            if (size > 0) {
                // Refused or not, what counts is what becomes of the job.
                (void)sendto(bell, "", 1, MSG_NOSIGNAL, (struct sockaddr *)&address, size);
            }
        }
    }
    close(bell);
}

/* What a process that belongs to somebody else has open, as far as we are let. */
static void open_descriptors(const char *process)
{
    char path[128];
    for (int number = 0; number < 256; number++) {
        snprintf(path, sizeof(path), "/proc/%.32s/fd/%d", process, number);
        int file = open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
        if (file < 0 && errno == EACCES) {
            file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
        }
        if (file >= 0) {
            printf("read %s\n", path);
            close(file);
        }
    }
    const char *const others[] = {"mem", "environ", "maps", "auxv"};
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        snprintf(path, sizeof(path), "/proc/%.32s/%s", process, others[i]);
        int file = open(path, O_RDONLY | O_CLOEXEC);
        if (file >= 0) {
            printf("read %s\n", path);
            close(file);
        }
    }
}

/* Memory of processes, by what they have open. */
static void attack_memory(struct attacker *attacker)
{
    for (uint32_t i = 0; i < attacker->count; i++) {
        open_descriptors(attacker->targets[i]);
    }
}

/* -1 if it cannot be had. */
static int listen_at(const char *endpoint)
{
    struct sockaddr_storage address;
    socklen_t size = attacker_wire_address(endpoint, &address);
    int listener = socket(address.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (bind(listener, (struct sockaddr *)&address, size) != 0 || listen(listener, 16) != 0) {
        return -1;
    }
    struct sockaddr_in tcp = {0};
    size = sizeof(tcp);
    if (address.ss_family == AF_INET &&
        getsockname(listener, (struct sockaddr *)&tcp, &size) == 0) {
        printf("sits at tcp://127.0.0.1:%u\n", ntohs(tcp.sin_port));
    } else {
        printf("sits at %s\n", endpoint);
    }
    fflush(stdout);
    return listener;
}

/* Sits where a coordinator is expected, and answers as one. */
static void attack_squat(struct attacker *attacker)
{
    const uint64_t until_ms = clock_now_ms() + 1000 * (uint64_t)attacker->seconds;
    int listener = listen_at(attacker->targets[0]);
    struct pollfd polled = {.fd = listener, .events = POLLIN};
    for (attacker->count = 0; listener >= 0 && clock_now_ms() < until_ms;) {
        if (poll(&polled, 1, 10) > 0 && attacker->count < TARGETS_MAX) {
            attacker_wire_accept(&attacker->wires[attacker->count++], listener);
        }
        hear(attacker, 0);
    }
    close(listener);
}

static const struct attack {
    const char *name;
    void (*run)(struct attacker *attacker);
} attacks[] = {
    {"join", attack_join},     {"control", attack_control}, {"hello", attack_hello},
    {"push", attack_push},     {"chunk", attack_chunk},     {"bells", attack_bells},
    {"memory", attack_memory}, {"squat", attack_squat},
};

static void read_arguments(struct attacker *attacker, int argc, char **argv)
{
    for (int i = 2; i < argc; i++) {
        if (strcmp(argv[i], "--job") == 0 && i + 1 < argc) {
            attacker->job_id = strtoull(argv[++i], NULL, 16);
        } else if (strcmp(argv[i], "--seconds") == 0 && i + 1 < argc) {
            attacker->seconds = (uint32_t)strtoul(argv[++i], NULL, 10);
        } else if (attacker->count < TARGETS_MAX) {
            attacker->wires[attacker->count].fd = -1;
            attacker->targets[attacker->count++] = argv[i];
        }
    }
}

int main(int argc, char **argv)
{
    static struct attacker attacker = {.job_id = 1, .seconds = 1};
    read_arguments(&attacker, argc, argv);
    for (size_t i = 0; i < VALUES; i++) {
        attacker.values[i] = FORGED;
    }
    for (size_t i = 0; argc > 1 && i < sizeof(attacks) / sizeof(attacks[0]); i++) {
        if (strcmp(attacks[i].name, argv[1]) == 0) {
            attacks[i].run(&attacker);
            for (uint32_t k = 0; k < attacker.count; k++) {
                attacker_wire_close(&attacker.wires[k]);
            }
            return 0;
        }
    }
    fprintf(stderr, "attacker: no such attack\n");
    return 2;
}
