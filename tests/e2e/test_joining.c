/* End to end: workers that ask to join a job which is under way, and are taken in, give it up, or
 * ask at the wrong place. Whatever becomes of them, the job goes on. */
#include "common/channel/channel.h"
#include "tests/support/common/insecure.h"
#include "tests/support/programs/programs.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define OUT_BYTES     (PROGRAM_PATH_BYTES + 8)
#define COMMAND_BYTES 2048

/* A job of two ranks and one process, which trains, and in which there is a place. */
struct running {
    struct program_run ps, first;
    char folder[PROGRAM_PATH_BYTES], out[OUT_BYTES], endpoint[TRANSPORT_ENDPOINT_BYTES];
};

static void open_job(struct running *job)
{
    *job = (struct running){.first = {.announce_fd = -1}};
    programs_make_folder(job->folder);
    snprintf(job->out, sizeof(job->out), "%s/run", job->folder);
    const char *const ps[] = {"--workers",      "2",
                              "--processes",    "1",
                              "--mode",         "ring",
                              "--model",        "lenet5",
                              "--data",         "synthetic",
                              "--global-batch", "16",
                              "--steps",        "60",
                              "--device",       "ref",
                              "--limit-train",  "120",
                              "--eval",         "none",
                              "--straggler",    "dist=exponential:mean=40ms,share=1",
                              "--out",          job->out,
                              "--log-level",    "info",
                              "--lost-after",   "60",
                              "--port",         "0",
                              "--insecure",     NULL};
    program_start(&job->ps, job->folder, "ps-server/ps", true, ps, NULL);
    program_read_endpoint(&job->ps, job->endpoint, sizeof(job->endpoint));
    const char *const worker[] = {"--server", job->endpoint, "--insecure", NULL};
    program_start(&job->first, job->folder, "worker/worker", false, worker, NULL);
    programs_wait_for_file(job->folder, "run");
    programs_wait_for_file(job->out, "job.json"); // it trains
}

/* Its end: how often it had gone on with other processes, and lost none. */
static void close_job(struct running *job, int restarts)
{
    if (program_wait(&job->first) != 0) {
        fail_msg("%s", program_output(&job->first));
    }
    if (program_wait(&job->ps) != 0) {
        fail_msg("%s", program_output(&job->ps));
    }
    json_t *summary = programs_read_json(job->out, "summary.json");
    assert_int_equal(json_integer_value(json_object_get(summary, "restarts")), restarts);
    assert_int_equal(json_integer_value(json_object_get(summary, "workers_lost")), 0);
    json_decref(summary);
    programs_remove_folder(job->folder);
}

static void start_join(const struct running *job, struct program_run *join)
{
    const char *const args[] = {"join", job->endpoint, "--insecure", NULL};
    *join = (struct program_run){.announce_fd = -1};
    program_start(join, job->folder, "deploy/ringside", false, args, NULL);
}

static void expect_said(const struct program_run *run, const char *words)
{
    const char *said = program_output(run);
    if (strstr(said, words) == NULL) {
        fail_msg("\"%s\" is not in: %s", words, said);
    }
}

static void a_worker_that_joins_says_that_it_waits_and_that_it_takes_part(void **state)
{
    (void)state;
    struct running job;
    struct program_run join;
    char waits[TRANSPORT_ENDPOINT_BYTES + 64];
    open_job(&job);
    program_kill(&job.first, SIGSTOP); // so that nobody has a copy for it
    start_join(&job, &join);
    program_await_line(&join, "the job is under way, and admits this process as worker 1 when");
    snprintf(waits, sizeof(waits), "waiting for the coordinator at %s to admit this process",
             job.endpoint);
    expect_said(&join, waits);
    assert_null(strstr(program_output(&join), "takes part"));
    program_kill(&job.first, SIGCONT);
    assert_int_equal(program_wait(&join), 0);
    expect_said(&join, "takes part as worker 1: rank 1 of 2, from step ");
    close_job(&job, 1);
}

