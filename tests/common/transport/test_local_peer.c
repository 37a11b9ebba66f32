/* Tests of who is at the other end of a connection within this host, and of what the door makes of
 * it: other users take no place of ours. */
#include "common/transport/door.h"
#include "common/transport/local_peer.h"
#include "tests/support/common/listener.h"
#include "tests/support/common/patience.h"

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
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* File descriptors, the room for visitors from one address that they leave, and more than that. */
enum { SCARCE = 256, ROOM = SCARCE / 2 / 2, GUESTS = ROOM + 3 };

static void ones_own_process_is_told_from_one_that_has_hung_up(void **state)
{
    (void)state;
    struct listener listener;
    char address[DOOR_ADDRESS_BYTES], text[DOOR_ADDRESS_BYTES];
    uid_t user = 0;
    int asked = local_peer_open(), pair[2];
    assert_true(asked >= 0);
    listener_open(&listener);
    int guest = listener_visit(&listener, 1, address);
    int fd = accept(listener.fd, NULL, NULL);
    assert_int_equal(local_peer_find(asked, fd, &user), LOCAL_PEER_OWN);
    assert_int_equal(local_peer_find(-1, fd, &user), LOCAL_PEER_UNKNOWN);
    assert_int_equal(shutdown(fd, SHUT_WR), 0); // it hears so, and is still there
    assert_int_equal(local_peer_find(asked, fd, &user), LOCAL_PEER_OWN);
    close(guest);
    assert_int_equal(local_peer_find(asked, fd, &user), LOCAL_PEER_GONE);
    assert_true(door_leave(fd, text));
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    assert_int_equal(local_peer_find(asked, pair[0], &user), LOCAL_PEER_UNKNOWN);
    const int all[] = {fd, listener.fd, asked, pair[0], pair[1]};
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        close(all[i]);
    }
}

/* A process of that user takes all the room that it gets, and holds it until the pipe is closed. */
static pid_t crowd_as(const struct listener *listener, uid_t user, const int until[2])
{
    pid_t child = fork();
    if (child == 0) {
        char byte;
        bool is_there = close(until[1]) == 0 && setuid(user) == 0;
        for (unsigned i = 0; i < GUESTS && is_there; i++) {
            int fd = socket(AF_INET, SOCK_STREAM, 0);
            is_there = connect(fd, (const struct sockaddr *)&listener->address,
                               sizeof(listener->address)) == 0;
        }
        _exit(is_there && read(until[0], &byte, 1) == 0 ? 0 : 1);
    }
    assert_true(child > 0);
    return child;
}

/* Accepts `count` connections, in which some are turned away; how many may stay. */
static unsigned take_crowd(const struct listener *listener, unsigned count, int *taken)
{
    unsigned stay = 0, away = 0;
    struct pollfd item = {.fd = listener->fd, .events = POLLIN};
    while (stay + away < count) {
        assert_int_equal(poll(&item, 1, patience_ms(60000)), 1);
        int fd = accept(listener->fd, NULL, NULL);
        if (fd >= 0) {
            taken[stay++] = fd;
        }
        away += (unsigned)door_take_turned_away().count;
    }
    return stay;
}

static void other_users_of_the_host_take_no_place_of_ours(void **state)
{
    (void)state;
    struct listener listener;
    char address[DOOR_ADDRESS_BYTES], text[DOOR_ADDRESS_BYTES];
    int taken[GUESTS], until[2], result;
    if (geteuid() != 0) {
        print_message("skipped: only root can be somebody else\n");
        skip();
    }
    door_open();
    struct rlimit before = listener_limit_descriptors(SCARCE);
    listener_open(&listener);
    assert_int_equal(pipe2(until, O_CLOEXEC), 0);
    pid_t child = crowd_as(&listener, 4711, until);
    unsigned stay = take_crowd(&listener, GUESTS, taken);
    assert_in_range(stay, 1, SCARCE / 8); // who has keys may still come
    // As many of ours as there is room for come in; then it is full for them, too.
    int own[SCARCE / 2], fds[SCARCE / 2];
    unsigned ours = 0;
    for (;; ours++) {
        own[ours] = listener_visit(&listener, 1, address);
        fds[ours] = accept(listener.fd, NULL, NULL);
        if (fds[ours] < 0) {
            break;
        }
    }
    assert_true(ours > ROOM / 2);
    listener_assert_closed(own[ours]);
    close(own[ours]);
    close(until[1]);
    assert_int_equal(waitpid(child, &result, 0), child);
    assert_int_equal(result, 0);
    for (unsigned i = 0; i < ours; i++) {
        assert_true(door_leave(fds[i], text));
        close(fds[i]);
        close(own[i]);
    }
    for (unsigned i = 0; i < stay; i++) {
        assert_true(door_leave(taken[i], text));
        close(taken[i]);
    }
    assert_int_equal(door_visitor_count(), 0);
    close(until[0]);
    close(listener.fd);
    setrlimit(RLIMIT_NOFILE, &before);
}

static void who_has_hung_up_already_does_not_come_in(void **state)
{
    (void)state;
    struct listener listener;
    char address[DOOR_ADDRESS_BYTES];
    const struct linger at_once = {.l_onoff = 1};
    (void)door_take_turned_away();
    door_open();
    listener_open(&listener);
    for (unsigned is_reset = 0; is_reset < 2; is_reset++) {
        int gone = listener_visit(&listener, 1, address);
        if (is_reset == 1) {
            setsockopt(gone, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
        }
        close(gone);
        assert_int_equal(accept(listener.fd, NULL, NULL), -1);
        assert_int_equal(errno, ECONNABORTED);
        struct door_turned_away turned = door_take_turned_away();
        assert_int_equal(turned.count, 1);
        assert_string_equal(turned.why, "it has hung up without a word");
    }
    assert_int_equal(door_visitor_count(), 0);
    close(listener.fd);
}

/* Who listens is asked about no more than it must: a crowd is turned away in one go. */
static void a_crowd_is_turned_away_in_one_call(void **state)
{
    (void)state;
    struct listener listener;
    char address[DOOR_ADDRESS_BYTES], text[DOOR_ADDRESS_BYTES];
    door_open();
    listener_open(&listener);
    for (unsigned i = 0; i < 20; i++) {
        close(listener_visit(&listener, 1, address));
    }
    int guest = listener_visit(&listener, 1, address), fd = accept(listener.fd, NULL, NULL);
    assert_true(fd >= 0); // behind all of them
    assert_int_equal(door_take_turned_away().count, 20);
    assert_true(door_leave(fd, text));
    assert_string_equal(text, address);
    close(fd);
    close(guest);
    close(listener.fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ones_own_process_is_told_from_one_that_has_hung_up),
        cmocka_unit_test(other_users_of_the_host_take_no_place_of_ours),
        cmocka_unit_test(who_has_hung_up_already_does_not_come_in),
        cmocka_unit_test(a_crowd_is_turned_away_in_one_call),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
