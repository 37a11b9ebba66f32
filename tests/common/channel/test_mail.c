/* Tests of headers by shared memory: what is posted is taken, in its order; a sleeper is rung;
 * whatever lies in a peer's memory, nothing crashes. */
#include "common/base/random.h"
#include "common/channel/mail.h"
#include "tests/support/common/captured_log.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define QUEUE_LENGTH 64

enum { US = 3, THEM = 9 }; // each side's number for the other

struct two {
    struct mail us, them;
    struct mail_peer to_them, to_us; // ours, which we know as THEM, and theirs
};

/* Both sides have offered and taken. */
static void open_two(struct two *two)
{
    struct mail_offer offer;
    *two = (struct two){.to_them = {.peer = THEM}, .to_us = {.peer = US}};
    assert_int_equal(mail_open(&two->us, &two->to_them, &offer), STATUS_OK);
    mail_offered(&two->to_them);
    assert_int_equal(mail_map(&two->to_us, &offer), STATUS_OK);
    assert_int_equal(mail_open(&two->them, &two->to_us, &offer), STATUS_OK);
    mail_offered(&two->to_us);
    assert_int_equal(mail_map(&two->to_them, &offer), STATUS_OK);
    mail_begin(&two->to_them);
    mail_begin(&two->to_us);
}

static void close_two(struct two *two)
{
    mail_finish(&two->us);
    mail_forget(&two->to_them);
    mail_finish(&two->them);
    mail_forget(&two->to_us);
}

static bool post_number(struct two *two, uint32_t number)
{
    return mail_post(&two->to_them, &number, sizeof(number));
}

static void take_number(struct two *two, uint32_t expected)
{
    struct mail_taken taken;
    uint32_t number;
    assert_true(mail_take(&two->them, &taken));
    assert_int_equal(taken.peer, US);
    assert_int_equal(taken.size, sizeof(number));
    memcpy(&number, taken.header, sizeof(number));
    assert_int_equal(number, expected);
}

static void nothing_to_take(struct two *two)
{
    struct mail_taken taken;
    assert_false(mail_is_due(&two->them));
    assert_false(mail_take(&two->them, &taken));
}

static void what_is_posted_is_taken_in_its_order(void **state)
{
    (void)state;
    struct two two;
    open_two(&two);
    nothing_to_take(&two);
    for (uint32_t i = 0; i < 10 * QUEUE_LENGTH; i += 3) {
        for (uint32_t k = i; k < i + 3; k++) {
            assert_true(post_number(&two, k));
        }
        for (uint32_t k = i; k < i + 3; k++) {
            take_number(&two, k);
        }
        nothing_to_take(&two);
    }
    struct mail_taken taken;
    assert_true(mail_post(&two.to_us, "back", 4));
    assert_true(mail_take_of(&two.us, &two.to_them, &taken));
    assert_memory_equal(taken.header, "back", 4);
    close_two(&two);
}

static void a_full_queue_has_room_again_once_one_was_taken(void **state)
{
    (void)state;
    struct two two;
    open_two(&two);
    for (uint32_t i = 0; i < QUEUE_LENGTH; i++) {
        assert_true(post_number(&two, i));
    }
    assert_false(post_number(&two, QUEUE_LENGTH));
    take_number(&two, 0);
    assert_true(post_number(&two, QUEUE_LENGTH));
    assert_false(post_number(&two, QUEUE_LENGTH));
    for (uint32_t i = 1; i <= QUEUE_LENGTH; i++) {
        take_number(&two, i);
    }
    close_two(&two);
}

