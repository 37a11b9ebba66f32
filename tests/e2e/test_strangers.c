/* End to end: strangers by the thousand; a job that they cannot disturb ends with the bits that it
 * has without them. */
#include "common/transport/door.h"
#include "tests/support/common/keyed_job.h"
#include "tests/support/common/patience.h"
#include "tests/support/common/strangers.h"
#include "tests/support/programs/programs.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define FLOOD_COUNT  10000
#define FLOOD_BURSTS 20
#define HELD_MAX     4000

// In a log, however many there were.
#define REFUSAL_LINES_MAX 40

/* How many connections the log says were refused, and in how many lines. */
static unsigned long count_refused(const char *log, unsigned *ret_lines)
{
    unsigned long count = 0;
    *ret_lines = 0;
    for (const char *at = log; (at = strstr(at, " refused ")) != NULL; at++) {
        const char *what = at + strlen(" refused ");
        count += strncmp(what, "a connection", 12) == 0 ? 1 : strtoul(what, NULL, 10);
        ++*ret_lines;
    }
    return count;
}

/* Connections that say everything that a member would not, and stay for a while. */
struct crowd {
    int held[HELD_MAX];
    unsigned long count;
};

/* False if nobody listens any more. */
static bool crowd_add(struct crowd *crowd, const char *endpoint)
{
    int fd = stranger_say(endpoint, &stranger_noises[crowd->count % stranger_noise_count]);
    if (fd < 0) {
        return false;
    }
    int *place = &crowd->held[crowd->count % HELD_MAX];
    if (crowd->count >= HELD_MAX) {
        close(*place);
    }
    *place = fd;
    crowd->count++;
    return true;
}

static void crowd_leave(const struct crowd *crowd)
{
    for (unsigned long i = 0; i < crowd->count && i < HELD_MAX; i++) {
        close(crowd->held[i]);
    }
}

/* Where workers send their data, as the shard's log has it. */
static void find_data_endpoint(const struct keyed_job *run, char ret_endpoint[64])
{
    const char *at = strstr(program_output(&run->ps), "listening at ");
    assert_non_null(at);
    at = strstr(at, "tcp://");
    assert_non_null(at);
    snprintf(ret_endpoint, 64, "%.*s", (int)strcspn(at, " \n"), at);
}

static void ten_thousand_strangers_do_not_disturb_a_job(void **state)
{
    (void)state;
    static struct crowd crowd;
    struct rlimit limit, before;
    struct keyed_job run;
    char data[64], digest[PROGRAM_DIGEST_BYTES], expected[PROGRAM_DIGEST_BYTES];
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    if (before.rlim_max < HELD_MAX + 100) {
        print_message("skipped: this user may not open %d files\n", HELD_MAX + 100);
        skip();
    }
    const char *const more[] = {"--steps", "250", NULL};
    keyed_job_open(&run, "ps-sync", more);
    for (unsigned i = 0; i < KEYED_JOB_WORKERS; i++) {
        keyed_job_start_worker(&run, i);
    }
    programs_wait_for_file(run.out, "metrics.jsonl");
    find_data_endpoint(&run, data);
    limit = before;
    limit.rlim_cur = limit.rlim_max;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    // The job is held up at times, so that it outlasts them all; in between it trains on.
    const char *const endpoints[] = {run.endpoint, data};
    for (unsigned burst = 0; burst < FLOOD_BURSTS; burst++) {
        program_kill(&run.workers[1], burst % 2 == 0 ? SIGSTOP : SIGCONT);
        unsigned long count = burst % 2 == 0 ? 2 * FLOOD_COUNT / FLOOD_BURSTS : 10;
        for (unsigned long i = 0; i < count; i++) {
            if (!crowd_add(&crowd, endpoints[i / stranger_noise_count % 2])) {
                fail_msg("ps takes no connections any more: %s", program_output(&run.ps));
            }
        }
    }
    program_kill(&run.workers[1], SIGCONT);
    crowd_leave(&crowd);
    setrlimit(RLIMIT_NOFILE, &before);
    keyed_job_finish(&run, digest);
    keyed_job_run_undisturbed("ps-sync", "250", expected);
    assert_string_equal(digest, expected);
    unsigned lines;
    assert_true(crowd.count >= FLOOD_COUNT);
    assert_int_equal(count_refused(program_output(&run.ps), &lines), crowd.count);
    assert_in_range(lines, 1, REFUSAL_LINES_MAX);
    programs_remove_folder(run.folder);
}

