/* Tests of joining: a coordinator of another version, one that refuses, one that is silent. */
#include "common/base/log.h"
#include "common/channel/member.h"
#include "tests/support/common/captured_log.h"
#include "tests/support/common/insecure.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static const atomic_int never;

/* A coordinator that answers the first JOIN with the bytes of `answer`, or not at all. */
struct coordinator {
    struct channel *channel;
    char endpoint[TRANSPORT_ENDPOINT_BYTES];
    const struct message *answer;
    const struct security *security; // of the coordinator
    struct notify *notify;           // of who joins
    uint32_t stall_warn_ms;          // likewise
    struct member *member;           // gets a copy of who has joined; or NULL
    const unsigned char *raw;        // instead of answer
    size_t raw_size;
    void *(*play)(void *); // instead of that
    pthread_t thread;
};

static void open_at(struct coordinator *coordinator, const char *endpoint,
                    char ret_endpoint[TRANSPORT_ENDPOINT_BYTES])
{
    const struct security *security = coordinator->security;
    assert_int_equal(channel_create(&coordinator->channel), STATUS_OK);
    assert_int_equal(
        channel_secure(coordinator->channel, security != NULL ? security : &test_insecure),
        STATUS_OK);
    assert_int_equal(transport_bind(coordinator->channel->transport, endpoint, ret_endpoint),
                     STATUS_OK);
}

static void *answer_join(void *data)
{
    struct coordinator *coordinator = data;
    struct envelope envelope;
    struct message message;
    while (channel_receive(coordinator->channel, 10000, &envelope, &message) != STATUS_OK) {
    }
    assert_int_equal(message.kind, MESSAGE_JOIN);
    enum status status = STATUS_OK;
    if (coordinator->raw != NULL) {
        status = transport_send(coordinator->channel->transport, envelope.peer, coordinator->raw,
                                coordinator->raw_size, NULL);
    } else if (coordinator->answer != NULL) {
        status = channel_send(coordinator->channel, envelope.peer, coordinator->answer, NULL, NULL);
    }
    assert_int_equal(status, STATUS_OK);
    envelope_release(&envelope);
    return NULL;
}

/* Joins it; what comes of that. */
static enum status join(struct coordinator *coordinator, uint32_t timeout_ms, struct job *ret_job,
                        uint32_t *ret_rank)
{
    struct member member = {.self = {.role = ROLE_WORKER, .host = "node"},
                            .notify = coordinator->notify,
                            .stall_warn_ms = coordinator->stall_warn_ms,
                            .endpoint = coordinator->endpoint};
    open_at(coordinator, "tcp://127.0.0.1:*", coordinator->endpoint);
    assert_int_equal(channel_create(&member.channel), STATUS_OK);
    assert_int_equal(channel_secure(member.channel, &test_insecure), STATUS_OK);
    void *(*play)(void *) = coordinator->play != NULL ? coordinator->play : answer_join;
    assert_int_equal(member_connect(&member, coordinator->endpoint), STATUS_OK);
    assert_int_equal(pthread_create(&coordinator->thread, NULL, play, coordinator), 0);
    enum status status =
        member_join(&member, coordinator->endpoint, timeout_ms, &never, ret_job, ret_rank);
    pthread_join(coordinator->thread, NULL);
    channel_destroy(member.channel, 0);
    channel_destroy(coordinator->channel, 0);
    if (coordinator->member != NULL) {
        *coordinator->member = member;
    }
    return status;
}

static void a_welcome_brings_the_rank_and_the_job(void **state)
{
    (void)state;
    const struct message welcome = {
        .kind = MESSAGE_WELCOME, .rank = 3, .text = "workers=5\nmodel=lenet5\n"};
    struct coordinator coordinator = {.answer = &welcome};
    struct job job;
    uint32_t rank;
    assert_int_equal(join(&coordinator, 10000, &job, &rank), STATUS_OK);
    assert_int_equal(rank, 3);
    assert_int_equal(job.workers, 5);
    assert_string_equal(job.model, "lenet5");
}

