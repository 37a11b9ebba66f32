/* Tests of an agent's processes, without the agent. */
#include "deploy/agent/agent_children.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <poll.h>
#include <stdio.h>
#include <string.h>

#define POLL_MS   10
#define POLLS_MAX 6000

/* What was said of a process. */
struct heard {
    char line[256]; // the last that it has written
    bool has_ended;
};

static void hear(void *context, const struct agent_message *message)
{
    struct heard *heard = context;
    if (message->kind == AGENT_OUTPUT) {
        snprintf(heard->line, sizeof(heard->line), "%s", message->text);
    }
    heard->has_ended = heard->has_ended || message->kind == AGENT_EXITED;
}

/* Runs a process that listens, and writes its first argument of ours. */
static void run(struct children *children, struct heard *heard, uint32_t id)
{
    const struct agent_message message = {
        .kind = AGENT_START, .id = id, .argv = {"/bin/sh", "-c", "echo \"$0\""}, .listens = true};
    heard->has_ended = false;
    children_start(children, &message);
    for (int i = 0; i < POLLS_MAX && !heard->has_ended; i++) {
        children_tell(children);
        poll(NULL, 0, POLL_MS);
    }
    assert_true(heard->has_ended);
}

static void who_is_started_again_listens_where_it_did_before(void **state)
{
    (void)state;
    struct heard heard = {.has_ended = false};
    struct children children = {.port = {&heard, hear}, .terminal_fd = -1};
    char first[256];
    run(&children, &heard, 1);
    assert_int_equal(strncmp(heard.line, "--listen-at=ipc://", 18), 0);
    snprintf(first, sizeof(first), "%s", heard.line);
    run(&children, &heard, 1);
    assert_string_equal(heard.line, first);
    int listener = children.listening.socket.listener;
    run(&children, &heard, 2); // another one has another socket, maybe under the same name
    assert_true(children.listening.is_open && children.listening.id == 2);
    assert_true(listener < 0 || children.listening.socket.listener >= 0);
    children_end(&children, "");
    assert_false(children.listening.is_open);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_is_started_again_listens_where_it_did_before),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