static void a_few_file_descriptors_are_enough_against_many_strangers(void **state)
{
    (void)state;
    static struct crowd crowd;
    const struct rlimit few = {.rlim_cur = 200, .rlim_max = 200};
    struct keyed_job run;
    char digest[PROGRAM_DIGEST_BYTES], expected[PROGRAM_DIGEST_BYTES];
    const char *const more[] = {"--steps", "60", NULL};
    keyed_job_open(&run, "ps-sync", more);
    assert_int_equal(prlimit(run.ps.pid, RLIMIT_NOFILE, &few, NULL), 0);
    keyed_job_start_worker(&run, 0);
    for (unsigned long i = 0; i < 600; i++) {
        assert_true(crowd_add(&crowd, run.endpoint));
    }
    crowd_leave(&crowd);
    keyed_job_start_worker(&run, 1);
    keyed_job_finish(&run, digest);
    keyed_job_run_undisturbed("ps-sync", "60", expected);
    assert_string_equal(digest, expected);
    assert_non_null(strstr(program_output(&run.ps), "refused "));
    programs_remove_folder(run.folder);
}

/* Sends until it has sent `count` bytes, or the connection is closed; how many it has. */
static size_t send_zeros(int fd, size_t count)
{
    static const char zeros[1 << 16];
    size_t sent = 0;
    while (sent < count) {
        ssize_t got = send(fd, zeros, sizeof(zeros), MSG_NOSIGNAL);
        if (got < 0) {
            break;
        }
        sent += (size_t)got;
    }
    return sent;
}

static void nobody_takes_a_large_frame_of_a_stranger(void **state)
{
    (void)state;
    struct keyed_job run;
    char data[64], digest[PROGRAM_DIGEST_BYTES];
    const size_t frame = (size_t)400 << 20;
    const char *const more[] = {"--steps", "600", NULL}; // it is not over before strangers come
    keyed_job_open(&run, "ps-sync", more);
    keyed_job_start_worker(&run, 0);
    keyed_job_start_worker(&run, 1);
    programs_wait_for_file(run.out, "metrics.jsonl");
    find_data_endpoint(&run, data);
    const char *const endpoints[] = {run.endpoint, data};
    for (size_t i = 0; i < 2; i++) {
        int fd = stranger_say(endpoints[i], &stranger_large_command);
        assert_true(fd >= 0);
        // What the kernel holds of it is far less.
        assert_true(send_zeros(fd, frame / 4) < frame / 4);
        close(fd);
    }
    keyed_job_finish(&run, digest);
    programs_remove_folder(run.folder);
}

#define HOLDER_USER  4711
#define JOIN_MS      5000
#define HOLDER_COUNT (DOOR_VISITORS_MAX + 100)

/* Takes what was received, which a stranger does not read. */
static bool is_closed(int fd)
{
    char greeting[256];
    ssize_t got = recv(fd, greeting, sizeof(greeting), MSG_DONTWAIT);
    return got == 0 || (got < 0 && errno != EAGAIN);
}

static void hold(struct pollfd *ret_held, const struct sockaddr_in *address)
{
    *ret_held =
        (struct pollfd){.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), .events = POLLIN};
    (void)connect(ret_held->fd, (const struct sockaddr *)address, sizeof(*address));
}

/* In a child: a user who holds as many connections as it gets, and comes again when one is closed.
 * Tells when one was. */