static void a_refusal_ends_the_joining(void **state)
{
    (void)state;
    const struct message refusal = {
        .kind = MESSAGE_REFUSE, .reason = STATUS_INVALID, .text = "worker 3 is taken"};
    struct coordinator coordinator = {.answer = &refusal};
    struct job job;
    uint32_t rank;
    assert_int_equal(join(&coordinator, 10000, &job, &rank), STATUS_INVALID);
}

/* Waits for a JOIN; whose it is. */
static uint64_t await_join(struct channel *channel)
{
    struct envelope envelope;
    struct message message = {.kind = MESSAGE_HEARTBEAT};
    while (channel_receive(channel, 10000, &envelope, &message) != STATUS_OK) {
    }
    assert_int_equal(message.kind, MESSAGE_JOIN);
    envelope_release(&envelope);
    return envelope.peer;
}

static void welcome(struct channel *channel, uint64_t peer)
{
    const struct message answer = {
        .kind = MESSAGE_WELCOME, .rank = 3, .text = "workers=5\nmodel=lenet5\n"};
    assert_int_equal(channel_send(channel, peer, &answer, NULL, NULL), STATUS_OK);
}

/* What it has asked for ends, and the next one takes it in. */
static void *end_first(void *data)
{
    struct coordinator *coordinator = data;
    const struct message stop = {.kind = MESSAGE_STOP, .reason = STATUS_AGAIN, .text = "again"};
    uint64_t peer = await_join(coordinator->channel);
    assert_int_equal(channel_send(coordinator->channel, peer, &stop, NULL, NULL), STATUS_OK);
    assert_int_equal(await_join(coordinator->channel), peer); // by the same connection
    welcome(coordinator->channel, peer);
    return NULL;
}

/* It is killed, and another one listens where it did. */
static void *be_replaced(void *data)
{
    struct coordinator *coordinator = data;
    char same[TRANSPORT_ENDPOINT_BYTES]; // who joins reads the coordinator's meanwhile
    (void)await_join(coordinator->channel);
    channel_destroy(coordinator->channel, 0);
    open_at(coordinator, coordinator->endpoint, same);
    welcome(coordinator->channel, await_join(coordinator->channel));
    return NULL;
}

static void who_waits_to_join_asks_again_when_what_it_asked_is_over(void **state)
{
    (void)state;
    void *(*const ways[])(void *) = {end_first, be_replaced};
    for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
        struct coordinator coordinator = {.play = ways[i]};
        struct job job;
        uint32_t rank;
        assert_int_equal(join(&coordinator, 60000, &job, &rank), STATUS_OK);
        assert_int_equal(rank, 3);
    }
}

/* The job is under way, and takes it in when it has asked once more. */
static void *admit_later(void *data)
{
    struct coordinator *coordinator = data;
    const struct message later = {
        .kind = MESSAGE_REFUSE, .reason = STATUS_AGAIN, .rank = 5, .text = "soon"};
    uint64_t peer = await_join(coordinator->channel);
    assert_int_equal(channel_send(coordinator->channel, peer, &later, NULL, NULL), STATUS_OK);
    welcome(coordinator->channel, await_join(coordinator->channel));
    return NULL;
}

static void who_waits_to_be_admitted_says_so_at_once(void **state)
{
    (void)state;
    struct coordinator coordinator = {.play = admit_later};
    char waits[TRANSPORT_ENDPOINT_BYTES + 64];
    struct job job;
    uint32_t rank;
    log_raise_level(LOG_INFO);
    captured_log_begin();
    enum status status = join(&coordinator, 60000, &job, &rank);
    const char *said = captured_log_end();
    assert_int_equal(status, STATUS_OK);
    snprintf(waits, sizeof(waits), "waiting for the coordinator at %s to admit this process",
             coordinator.endpoint);
    const char *at = strstr(said, waits);
    assert_non_null(at);
    at = strstr(at, "the job is under way, and admits this process as worker 5 when");
    assert_non_null(at);
    assert_null(strstr(at + 1, "the job is under way"));
}

