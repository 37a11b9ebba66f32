/* Tests of the door: who comes in is known, nobody takes all the room, and it never runs out. */
#include "common/base/clock.h"
#include "common/security/security.h"
#include "common/transport/door.h"
#include "tests/support/common/listener.h"
#include "tests/support/common/squatter.h"

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
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

static void who_comes_is_a_visitor_until_it_is_admitted(void **state)
{
    (void)state;
    struct listener listener;
    struct sockaddr_in from = {0};
    socklen_t size = sizeof(from);
    char address[DOOR_ADDRESS_BYTES], text[DOOR_ADDRESS_BYTES];
    listener_open(&listener);
    int guest = listener_visit(&listener, 1, address);
    int fd = accept(listener.fd, (struct sockaddr *)&from, &size);
    assert_true(fd >= 0);
    assert_int_equal(from.sin_addr.s_addr, htonl(INADDR_LOOPBACK)); // as accept tells it
    assert_int_equal(door_visitor_count(), 1);
    door_admit(fd);
    assert_int_equal(door_visitor_count(), 0);
    assert_false(door_leave(fd, text));
    door_admit(12345); // nobody
    close(fd);
    close(guest);
    close(listener.fd);
}

static void who_leaves_without_a_word_is_named(void **state)
{
    (void)state;
    struct listener listener;
    char addresses[3][DOOR_ADDRESS_BYTES], text[DOOR_ADDRESS_BYTES];
    int guests[3], fds[3];
    listener_open(&listener);
    for (unsigned i = 0; i < 3; i++) {
        guests[i] = listener_visit(&listener, (unsigned char)(i + 1), addresses[i]);
        fds[i] = accept4(listener.fd, NULL, NULL, SOCK_CLOEXEC);
        assert_true(fds[i] >= 0);
        assert_int_equal(fcntl(fds[i], F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
    }
    const unsigned order[] = {1, 0, 2};
    for (unsigned i = 0; i < 3; i++) {
        assert_true(door_leave(fds[order[i]], text));
        assert_string_equal(text, addresses[order[i]]);
        assert_false(door_leave(fds[order[i]], text));
        close(fds[order[i]]);
        close(guests[order[i]]);
    }
    assert_int_equal(door_visitor_count(), 0);
    close(listener.fd);
}

static void who_has_shown_a_key_is_told_from_who_has_not(void **state)
{
    (void)state;
    struct listener listener;
    static const unsigned char hosts[] = {1, 1, 2};
    char address[DOOR_ADDRESS_BYTES];
    int guests[3], fds[3];
    listener_open(&listener);
    for (unsigned i = 0; i < 3; i++) {
        guests[i] = listener_visit(&listener, hosts[i], address);
        fds[i] = accept(listener.fd, NULL, NULL);
        assert_true(fds[i] >= 0);
    }
    door_note_key("127.0.0.1"); // the last one from there
    door_note_key("127.0.0.3"); // nobody
    door_note_key("nowhere");
    static const enum door_visit expected[] = {DOOR_VISIT, DOOR_KEY, DOOR_VISIT};
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(door_leave(fds[i], address), expected[i]);
        close(fds[i]);
        close(guests[i]);
    }
    close(listener.fd);
}

static void a_descriptor_that_is_used_again_has_two_visitors_in_turn(void **state)
{
    (void)state;
    struct listener listener;
    char first[DOOR_ADDRESS_BYTES], second[DOOR_ADDRESS_BYTES], text[DOOR_ADDRESS_BYTES];
    listener_open(&listener);
    int guest = listener_visit(&listener, 1, first), other = listener_visit(&listener, 1, second);
    int fd = accept(listener.fd, NULL, NULL);
    close(fd); // which is told later
    assert_int_equal(accept(listener.fd, NULL, NULL), fd);
    assert_true(door_leave(fd, text));
    assert_string_equal(text, first);
    assert_true(door_leave(fd, text));
    assert_string_equal(text, second);
    close(fd);
    close(guest);
    close(other);
    close(listener.fd);
}

/* As when all members make new connections at once: what is told last is the end of the old ones.
 */
static void the_end_of_one_that_was_admitted_is_not_that_of_the_next_one_there(void **state)
{
    (void)state;
    struct listener listener;
    char address[DOOR_ADDRESS_BYTES], text[DOOR_ADDRESS_BYTES];
    listener_open(&listener);
    int guest = listener_visit(&listener, 1, address),
        other = listener_visit(&listener, 1, address);
    int fd = accept(listener.fd, NULL, NULL);
    door_admit(fd);
    close(fd); // which is told later
    assert_int_equal(accept(listener.fd, NULL, NULL), fd);
    assert_int_equal(door_leave(fd, text), DOOR_NO_VISIT);
    assert_int_equal(door_visitor_count(), 1);
    assert_int_equal(door_leave(fd, text), DOOR_VISIT);
    assert_string_equal(text, address);
    close(fd);
    close(guest);
    close(other);
    close(listener.fd);
}

/* Guests of 127.0.0.1, and the room that there is for them. */
enum { SCARCE = 256, ROOM = SCARCE / 2 / 2, GUESTS = ROOM + 3 };

struct guests {
    int own[GUESTS], taken[GUESTS];   // their ends, and ours; -1: turned away
    char address[DOOR_ADDRESS_BYTES]; // of the last
};

static void invite(const struct listener *listener, struct guests *guests)
{
    for (unsigned i = 0; i < GUESTS; i++) {
        guests->own[i] = listener_visit(listener, 1, guests->address);
        guests->taken[i] = accept(listener->fd, NULL, NULL);
        assert_int_equal(guests->taken[i] >= 0, i < ROOM);
        if (i >= ROOM) {
            assert_int_equal(errno, ECONNABORTED);
            listener_assert_closed(guests->own[i]);
        }
    }
}

static void see_off(struct guests *guests)
{
    char text[DOOR_ADDRESS_BYTES];
    for (unsigned i = 0; i < GUESTS; i++) {
        close(guests->own[i]);
        if (guests->taken[i] >= 0) {
            door_leave(guests->taken[i], text);
            close(guests->taken[i]);
        }
    }
}

static void one_address_gets_half_of_the_room(void **state)
{
    (void)state;
    struct listener listener;
    static struct guests guests;
    char address[DOOR_ADDRESS_BYTES], text[DOOR_ADDRESS_BYTES];
    struct rlimit before = listener_limit_descriptors(SCARCE);
    listener_open(&listener);
    invite(&listener, &guests);
    struct door_turned_away turned = door_take_turned_away();
    assert_int_equal(turned.count, GUESTS - ROOM);
    assert_string_equal(turned.address, guests.address);
    assert_non_null(strstr(turned.why, "said nothing so far"));
    assert_int_equal(door_take_turned_away().count, 0);
    // Others still come in, and so does the next one from there, once one has spoken.
    const unsigned char hosts[] = {2, 1};
    for (unsigned i = 0; i < 2; i++) {
        int guest = listener_visit(&listener, hosts[i], address),
            fd = accept(listener.fd, NULL, NULL);
        assert_true(fd >= 0);
        assert_true(door_leave(fd, text));
        assert_string_equal(text, address);
        close(fd);
        close(guest);
        door_admit(guests.taken[0]);
    }
    see_off(&guests);
    assert_int_equal(door_visitor_count(), 0);
    close(listener.fd);
    setrlimit(RLIMIT_NOFILE, &before);
}

static bool is_open(int fd)
{
    char byte;
    return recv(fd, &byte, 1, MSG_DONTWAIT) < 0 && errno == EAGAIN;
}

/* Whoever holds all the connections that there is room for keeps nobody out. */
static void the_oldest_that_says_nothing_makes_room_for_the_next(void **state)
{
    (void)state;
    enum { COUNT = 3 };
    struct listener listener;
    static struct guests guests;
    char address[DOOR_ADDRESS_BYTES], text[DOOR_ADDRESS_BYTES];
    int later[COUNT], later_fds[COUNT];
    struct rlimit before = listener_limit_descriptors(SCARCE);
    listener_open(&listener);
    invite(&listener, &guests); // there is no room for more
    door_take_turned_away();
    door_end_visits(door_listener_id(listener.fd), clock_now_ms() + DOOR_SETTLE_MS);
    door_admit(guests.taken[1]); // a member: there is room for one
    for (unsigned i = 0; i < COUNT; i++) {
        later[i] = listener_visit(&listener, 1, address);
        later_fds[i] = accept(listener.fd, NULL, NULL);
        assert_true(later_fds[i] >= 0);
    }
    const unsigned gone[] = {0, 2};
    for (unsigned i = 0; i < 2; i++) {
        listener_assert_closed(guests.own[gone[i]]);
        assert_true(door_leave(guests.taken[gone[i]], text));
    }
    assert_true(is_open(guests.own[1]) && is_open(guests.own[3]));
    assert_int_equal(door_take_turned_away().count, 0);
    for (unsigned i = 0; i < COUNT; i++) {
        assert_true(is_open(later[i]));
        assert_true(door_leave(later_fds[i], text));
        close(later_fds[i]);
        close(later[i]);
    }
    see_off(&guests);
    assert_int_equal(door_visitor_count(), 0);
    close(listener.fd);
    setrlimit(RLIMIT_NOFILE, &before);
}

static void the_last_descriptors_are_not_given_to_strangers(void **state)
{
    (void)state;
    enum { DESCRIPTORS = 64, RESERVE = DESCRIPTORS / 4 };
    struct listener listener;
    char address[DOOR_ADDRESS_BYTES];
    int taken[DESCRIPTORS];
    unsigned count = 0;
    listener_open(&listener);
    int guest = listener_visit(&listener, 1, address);
    struct rlimit before = listener_limit_descriptors(DESCRIPTORS);
    do {
        taken[count] = dup(STDIN_FILENO);
    } while (taken[count++] < DESCRIPTORS - RESERVE - 1);
    assert_int_equal(accept(listener.fd, NULL, NULL), -1);
    assert_int_equal(errno, ECONNABORTED);
    listener_assert_closed(guest);
    assert_non_null(strstr(door_take_turned_away().why, "too few file descriptors are left"));
    assert_int_equal(door_visitor_count(), 0);
    while (count > 0) {
        close(taken[--count]);
    }
    setrlimit(RLIMIT_NOFILE, &before);
    close(guest);
    close(listener.fd);
}

static void without_any_descriptor_nobody_is_kept_waiting(void **state)
{
    (void)state;
    enum { DESCRIPTORS = 64 };
    struct listener listener;
    char address[DOOR_ADDRESS_BYTES];
    int taken[DESCRIPTORS];
    unsigned count = 0;
    door_open();
    listener_open(&listener);
    int guest = listener_visit(&listener, 1, address);
    struct rlimit before = listener_limit_descriptors(DESCRIPTORS);
    while ((taken[count] = dup(STDIN_FILENO)) >= 0) {
        count++;
    }
    assert_int_equal(errno, EMFILE);
    // Not EMFILE, at which libzmq ends the process; and not again for the same one.
    assert_int_equal(accept(listener.fd, NULL, NULL), -1);
    assert_int_equal(errno, ECONNABORTED);
    struct pollfd item = {.fd = listener.fd, .events = POLLIN};
    assert_int_equal(poll(&item, 1, 0), 0);
    listener_assert_closed(guest);
    struct door_turned_away turned = door_take_turned_away();
    assert_int_equal(turned.count, 1);
    assert_string_equal(turned.address, address);
    while (count > 0) {
        close(taken[--count]);
    }
    setrlimit(RLIMIT_NOFILE, &before);
    close(guest);
    close(listener.fd);
}

/* A process of that user connects to the Unix socket and waits until it is closed. */
static pid_t visit_as(const struct sockaddr_un *address, socklen_t size, uid_t user)
{
    pid_t child = fork();
    if (child == 0) {
        char byte;
        int fd = socket(AF_UNIX, SOCK_STREAM, 0);
        bool is_connected =
            setuid(user) == 0 && connect(fd, (const struct sockaddr *)address, size) == 0;
        _exit(is_connected && read(fd, &byte, 1) <= 0 ? 0 : 1);
    }
    assert_true(child > 0);
    return child;
}

static void a_process_of_another_user_does_not_come_in(void **state)
{
    (void)state;
    if (geteuid() != 0) {
        print_message("skipped: only root can be somebody else\n");
        skip();
    }
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int wrote = snprintf(address.sun_path + 1, sizeof(address.sun_path) - 1, "ringside-test-%ld",
                         (long)getpid());
    socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)wrote);
    int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), result;
    assert_int_equal(bind(listener, (struct sockaddr *)&address, size), 0);
    assert_int_equal(listen(listener, 4), 0);
    const uid_t users[] = {4711, 0};
    for (unsigned i = 0; i < 2; i++) {
        pid_t child = visit_as(&address, size, users[i]);
        int fd = accept(listener, NULL, NULL);
        assert_int_equal(fd >= 0, users[i] == 0);
        if (fd >= 0) {
            close(fd);
        }
        assert_int_equal(waitpid(child, &result, 0), child);
        assert_int_equal(result, 0);
        struct door_turned_away turned = door_take_turned_away();
        assert_int_equal(turned.count, users[i] == 0 ? 0 : 1);
        if (turned.count > 0) {
            assert_non_null(strstr(turned.address, "of user 4711"));
            assert_string_equal(turned.why, "it belongs to another user");
        }
    }
    assert_int_equal(door_visitor_count(), 0);
    close(listener);
}