static void what_does_not_fit_or_nobody_reads_goes_by_the_socket(void **state)
{
    (void)state;
    struct two two;
    const unsigned char header[MAIL_BYTES + 1] = {7};
    open_two(&two);
    assert_true(mail_post(&two.to_them, header, MAIL_BYTES));
    assert_false(mail_post(&two.to_them, header, MAIL_BYTES + 1));
    close_two(&two);

    // Until the other side has said that it has mapped ours, and we have mapped its.
    struct mail us = {0}, them = {0};
    struct mail_peer to_them = {.peer = THEM}, to_us = {.peer = US};
    struct mail_offer ours, theirs;
    assert_false(mail_post(&to_them, header, 4));
    assert_int_equal(mail_open(&us, &to_them, &ours), STATUS_OK);
    assert_int_equal(mail_open(&them, &to_us, &theirs), STATUS_OK);
    mail_begin(&to_them);
    assert_false(mail_post(&to_them, header, 4));
    assert_int_equal(mail_map(&to_them, &theirs), STATUS_OK);
    assert_true(mail_post(&to_them, header, 4));
    mail_finish(&us);
    mail_forget(&to_them);
    mail_finish(&them);
    mail_forget(&to_us);
}

static void a_message_by_the_socket_keeps_its_place(void **state)
{
    (void)state;
    struct two two;
    open_two(&two);
    post_number(&two, 1);
    mail_note_sent(&two.to_them);
    post_number(&two, 2);
    mail_note_sent(&two.to_them);
    mail_note_sent(&two.to_them);
    post_number(&two, 3);
    take_number(&two, 1);
    nothing_to_take(&two);
    mail_note_received(&two.to_us);
    take_number(&two, 2);
    mail_note_received(&two.to_us);
    nothing_to_take(&two);
    mail_note_received(&two.to_us);
    take_number(&two, 3);
    close_two(&two);
}

static bool is_rung(const struct mail *mail)
{
    struct pollfd bell = {.fd = mail->bell, .events = POLLIN};
    return poll(&bell, 1, 0) == 1;
}

static void a_sleeper_is_rung_and_who_is_awake_is_not(void **state)
{
    (void)state;
    struct two two;
    open_two(&two);
    post_number(&two, 0);
    assert_false(is_rung(&two.them));
    assert_false(mail_sleep(&two.them)); // there is something to do
    take_number(&two, 0);
    for (uint32_t i = 1; i < 5; i++) {
        assert_true(mail_sleep(&two.them));
        assert_false(is_rung(&two.them));
        post_number(&two, i);
        assert_true(is_rung(&two.them));
        mail_silence(&two.them);
        post_number(&two, i + 100); // it has heard the first
        assert_false(is_rung(&two.them));
        mail_wake(&two.them);
        post_number(&two, i + 200);
        assert_false(is_rung(&two.them));
        take_number(&two, i);
        take_number(&two, i + 100);
        take_number(&two, i + 200);
    }
    close_two(&two);
}

/* A process of that user tries to have the bell, in every way that /proc has. True: it could not.
 */
static bool is_closed_to(const struct mail *mail, uid_t user)
{
    char path[64];
    int result;
    snprintf(path, sizeof(path), "/proc/%ld/fd/%d", (long)getpid(), mail->bell);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        const int ways[] = {O_RDONLY, O_WRONLY, O_RDWR};
        bool is_open = setgid(user) != 0 || setuid(user) != 0;
        for (unsigned i = 0; i < 3; i++) {
            is_open = open(path, ways[i] | O_NONBLOCK | O_CLOEXEC) >= 0 || is_open;
        }
        _exit(is_open ? 1 : 0);
    }
    assert_int_equal(waitpid(child, &result, 0), child);
    return WIFEXITED(result) && WEXITSTATUS(result) == 0;
}

static void nobody_of_another_user_can_ring_or_fill_the_bell(void **state)
{
    (void)state;
    struct two two;
    if (geteuid() != 0) {
        print_message("skipped: only root can be somebody else\n");
        skip();
    }
    open_two(&two);
    assert_true(is_closed_to(&two.them, 4711));
    assert_false(is_closed_to(&two.them, 0));
    close_two(&two);
}