static void a_welcome_of_a_resumed_job_brings_what_each_rank_has_not_reported(void **state)
{
    (void)state;
    const uint64_t images[3] = {7, 8, 9};
    const double loss_sums[3] = {0.1, 0.2, 0.3};
    const struct wire_report report = {.steps = 4, .total_ns = 5};
    const struct wire_slices slices = {3, images, loss_sums};
    const struct message welcome = {.kind = MESSAGE_WELCOME,
                                    .text = "workers=5\nprocesses=2\nmodel=lenet5\n",
                                    .step = 25,
                                    .report = &report,
                                    .slices = &slices};
    struct member member;
    struct coordinator coordinator = {.answer = &welcome, .member = &member};
    struct job job;
    uint32_t process;
    assert_int_equal(join(&coordinator, 10000, &job, &process), STATUS_OK);
    assert_int_equal(member.begin_step, 25);
    assert_int_equal(member.open_period.total_ns, 5);
    assert_int_equal(member.open_count, 3);
    assert_memory_equal(member.open_images, images, sizeof(images));
    assert_memory_equal(member.open_loss_sums, loss_sums, sizeof(loss_sums));
}

static void a_welcome_of_a_resumed_job_is_about_the_ranks_that_the_worker_carries(void **state)
{
    (void)state;
    const uint64_t images[3] = {7, 8, 9};
    const double loss_sums[3] = {0.1, 0.2, 0.3};
    const struct wire_report report = {.steps = 4};
    for (uint32_t count = 0; count <= 3; count++) {
        const struct wire_slices slices = {count, images, loss_sums};
        const struct message welcome = {.kind = MESSAGE_WELCOME,
                                        .rank = 1,
                                        .text = "workers=5\nprocesses=2\nmodel=lenet5\n",
                                        .step = 25,
                                        .report = &report,
                                        .slices = count > 0 ? &slices : NULL};
        struct coordinator coordinator = {.answer = &welcome};
        struct job job;
        uint32_t process;
        assert_int_equal(join(&coordinator, 10000, &job, &process),
                         count == 2 ? STATUS_OK : STATUS_MISMATCH);
    }
}

static void a_job_that_makes_no_sense_is_a_mismatch(void **state)
{
    (void)state;
    const struct message welcome = {.kind = MESSAGE_WELCOME, .text = "workers=5\ncolour=red\n"};
    struct coordinator coordinator = {.answer = &welcome};
    struct job job;
    uint32_t rank;
    assert_int_equal(join(&coordinator, 10000, &job, &rank), STATUS_MISMATCH);
}

static void a_coordinator_of_another_protocol_version_is_a_mismatch(void **state)
{
    (void)state;
    const unsigned char header[] = {0x08, WIRE_VERSION + 1, 0x10, 0x02};
    struct coordinator coordinator = {.raw = header, .raw_size = sizeof(header)};
    struct job job;
    uint32_t rank;
    assert_int_equal(join(&coordinator, 10000, &job, &rank), STATUS_MISMATCH);
}

/* A welcome of a job with or without seals, by the text and by the key. */
static void a_welcome_has_a_key_for_seals_if_the_job_has_seals(void **state)
{
    (void)state;
    const unsigned char key[WIRE_SEAL_KEY_BYTES] = "for tests";
    const struct {
        const char *text;
        const unsigned char *key;
        enum status expected;
    } cases[] = {
        {"workers=5\nsecurity=auth-only\n", key, STATUS_OK},
        {"workers=5\nsecurity=auth-only\n", NULL, STATUS_MISMATCH},
        {"workers=5\nsecurity=curve\n", key, STATUS_MISMATCH},
        {"workers=5\nsecurity=curve\n", NULL, STATUS_OK},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct message welcome = {
            .kind = MESSAGE_WELCOME, .text = cases[i].text, .seal_key = cases[i].key};
        struct coordinator coordinator = {.answer = &welcome};
        struct job job;
        uint32_t rank;
        assert_int_equal(join(&coordinator, 10000, &job, &rank), cases[i].expected);
    }
}