static void an_interrupt_ends_the_wait_and_leaves_the_job_as_it_is(void **state)
{
    (void)state;
    struct running job;
    struct program_run join;
    open_job(&job);
    program_kill(&job.first, SIGSTOP);
    start_join(&job, &join);
    program_await_line(&join, "the job is under way");
    program_kill(&join, SIGINT);
    assert_int_equal(program_wait(&join), 130);
    expect_said(&join, "error worker");
    expect_said(&join, "this worker has not joined the job: interrupted");
    program_await_line(&job.ps, "worker 1, which had asked to join the job, has gone");
    program_kill(&job.first, SIGCONT);
    close_job(&job, 0);
}

/* Its place is free again, and the job waits for one that can be of it. */
static void a_worker_that_joins_a_job_of_a_program_does_not_end_it(void **state)
{
    (void)state;
    struct program_run ps, join = {.announce_fd = -1};
    char folder[PROGRAM_PATH_BYTES], endpoint[TRANSPORT_ENDPOINT_BYTES];
    programs_make_folder(folder);
    const char *const job[] = {"--workers", "1", "--model", "external:own", NULL};
    program_start(&ps, folder, "ps-server/ps", true, job, NULL);
    program_read_endpoint(&ps, endpoint, sizeof(endpoint));
    const char *const args[] = {"join", endpoint, NULL};
    program_start(&join, folder, "deploy/ringside", false, args, NULL);
    assert_int_equal(program_wait(&join), 1);
    expect_said(&join, "the model of this job, external:own, is a program of its own");
    expect_said(&join, "this worker has not joined the job");
    program_await_line(&ps, "the job has not begun, and waits for another process in its place");
    program_kill(&ps, SIGINT);
    assert_int_equal(program_wait(&ps), 130);
    programs_remove_folder(folder);
}

static void a_host_that_nobody_knows_is_named(void **state)
{
    (void)state;
    struct program_run join = {.announce_fd = -1};
    char folder[PROGRAM_PATH_BYTES];
    programs_make_folder(folder);
    const char *const args[] = {"join", "no-such-host.invalid:4000", "--insecure", NULL};
    program_start(&join, folder, "deploy/ringside", false, args, NULL);
    assert_int_equal(program_wait(&join), 1);
    expect_said(&join, "there is no way to the host of SERVER, 'no-such-host.invalid': ");
    programs_remove_folder(folder);
}

/* What a coordinator answers to a process with these bytes, or to that message. */
static void ask_as_older(const struct running *job, const struct message *join, const void *bytes,
                         size_t size, char ret_answer[256])
{
    struct channel *channel;
    struct envelope envelope;
    struct message answer = {.kind = MESSAGE_KIND_COUNT};
    uint64_t peer;
    assert_int_equal(channel_create(&channel), STATUS_OK);
    assert_int_equal(channel_secure(channel, &test_insecure), STATUS_OK);
    assert_int_equal(transport_connect(channel->transport, job->endpoint, &peer), STATUS_OK);
    enum status status = join != NULL ? channel_send(channel, peer, join, NULL, NULL)
                                      : transport_send(channel->transport, peer, bytes, size, NULL);
    assert_int_equal(status, STATUS_OK);
    while ((status = channel_receive(channel, 60000, &envelope, &answer)) == STATUS_INTERRUPTED) {
    }
    assert_int_equal(status, STATUS_OK);
    assert_int_equal(answer.kind, MESSAGE_REFUSE);
    assert_int_equal(answer.reason, STATUS_MISMATCH);
    snprintf(ret_answer, 256, "%s", answer.text);
    envelope_release(&envelope);
    channel_destroy(channel, 0);
}

