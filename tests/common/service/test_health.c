/* Tests of the health endpoint, asked over a socket as a probe does. */
#include "common/base/clock.h"
#include "common/service/health.h"
#include "common/service/notify.h"
#include "common/transport/door.h"
#include "tests/support/common/captured_log.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#define FILES 1100

/* A port that was free a moment ago. */
static uint32_t free_port(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t size = sizeof(address);
    int file = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_int_equal(bind(file, (const struct sockaddr *)&address, size), 0);
    assert_int_equal(getsockname(file, (struct sockaddr *)&address, &size), 0);
    close(file);
    return ntohs(address.sin_port);
}

/* A connection that says nothing, from 127.0.0.`last`. */
static int visit(uint32_t port, unsigned char last)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    struct sockaddr_in own = {.sin_family = AF_INET};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    own.sin_addr.s_addr = htonl(INADDR_LOOPBACK - 1 + last);
    int file = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(file, (const struct sockaddr *)&own, sizeof(own)), 0);
    assert_int_equal(connect(file, (const struct sockaddr *)&address, sizeof(address)), 0);
    return file;
}

/* Sends `request` and returns all of what comes back. */
static const char *ask(uint32_t port, const char *request)
{
    static char answer[2048];
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int file = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(file, (const struct sockaddr *)&address, sizeof(address)), 0);
    (void)send(file, request, strlen(request), MSG_NOSIGNAL);
    (void)shutdown(file, SHUT_WR); // the other side may have gone already
    size_t used = 0;
    ssize_t got;
    while (used < sizeof(answer) - 1 &&
           (got = recv(file, answer + used, sizeof(answer) - 1 - used, 0)) > 0) {
        used += (size_t)got;
    }
    answer[used] = '\0';
    close(file);
    return answer;
}

static void expect(uint32_t port, const char *path, const char *code, const char *text)
{
    char request[256];
    snprintf(request, sizeof(request), "GET %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
             path);
    const char *answer = ask(port, request);
    if (strstr(answer, code) == NULL || strstr(answer, text) == NULL) {
        fail_msg("%s: %s", path, answer);
    }
}

/* NULL, with the test skipped, in a build without libmicrohttpd. */
static struct health *create(uint32_t port)
{
    struct health *health = NULL;
    enum status status = health_create("127.0.0.1", port, &health);
    if (status == STATUS_UNSUPPORTED) {
        print_message("skipped: built without libmicrohttpd\n");
        skip();
    }
    assert_int_equal(status, STATUS_OK);
    return health;
}

static char *nothing(const char *name)
{
    (void)name;
    return NULL;
}

static void ready_is_said_when_it_is_so(void **state)
{
    (void)state;
    uint32_t port = free_port();
    struct notify *notify = notify_create(nothing, create(port));
    expect(port, "/ready", " 503 ", "not ready\n");
    notify_ready(notify, "listening");
    expect(port, "/ready", " 200 ", "\r\n\r\nready\n");
    notify_destroy(notify);
}

static void alive_ends_when_the_loop_does_not_go_round(void **state)
{
    (void)state;
    uint32_t port = free_port();
    struct notify *notify = notify_create(nothing, create(port));
    expect(port, "/alive", " 200 ", "\r\n\r\nalive\n");
    uint64_t now_ms = clock_now_ms();
    notify_alive(notify, now_ms - HEALTH_SILENCE_MS);
    expect(port, "/alive", " 503 ", "not alive\n");
    notify_alive(notify, clock_now_ms());
    expect(port, "/alive", " 200 ", "\r\n\r\nalive\n");
    notify_destroy(notify);
}

static void other_requests_are_refused(void **state)
{
    (void)state;
    uint32_t port = free_port();
    struct health *health = create(port);
    char long_path[8192];
    memset(long_path, 'a', sizeof(long_path) - 1);
    long_path[sizeof(long_path) - 1] = '\0';
    memcpy(long_path, "GET /", 5);
    expect(port, "/", " 404 ", "/ready or /alive, or /metrics");
    expect(port, "/../etc/passwd", " 404 ", "/ready or /alive, or /metrics");
    assert_non_null(strstr(ask(port, "POST /ready HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n"
                                     "Connection: close\r\n\r\n"),
                           " 405 "));
    // A body is not read.
    (void)ask(port, "POST /ready HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc");
    (void)ask(port, "\r\n\r\n\x01\x02\x03");
    (void)ask(port, "GET /ready HTTP/9.9\r\nContent-Length: 99999999999999999999\r\n\r\n");
    (void)ask(port, long_path);
    expect(port, "/alive", " 200 ", "alive\n");
    health_destroy(health);
}