static void hold_as(uid_t user, const struct sockaddr_in *address, int told)
{
    const struct rlimit enough = {.rlim_cur = HOLDER_COUNT + 64, .rlim_max = HOLDER_COUNT + 64};
    static struct pollfd held[HOLDER_COUNT];
    bool has_told = false;
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || setrlimit(RLIMIT_NOFILE, &enough) != 0 ||
        setuid(user) != 0) {
        _exit(1);
    }
    for (unsigned i = 0; i < HOLDER_COUNT; i++) {
        hold(&held[i], address);
    }
    while (poll(held, HOLDER_COUNT, -1) >= 0) {
        for (unsigned i = 0; i < HOLDER_COUNT; i++) {
            if (held[i].revents != 0 && is_closed(held[i].fd)) {
                close(held[i].fd);
                has_told = has_told || write(told, "x", 1) == 1;
                hold(&held[i], address);
            }
        }
    }
    _exit(1);
}

/* Starts the workers when a process of the user has all the connections that it gets. They get in
 * sooner than its handshakes are given up. `said`: why ps refuses connections, or NULL for any
 * reason. */
static void run_with_holder(uid_t user, const char *said)
{
    struct keyed_job run;
    char digest[PROGRAM_DIGEST_BYTES], byte, seconds[16];
    int told[2], result;
    const char *const more[] = {"--steps", "20", NULL};
    keyed_job_open(&run, "ps-sync", more);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    address.sin_port = htons((uint16_t)strtoul(strrchr(run.endpoint, ':') + 1, NULL, 10));
    assert_int_equal(pipe(told), 0);
    pid_t holder = fork();
    if (holder == 0) {
        hold_as(user, &address, told[1]);
    }
    assert_true(holder > 0);
    close(told[1]);
    assert_int_equal(read(told[0], &byte, 1), 1); // by then there is no more room
    snprintf(seconds, sizeof(seconds), "%d", patience_ms(JOIN_MS) / 1000);
    assert_int_equal(setenv("RINGSIDE_JOIN_TIMEOUT", seconds, 1), 0);
    keyed_job_start_worker(&run, 0);
    keyed_job_start_worker(&run, 1);
    unsetenv("RINGSIDE_JOIN_TIMEOUT");
    keyed_job_finish(&run, digest);
    kill(holder, SIGKILL);
    assert_int_equal(waitpid(holder, &result, 0), holder);
    close(told[0]);
    assert_non_null(strstr(program_output(&run.ps), "refused_so_far="));
    assert_true(said == NULL || strstr(program_output(&run.ps), said) != NULL);
    programs_remove_folder(run.folder);
}

static void another_user_who_holds_connections_keeps_no_worker_out(void **state)
{
    (void)state;
    if (geteuid() != 0) {
        print_message("skipped: only root can be somebody else\n");
        skip();
    }
    run_with_holder(HOLDER_USER, "it belongs to another user of this host");
}

static void another_program_that_holds_connections_keeps_no_worker_out(void **state)
{
    (void)state;
    struct rlimit limit;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    if (limit.rlim_max < (rlim_t)2 * HOLDER_COUNT) {
        print_message("skipped: this user may not open %d files\n", 2 * HOLDER_COUNT);
        skip();
    }
    // A slow server finds no crowd: the first connections have to go before the last ones come.
    run_with_holder(geteuid(), NULL);
}

/* With an argument: what takes too long for the sanitizers. */
int main(int argc, char **argv)
{
    (void)argv;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nobody_takes_a_large_frame_of_a_stranger),
        cmocka_unit_test(another_user_who_holds_connections_keeps_no_worker_out),
        cmocka_unit_test(another_program_that_holds_connections_keeps_no_worker_out),
        cmocka_unit_test(a_few_file_descriptors_are_enough_against_many_strangers),
    };
    const struct CMUnitTest crowd[] = {
        cmocka_unit_test(ten_thousand_strangers_do_not_disturb_a_job),
    };
    return argc > 1 ? cmocka_run_group_tests(crowd, NULL, NULL)
                    : cmocka_run_group_tests(tests, NULL, NULL);
}
