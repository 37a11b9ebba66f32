/* Tests of notices to the service manager, on sockets of the real kind. */
#include "common/service/notify.h"
#include "tests/support/common/captured_log.h"
#include "tests/support/common/temp_folder.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* The manager's side. */
static struct {
    char socket[128], watchdog_us[32], process[32];
} environment;

static char *get(const char *name)
{
    char *value = strcmp(name, "NOTIFY_SOCKET") == 0   ? environment.socket
                  : strcmp(name, "WATCHDOG_USEC") == 0 ? environment.watchdog_us
                  : strcmp(name, "WATCHDOG_PID") == 0  ? environment.process
                                                       : NULL;
    return value != NULL && value[0] != '\0' ? value : NULL;
}

static void set_environment(const char *socket_name, const char *watchdog_us, const char *process)
{
    snprintf(environment.socket, sizeof(environment.socket), "%s", socket_name);
    snprintf(environment.watchdog_us, sizeof(environment.watchdog_us), "%s", watchdog_us);
    snprintf(environment.process, sizeof(environment.process), "%s", process);
}

/* A socket that listens at the name, as NOTIFY_SOCKET has it. */
static int listen_at(const char *name)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    size_t size = strlen(name);
    assert_in_range(size, 2, sizeof(address.sun_path) - 1);
    memcpy(address.sun_path, name, size);
    if (name[0] == '@') {
        address.sun_path[0] = '\0';
    }
    int file = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    assert_true(file >= 0);
    assert_int_equal(bind(file, (const struct sockaddr *)&address,
                          (socklen_t)(offsetof(struct sockaddr_un, sun_path) + size)),
                     0);
    return file;
}

/* Sends as somebody else would, without waiting; 0 if it was taken. */
static int send_to(const char *name, const char *text)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    memcpy(address.sun_path + 1, name + 1, strlen(name) - 1);
    int file = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    ssize_t sent = sendto(file, text, strlen(text), MSG_DONTWAIT, (const struct sockaddr *)&address,
                          (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(name)));
    close(file);
    return sent >= 0 ? 0 : -1;
}

/* The datagram that is there; "" if there is none. */
static const char *receive(int file)
{
    static char text[1024];
    ssize_t size = recv(file, text, sizeof(text) - 1, MSG_DONTWAIT);
    assert_true(size >= 0 || errno == EAGAIN);
    text[size > 0 ? size : 0] = '\0';
    return text;
}

static void tell_all(const char *name)
{
    int file = listen_at(name);
    set_environment(name, "2000000", "");
    struct notify *notify = notify_create(get, NULL);
    assert_string_equal(receive(file), "");
    notify_ready(notify, "listening at tcp://127.0.0.1:5555");
    assert_string_equal(receive(file), "READY=1\nSTATUS=listening at tcp://127.0.0.1:5555\n");
    notify_alive(notify, 5000);
    assert_string_equal(receive(file), "WATCHDOG=1\n");
    notify_stopping(notify);
    assert_string_equal(receive(file), "STOPPING=1\n");
    notify_destroy(notify);
    close(file);
}

static void a_socket_in_a_folder_is_told(void **state)
{
    (void)state;
    char name[128], *folder = temp_folder_create();
    snprintf(name, sizeof(name), "%s/notify", folder);
    tell_all(name);
    temp_folder_destroy(folder);
}

static void an_abstract_socket_is_told(void **state)
{
    (void)state;
    char name[128];
    snprintf(name, sizeof(name), "@ringside-test-%d", (int)getpid());
    tell_all(name);
}

static void signs_of_life_are_sent_twice_in_the_time(void **state)
{
    (void)state;
    char name[128];
    snprintf(name, sizeof(name), "@ringside-test-alive-%d", (int)getpid());
    int file = listen_at(name);
    set_environment(name, "10000000", "");
    struct notify *notify = notify_create(get, NULL);
    unsigned count = 0;
    for (uint64_t now_ms = 1000000; now_ms <= 1060000; now_ms += 50) {
        notify_alive(notify, now_ms);
        count += strcmp(receive(file), "WATCHDOG=1\n") == 0;
    }
    assert_int_equal(count, 13); // at once, then every 5 s
    notify_destroy(notify);
    close(file);
}

static void nobody_waits_for_signs_of_life_without_a_watchdog(void **state)
{
    (void)state;
    static const char *const cases[][2] = {{"", ""}, {"0", ""}, {"soon", ""}, {"2000000", "1"}};
    char name[128];
    snprintf(name, sizeof(name), "@ringside-test-none-%d", (int)getpid());
    int file = listen_at(name);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        set_environment(name, cases[i][0], cases[i][1]);
        struct notify *notify = notify_create(get, NULL);
        assert_non_null(notify);
        notify_alive(notify, 1000000);
        assert_string_equal(receive(file), "");
        notify_destroy(notify);
    }
    char process[32];
    snprintf(process, sizeof(process), "%d", (int)getpid());
    set_environment(name, "2000000", process);
    struct notify *notify = notify_create(get, NULL);
    notify_alive(notify, 1000000);
    assert_string_equal(receive(file), "WATCHDOG=1\n");
    notify_destroy(notify);
    close(file);
}

/* A manager that does not read is not waited for. */
static void ready_is_said_again_until_it_was_taken(void **state)
{
    (void)state;
    char name[128];
    snprintf(name, sizeof(name), "@ringside-test-full-%d", (int)getpid());
    int file = listen_at(name);
    set_environment(name, "", "");
    struct notify *notify = notify_create(get, NULL);
    // A queue takes few; what is said is said again until it is taken.
    unsigned filled = 0;
    while (send_to(name, "noise") == 0) {
        filled++;
    }
    notify_ready(notify, "once more");
    for (; filled > 0; filled--) {
        assert_string_equal(receive(file), "noise");
    }
    assert_string_equal(receive(file), "");
    notify_alive(notify, 1000000);
    assert_string_equal(receive(file), "READY=1\nSTATUS=once more\n");
    notify_alive(notify, 1000001);
    assert_string_equal(receive(file), "");
    notify_destroy(notify);
    close(file);
}

static void a_missing_or_bad_socket_is_no_error(void **state)
{
    (void)state;
    char longest[128];
    memset(longest, 'a', sizeof(longest) - 1);
    longest[0] = '/';
    longest[sizeof(longest) - 1] = '\0';
    const char *const names[] = {
        "", "relative", "/", "@", "vsock:2:1234", "/nowhere/at/all", "/dev/null", longest};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        set_environment(names[i], "2000000", "");
        captured_log_begin();
        struct notify *notify = notify_create(get, NULL);
        notify_ready(notify, "fine");
        notify_alive(notify, 1000000);
        notify_stopping(notify);
        notify_destroy(notify);
        captured_log_end();
    }
    notify_ready(NULL, "fine");
    notify_alive(NULL, 0);
    notify_stopping(NULL);
    notify_destroy(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_socket_in_a_folder_is_told),
        cmocka_unit_test(an_abstract_socket_is_told),
        cmocka_unit_test(signs_of_life_are_sent_twice_in_the_time),
        cmocka_unit_test(nobody_waits_for_signs_of_life_without_a_watchdog),
        cmocka_unit_test(ready_is_said_again_until_it_was_taken),
        cmocka_unit_test(a_missing_or_bad_socket_is_no_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