/* Says something to it, if it gets through; the error otherwise. */
static int say_to(const struct squatter *squatter)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    int error =
        connect(fd, (const struct sockaddr *)&squatter->address, squatter->size) != 0 ? errno : 0;
    (void)send(fd, "x", 1, MSG_NOSIGNAL); // also after a failure: it must not get there
    close(fd);
    return error;
}

static void nothing_is_said_to_another_user_at_a_name_of_ours(void **state)
{
    (void)state;
    if (geteuid() != 0) {
        print_message("skipped: only root can be somebody else\n");
        skip();
    }
    struct squatter squatter;
    char address[DOOR_ADDRESS_BYTES] = "", expected[DOOR_ADDRESS_BYTES];
    (void)door_take_turned_away();
    squatter_open(&squatter, SECURITY_NAME_PREFIX, 4711);
    assert_false(door_find_stranger(squatter.address.sun_path + 1, address));
    assert_int_equal(say_to(&squatter), ECONNREFUSED);
    assert_true(door_find_stranger(squatter.address.sun_path + 1, address));
    snprintf(expected, sizeof(expected), "process %ld of user 4711", (long)squatter.child);
    assert_string_equal(address, expected);
    assert_false(squatter_close(&squatter));
    struct door_turned_away turned = door_take_turned_away();
    assert_int_equal(turned.count, 1);
    assert_string_equal(turned.address, expected);
    assert_non_null(strstr(turned.why, "it listens where a member of this job should"));
    // Ours are spoken to, and so are other programs' daemons.
    squatter_open(&squatter, SECURITY_NAME_PREFIX, 0);
    assert_int_equal(say_to(&squatter), 0);
    assert_true(squatter_close(&squatter));
    squatter_open(&squatter, "daemon-", 4711);
    assert_int_equal(say_to(&squatter), 0);
    assert_true(squatter_close(&squatter));
    assert_int_equal(door_take_turned_away().count, 0);
}