/* As after very many rings that nobody has heard. */
static void a_bell_that_is_full_wakes_as_well(void **state)
{
    (void)state;
    struct two two;
    open_two(&two);
    assert_true(mail_sleep(&two.them));
    while (write(two.them.bell_end, "", 1) == 1) {
    }
    mail_silence(&two.them);
    post_number(&two, 1);
    assert_true(is_rung(&two.them));
    mail_wake(&two.them);
    take_number(&two, 1);
    close_two(&two);
}

/* Nobody reads its bell any more; a signal would end this test. */
static void who_has_gone_in_its_sleep_is_rung_without_harm(void **state)
{
    (void)state;
    struct two two;
    open_two(&two);
    assert_true(mail_sleep(&two.them));
    mail_finish(&two.them);
    mail_forget(&two.to_us);
    assert_true(post_number(&two, 1));
    mail_finish(&two.us);
    mail_forget(&two.to_them);
}

/* A queue whose bell is something else: a file, a pipe of another number, nothing. */
static void what_is_no_bell_is_not_opened(void **state)
{
    (void)state;
    for (int what = 0; what < 3; what++) {
        struct mail us = {0}, them = {0};
        struct mail_peer to_them = {.peer = THEM}, to_us = {.peer = US};
        struct mail_offer offer;
        assert_int_equal(mail_open(&them, &to_us, &offer), STATUS_OK);
        uint32_t *descriptor = them.region.bytes;
        assert_int_equal(*descriptor, them.bell);
        int other = open("/dev/null", O_RDWR | O_CLOEXEC), ends[2];
        assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
        *descriptor = what == 0 ? (uint32_t)other : what == 1 ? (uint32_t)ends[1] : UINT32_MAX;
        assert_int_equal(mail_map(&to_them, &offer), STATUS_UNREACHABLE);
        *descriptor = (uint32_t)them.bell;
        assert_int_equal(mail_map(&to_them, &offer), STATUS_OK);
        const int all[] = {other, ends[0], ends[1]};
        for (unsigned i = 0; i < 3; i++) {
            close(all[i]);
        }
        mail_finish(&us);
        mail_forget(&to_them);
        mail_finish(&them);
        mail_forget(&to_us);
    }
}

static void peers_take_turns(void **state)
{
    (void)state;
    struct mail all = {0}, one[3] = {0};
    struct mail_peer of_all[3] = {0}, of_one[3] = {0};
    struct mail_taken taken;
    for (uint64_t i = 0; i < 3; i++) {
        struct mail_offer offer;
        of_all[i].peer = i;
        assert_int_equal(mail_open(&all, &of_all[i], &offer), STATUS_OK);
        assert_int_equal(mail_map(&of_one[i], &offer), STATUS_OK);
        assert_int_equal(mail_open(&one[i], &of_one[i], &offer), STATUS_OK);
        assert_int_equal(mail_map(&of_all[i], &offer), STATUS_OK);
        mail_begin(&of_one[i]);
        for (int k = 0; k < 10; k++) {
            assert_true(mail_post(&of_one[i], "x", 1));
        }
    }
    for (uint64_t i = 0; i < 30; i++) {
        assert_true(mail_take(&all, &taken));
        assert_int_equal(taken.peer, i % 3);
    }
    assert_false(mail_take(&all, &taken));
    mail_finish(&all);
    for (int i = 0; i < 3; i++) {
        mail_forget(&of_all[i]);
        mail_finish(&one[i]);
        mail_forget(&of_one[i]);
    }
}