static void many_open_descriptors_do_not_matter(void **state)
{
    (void)state;
    static int files[FILES];
    struct rlimit before, limit;
    uint32_t port = free_port();
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    if (before.rlim_max < FILES + 100) {
        print_message("skipped: this user may not open %d files\n", FILES + 100);
        skip();
    }
    limit = before;
    limit.rlim_cur = limit.rlim_max;
    struct health *health = create(port);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    for (size_t i = 0; i < FILES; i++) {
        files[i] = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0);
        assert_true(files[i] >= 0);
    }
    expect(port, "/alive", " 200 ", "alive\n");
    for (size_t i = 0; i < FILES; i++) {
        close(files[i]);
    }
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    health_destroy(health);
}

#define IDLE_COUNT 40

static void many_from_one_address_lose_their_oldest_and_are_no_visitors(void **state)
{
    (void)state;
    uint32_t port = free_port();
    struct health *health = create(port);
    char byte;
    int other = visit(port, 9); // before all of them
    int idle[IDLE_COUNT];
    for (int i = 0; i < IDLE_COUNT; i++) {
        idle[i] = visit(port, 2);
    }
    assert_int_equal(recv(idle[0], &byte, 1, 0), 0); // was closed
    expect(port, "/alive", " 200 ", "alive\n");
    assert_int_equal(recv(idle[IDLE_COUNT - 1], &byte, 1, MSG_DONTWAIT), -1); // was not
    assert_int_equal(errno, EAGAIN);
    const char request[] = "GET /alive HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
    assert_int_equal(send(other, request, strlen(request), MSG_NOSIGNAL), strlen(request));
    assert_int_equal(recv(other, &byte, 1, 0), 1); // nor was the other one's
    assert_int_equal(door_visitor_count(), 0);
    for (int i = 0; i < IDLE_COUNT; i++) {
        close(idle[i]);
    }
    close(other);
    health_destroy(health);
}

struct flood {
    uint32_t port;
    atomic_bool is_over;
    atomic_uint count;
    pthread_t thread;
};

/* Half a request after the other; 200 of them are open at a time. */
static void *pour(void *data)
{
    struct flood *flood = data;
    static const char half[] = "GET /alive HTTP/1.1\r\nHost: ";
    int files[200];
    unsigned count = 0;
    for (; !flood->is_over; count++) {
        int *file = &files[count % 200];
        if (count >= 200) {
            close(*file);
        }
        *file = visit(flood->port, 1);
        (void)send(*file, half, strlen(half), MSG_NOSIGNAL); // it may have had to make room
        flood->count = count + 1;
    }
    for (unsigned i = 0; i < 200 && i < count; i++) {
        close(files[i]);
    }
    return NULL;
}

static void probes_are_answered_while_half_open_requests_go_on(void **state)
{
    (void)state;
    struct flood flood = {.port = free_port()};
    struct health *health = create(flood.port);
    assert_int_equal(pthread_create(&flood.thread, NULL, pour, &flood), 0);
    while (flood.count < 200) {
        sched_yield();
    }
    for (unsigned i = 0; i < 20; i++) {
        // From the address of the flood. One that had to make room asks again, as probes do.
        const char *answer = "";
        for (unsigned tries = 0; tries < 5 && strstr(answer, " 200 ") == NULL; tries++) {
            answer = ask(flood.port, "GET /alive HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
        }
        assert_non_null(strstr(answer, " 200 "));
    }
    flood.is_over = true;
    pthread_join(flood.thread, NULL);
    health_destroy(health);
}

static void a_port_that_is_taken_is_named(void **state)
{
    (void)state;
    uint32_t port = free_port();
    struct health *health = create(port), *second = NULL;
    captured_log_begin();
    enum status status = health_create("127.0.0.1", port, &second);
    const char *log = captured_log_end();
    assert_int_equal(status, STATUS_IO);
    assert_non_null(strstr(log, "--health-port"));
    captured_log_begin();
    status = health_create("localhost", port, &second);
    log = captured_log_end();
    assert_int_equal(status, STATUS_INVALID);
    assert_non_null(strstr(log, "'localhost'"));
    health_destroy(health);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ready_is_said_when_it_is_so),
        cmocka_unit_test(alive_ends_when_the_loop_does_not_go_round),
        cmocka_unit_test(other_requests_are_refused),
        cmocka_unit_test(many_open_descriptors_do_not_matter),
        cmocka_unit_test(many_from_one_address_lose_their_oldest_and_are_no_visitors),
        cmocka_unit_test(probes_are_answered_while_half_open_requests_go_on),
        cmocka_unit_test(a_port_that_is_taken_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