static void who_says_nothing_for_long_is_sent_away_at_the_second_look(void **state)
{
    (void)state;
    struct listener listener, other;
    char address[DOOR_ADDRESS_BYTES], text[DOOR_ADDRESS_BYTES], byte;
    listener_open(&listener);
    listener_open(&other);
    int guest = listener_visit(&listener, 1, address), elsewhere = listener_visit(&other, 1, text);
    int fd = accept(listener.fd, NULL, NULL), other_fd = accept(other.fd, NULL, NULL);
    uint64_t late_ms = clock_now_ms() + DOOR_VISIT_MS;
    door_end_visits(door_listener_id(listener.fd), late_ms - DOOR_VISIT_MS / 2);
    door_end_visits(door_listener_id(listener.fd), late_ms - DOOR_VISIT_MS / 2);
    door_end_visits(door_listener_id(listener.fd), late_ms);
    assert_int_equal(recv(guest, &byte, 1, MSG_DONTWAIT), -1);
    assert_int_equal(errno, EAGAIN);
    door_end_visits(door_listener_id(listener.fd), late_ms + 1000);
    listener_assert_closed(guest);
    assert_int_equal(recv(elsewhere, &byte, 1, MSG_DONTWAIT), -1);
    assert_int_equal(errno, EAGAIN);
    assert_int_equal(door_visitor_count(), 2);
    assert_true(door_leave(fd, text));
    assert_string_equal(text, address);
    door_admit(other_fd);
    const int all[] = {guest, elsewhere, fd, other_fd, listener.fd, other.fd};
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        close(all[i]);
    }
}