static void one_of_an_older_build_is_refused_by_name(void **state)
{
    (void)state;
    struct running job;
    char answer[256];
    const unsigned char header[] = {0x08, WIRE_VERSION - 1, 0x10, MESSAGE_JOIN};
    const struct wire_member member = {.role = ROLE_WORKER, .host = "node", .process_id = 4711};
    const struct message join = {.kind = MESSAGE_JOIN, .member = &member, .text = "0.0.1"};
    open_job(&job);
    ask_as_older(&job, NULL, header, sizeof(header), answer);
    assert_string_equal(answer, "another protocol version: use the same build");
    ask_as_older(&job, &join, NULL, 0, answer);
    assert_string_equal(answer, "it has ringside 0.0.1 and the coordinator has " RINGSIDE_VERSION
                                ": use the same version everywhere");
    expect_said(&job.ps, "a peer speaks protocol version");
    expect_said(&job.ps, "refused a member (host node, pid 4711): it has ringside 0.0.1");
    close_job(&job, 0);
}

/* What listens where somebody takes a job's port to be. */
struct impostor {
    int listener;
    char endpoint[64];
    bool speaks; // as a web server; otherwise it says nothing
    pthread_t thread;
};

static void *speak(void *data)
{
    static const char answer[] = "HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n";
    const struct impostor *impostor = data;
    char request[256];
    int fd;
    while ((fd = accept(impostor->listener, NULL, NULL)) >= 0) {
        if (read(fd, request, sizeof(request)) > 0) {
            (void)send(fd, answer, sizeof(answer) - 1, MSG_NOSIGNAL);
        }
        close(fd);
    }
    return NULL;
}

/* `listens`: or it has the port, and nobody can connect. */
static void open_impostor(struct impostor *impostor, bool listens, bool speaks)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(address);
    impostor->speaks = speaks;
    impostor->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(impostor->listener, (struct sockaddr *)&address, size), 0);
    assert_int_equal(getsockname(impostor->listener, (struct sockaddr *)&address, &size), 0);
    snprintf(impostor->endpoint, sizeof(impostor->endpoint), "tcp://127.0.0.1:%u",
             ntohs(address.sin_port));
    if (listens) {
        assert_int_equal(listen(impostor->listener, 8), 0);
    }
    if (speaks) {
        assert_int_equal(pthread_create(&impostor->thread, NULL, speak, impostor), 0);
    }
}

static void close_impostor(struct impostor *impostor)
{
    shutdown(impostor->listener, SHUT_RDWR);
    if (impostor->speaks) {
        pthread_join(impostor->thread, NULL);
    }
    close(impostor->listener);
}

static void who_asks_at_the_wrong_port_is_told_what_is_there(void **state)
{
    (void)state;
    static const struct {
        bool listens, speaks;
        const char *why;
    } cases[] = {
        {false, false, "there is no connection: is `ps` running there, and is the port open?"},
        {true, false, "something listens there and does not answer: is that the port that `ps`"},
        {true, true, "the other side breaks off the handshake: if that is a port of ringside"},
    };
    char folder[PROGRAM_PATH_BYTES];
    programs_make_folder(folder);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct impostor impostor;
        struct program_run join = {.announce_fd = -1};
        open_impostor(&impostor, cases[i].listens, cases[i].speaks);
        const char *const args[] = {"join", impostor.endpoint, "--insecure", "--stall-warn", "0.1",
                                    NULL};
        program_start(&join, folder, "deploy/ringside", false, args, NULL);
        program_await_line(&join, cases[i].why);
        expect_said(&join, impostor.endpoint);
        program_kill(&join, SIGINT);
        assert_int_equal(program_wait(&join), 130);
        close_impostor(&impostor);
    }
    programs_remove_folder(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_worker_that_joins_says_that_it_waits_and_that_it_takes_part),
        cmocka_unit_test(an_interrupt_ends_the_wait_and_leaves_the_job_as_it_is),
        cmocka_unit_test(who_asks_at_the_wrong_port_is_told_what_is_there),
        cmocka_unit_test(a_host_that_nobody_knows_is_named),
        cmocka_unit_test(a_worker_that_joins_a_job_of_a_program_does_not_end_it),
        cmocka_unit_test(one_of_an_older_build_is_refused_by_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