/* A coordinator that does nothing but decide who may connect. */
static void *guard(void *data)
{
    struct coordinator *coordinator = data;
    struct envelope envelope;
    struct message message;
    while (transport_refused_count(coordinator->channel->transport) == 0) {
        assert_true(channel_receive(coordinator->channel, 100, &envelope, &message) != STATUS_OK);
    }
    return NULL;
}

/* `is_late`: the handshake has failed before JOIN is sent. */
static void expect_shut_out(const struct security *server, const struct security *client,
                            bool is_late)
{
    struct coordinator coordinator = {0};
    struct member member = {.self = {.role = ROLE_WORKER, .host = "node"}};
    struct envelope envelope;
    struct message message;
    struct job job;
    uint32_t rank;
    assert_int_equal(channel_create(&coordinator.channel), STATUS_OK);
    assert_int_equal(channel_secure(coordinator.channel, server), STATUS_OK);
    assert_int_equal(
        transport_bind(coordinator.channel->transport, "tcp://127.0.0.1:*", coordinator.endpoint),
        STATUS_OK);
    assert_int_equal(channel_create(&member.channel), STATUS_OK);
    assert_int_equal(channel_secure(member.channel, client), STATUS_OK);
    assert_int_equal(pthread_create(&coordinator.thread, NULL, guard, &coordinator), 0);
    assert_int_equal(member_connect(&member, coordinator.endpoint), STATUS_OK);
    while (is_late && !transport_is_shut_out(member.channel->transport)) {
        assert_true(channel_receive(member.channel, 100, &envelope, &message) != STATUS_OK);
    }
    enum status status =
        member_join(&member, coordinator.endpoint, 3600 * 1000, &never, &job, &rank);
    pthread_join(coordinator.thread, NULL);
    assert_int_equal(status, STATUS_DENIED);
    channel_destroy(member.channel, 0);
    channel_destroy(coordinator.channel, 0);
}

static void a_member_that_is_shut_out_does_not_wait_for_its_deadline(void **state)
{
    (void)state;
    struct security security = {0}, other = {0}; // of one server, with keys of their own
    assert_int_equal(keys_generate(&security.keys), STATUS_OK);
    assert_int_equal(keys_generate(&other.keys), STATUS_OK);
    other.keys->server = security.keys->server;
    expect_shut_out(&security, &other, false);
    expect_shut_out(&security, &other, true);
    security_close(&security);
    security_close(&other);
}

static void a_member_that_is_shut_out_before_it_sends_is_told_why(void **state)
{
    (void)state;
    struct security security = {0};
    assert_int_equal(keys_generate(&security.keys), STATUS_OK);
    expect_shut_out(&security, &test_insecure, true);
    security_close(&security);
}

static void a_silent_coordinator_is_given_up(void **state)
{
    (void)state;
    struct coordinator coordinator = {.answer = NULL};
    struct job job;
    uint32_t rank;
    assert_int_equal(join(&coordinator, 200, &job, &rank), STATUS_TIMED_OUT);
}

static void whoever_waits_for_the_coordinator_says_so_after_a_second(void **state)
{
    (void)state;
    struct coordinator coordinator = {.answer = NULL, .stall_warn_ms = 60000};
    struct job job;
    uint32_t rank;
    captured_log_begin();
    enum status status = join(&coordinator, MEMBER_FIRST_WARNING_MS + 200, &job, &rank);
    const char *said = captured_log_end();
    assert_int_equal(status, STATUS_TIMED_OUT);
    const char *warning = strstr(said, "waiting for the coordinator at ");
    assert_non_null(warning);
    assert_non_null(strstr(warning, "gives up after 1.2 s (--join-timeout): "));
    assert_non_null(strstr(warning, "within 1.2 s: ")); // the end of it
}

/* The service manager: its socket has a name that is in no folder, given by the kernel. */
static char manager_name[32];