static void who_has_the_descriptor_of_one_that_has_gone_stays(void **state)
{
    (void)state;
    struct listener listener;
    char address[DOOR_ADDRESS_BYTES], text[DOOR_ADDRESS_BYTES], byte;
    int pair[2];
    listener_open(&listener);
    int guest = listener_visit(&listener, 1, address);
    int fd = accept(listener.fd, NULL, NULL);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    assert_int_equal(dup2(pair[0], fd), fd); // closes it, which nobody has told yet
    for (unsigned i = 0; i < 3; i++) {
        door_end_visits(door_listener_id(listener.fd),
                        clock_now_ms() + DOOR_VISIT_MS + UINT64_C(1000) * i);
    }
    assert_int_equal(recv(pair[1], &byte, 1, MSG_DONTWAIT), -1);
    assert_int_equal(errno, EAGAIN);
    assert_true(door_leave(fd, text));
    const int all[] = {guest, fd, pair[0], pair[1], listener.fd};
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        close(all[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_says_nothing_for_long_is_sent_away_at_the_second_look),
        cmocka_unit_test(who_has_the_descriptor_of_one_that_has_gone_stays),
        cmocka_unit_test(who_comes_is_a_visitor_until_it_is_admitted),
        cmocka_unit_test(who_leaves_without_a_word_is_named),
        cmocka_unit_test(the_end_of_one_that_was_admitted_is_not_that_of_the_next_one_there),
        cmocka_unit_test(who_has_shown_a_key_is_told_from_who_has_not),
        cmocka_unit_test(a_descriptor_that_is_used_again_has_two_visitors_in_turn),
        cmocka_unit_test(one_address_gets_half_of_the_room),
        cmocka_unit_test(the_oldest_that_says_nothing_makes_room_for_the_next),
        cmocka_unit_test(the_last_descriptors_are_not_given_to_strangers),
        cmocka_unit_test(without_any_descriptor_nobody_is_kept_waiting),
        cmocka_unit_test(a_process_of_another_user_does_not_come_in),
        cmocka_unit_test(nothing_is_said_to_another_user_at_a_name_of_ours),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