static void offers_that_cannot_be_taken_are_refused(void **state)
{
    (void)state;
    struct mail us = {0}, them = {0};
    struct mail_peer to_them = {.peer = THEM}, to_us = {.peer = US};
    struct mail_offer offer;
    assert_int_equal(mail_open(&them, &to_us, &offer), STATUS_OK);
    assert_int_equal(mail_open(&them, &to_us, &offer), STATUS_UNSUPPORTED); // it has one
    struct mail_offer bad = offer;
    bad.index = MAIL_PEERS_MAX;
    assert_int_equal(mail_map(&to_them, &bad), STATUS_MALFORMED);
    bad.index = UINT32_MAX;
    assert_int_equal(mail_map(&to_them, &bad), STATUS_MALFORMED);
    bad = offer;
    bad.region.nonce ^= 1;
    assert_int_equal(mail_map(&to_them, &bad), STATUS_UNREACHABLE);
    bad = offer;
    bad.region.size = 1;
    assert_int_equal(mail_map(&to_them, &bad), STATUS_MALFORMED);
    bad.region.size = UINT64_MAX;
    assert_int_equal(mail_map(&to_them, &bad), STATUS_UNREACHABLE);
    assert_int_equal(mail_map(&to_them, &offer), STATUS_OK);
    assert_int_equal(mail_map(&to_them, &offer), STATUS_MALFORMED); // only once
    struct mail_peer others[MAIL_PEERS_MAX] = {0};
    for (uint64_t i = 1; i < MAIL_PEERS_MAX; i++) {
        assert_int_equal(mail_open(&them, &others[i], &offer), STATUS_OK);
        assert_int_equal(offer.index, i);
    }
    assert_int_equal(mail_open(&them, &others[0], &offer), STATUS_UNSUPPORTED);
    mail_finish(&us);
    mail_forget(&to_them);
    mail_finish(&them);
    mail_forget(&to_us);
}

static void a_queue_that_makes_no_sense_is_not_read_any_more(void **state)
{
    (void)state;
    struct two two;
    open_two(&two);
    memset(two.us.region.bytes, 0xff, two.us.region.key.size);
    captured_log_begin();
    nothing_to_take(&two);
    nothing_to_take(&two);
    const char *said = captured_log_end();
    const char *line = strstr(said, "is damaged");
    assert_non_null(line);
    assert_null(strstr(line + 1, "is damaged"));
    mail_post(&two.to_us, "x", 1); // looks at what is left there, too
    close_two(&two);
}

static void whatever_lies_in_a_peers_memory_is_survived(void **state)
{
    (void)state;
    struct two two;
    struct mail_taken taken;
    uint64_t taken_count = 0;
    struct random_sequence sequence = {1};
    captured_log_begin();
    for (uint64_t round = 0; round < 200; round++) {
        open_two(&two);
        for (uint32_t i = 0; i < 40; i++) {
            post_number(&two, i);
        }
        // A few bytes of the queue: counters, places, sizes.
        unsigned char *bytes = two.us.region.bytes;
        for (uint64_t i = 0; i < 1 + round % 50; i++) {
            uint64_t at = random_below(&sequence, 6000);
            bytes[at] = (unsigned char)random_below(&sequence, 256);
        }
        for (int i = 0; i < 2 * QUEUE_LENGTH && mail_take(&two.them, &taken); i++) {
            assert_true(taken.size <= MAIL_BYTES);
            taken_count++;
        }
        (void)mail_sleep(&two.them);
        mail_wake(&two.them);
        mail_post(&two.to_us, "x", 1);
        close_two(&two);
    }
    captured_log_end();
    assert_true(taken_count > 200);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_posted_is_taken_in_its_order),
        cmocka_unit_test(a_full_queue_has_room_again_once_one_was_taken),
        cmocka_unit_test(what_does_not_fit_or_nobody_reads_goes_by_the_socket),
        cmocka_unit_test(a_message_by_the_socket_keeps_its_place),
        cmocka_unit_test(a_sleeper_is_rung_and_who_is_awake_is_not),
        cmocka_unit_test(nobody_of_another_user_can_ring_or_fill_the_bell),
        cmocka_unit_test(a_bell_that_is_full_wakes_as_well),
        cmocka_unit_test(who_has_gone_in_its_sleep_is_rung_without_harm),
        cmocka_unit_test(what_is_no_bell_is_not_opened),
        cmocka_unit_test(peers_take_turns),
        cmocka_unit_test(offers_that_cannot_be_taken_are_refused),
        cmocka_unit_test(a_queue_that_makes_no_sense_is_not_read_any_more),
        cmocka_unit_test(whatever_lies_in_a_peers_memory_is_survived),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