static char *get_from_manager(const char *name)
{
    static char often[] = "1000";
    return strcmp(name, "NOTIFY_SOCKET") == 0   ? manager_name
           : strcmp(name, "WATCHDOG_USEC") == 0 ? often
                                                : NULL;
}

static void who_waits_for_the_coordinator_is_alive(void **state)
{
    (void)state;
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    socklen_t size = sizeof(sa_family_t);
    char text[64] = "";
    int manager = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(manager, (const struct sockaddr *)&address, size), 0);
    size = sizeof(address);
    assert_int_equal(getsockname(manager, (struct sockaddr *)&address, &size), 0);
    snprintf(manager_name, sizeof(manager_name), "@%.*s",
             (int)(size - offsetof(struct sockaddr_un, sun_path) - 1), address.sun_path + 1);
    struct coordinator coordinator = {.notify = notify_create(get_from_manager, NULL)};
    struct job job;
    uint32_t rank;
    assert_int_equal(join(&coordinator, 200, &job, &rank), STATUS_TIMED_OUT);
    assert_true(recv(manager, text, sizeof(text) - 1, MSG_DONTWAIT) > 0);
    assert_string_equal(text, "WATCHDOG=1\n");
    notify_destroy(coordinator.notify);
    close(manager);
}

/* Neither hides the other. */
static void a_connection_that_was_closed_and_a_wait_are_told_by_turns(void **state)
{
    (void)state;
    struct member member = {.self = {.role = ROLE_WORKER}};
    const struct wire_wait wait = {.role = ROLE_WORKER, .index = 1, .what = WIRE_WAIT_CHUNK};
    member_note_wait(&member, &wait, 1000);
    assert_ptr_equal(member_tell_wait(&member, 1000), &member.wait);
    member_note_broken(&member, ROLE_WORKER, 2, 4000);
    for (uint64_t now_ms = 4000; now_ms <= 60000; now_ms += 1000) {
        member_note_broken(&member, ROLE_WORKER, 2, now_ms); // it is found again
        const struct wire_wait *told = member_tell_wait(&member, now_ms);
        assert_true(told->is_broken);
        assert_int_equal(told->index, 2);
        assert_int_equal(told->waited_ms, now_ms - 4000);
        member_note_wait(&member, &wait, now_ms + 500);
        told = member_tell_wait(&member, now_ms + 500);
        assert_false(told->is_broken);
        assert_int_equal(told->index, 1);
        assert_int_equal(told->waited_ms, now_ms + 500 - 1000);
    }
    member_note_wait(&member, NULL, 61000); // it computes
    assert_true(member_tell_wait(&member, 61000)->is_broken);
    assert_null(member_tell_wait(&member, 61500));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_welcome_brings_the_rank_and_the_job),
        cmocka_unit_test(a_refusal_ends_the_joining),
        cmocka_unit_test(who_waits_to_join_asks_again_when_what_it_asked_is_over),
        cmocka_unit_test(who_waits_to_be_admitted_says_so_at_once),
        cmocka_unit_test(a_welcome_of_a_resumed_job_brings_what_each_rank_has_not_reported),
        cmocka_unit_test(a_welcome_of_a_resumed_job_is_about_the_ranks_that_the_worker_carries),
        cmocka_unit_test(a_job_that_makes_no_sense_is_a_mismatch),
        cmocka_unit_test(a_coordinator_of_another_protocol_version_is_a_mismatch),
        cmocka_unit_test(a_welcome_has_a_key_for_seals_if_the_job_has_seals),
        cmocka_unit_test(a_member_that_is_shut_out_does_not_wait_for_its_deadline),
        cmocka_unit_test(a_member_that_is_shut_out_before_it_sends_is_told_why),
        cmocka_unit_test(a_silent_coordinator_is_given_up),
        cmocka_unit_test(whoever_waits_for_the_coordinator_says_so_after_a_second),
        cmocka_unit_test(who_waits_for_the_coordinator_is_alive),
        cmocka_unit_test(a_connection_that_was_closed_and_a_wait_are_told_by_turns),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
