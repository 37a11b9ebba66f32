/* Tests of what the launcher takes from what members write. */
#include "deploy/launch/members.h"
#include "tests/support/common/captured_log.h"
#include "tests/support/common/temp_folder.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void announce(struct members *members, const char *text, char ret_endpoint[40])
{
    const struct agent_message message = {
        .kind = AGENT_OUTPUT, .id = members->first_id, .stream = "announce", .text = text};
    assert_true(members_take(members, 0, &message, ret_endpoint, 40));
}

static void signs_of_life_come_behind_the_endpoint(void **state)
{
    struct host_link link = {.state = HOST_LINK_UP};
    struct crew crew = {.links = &link, .count = 1};
    struct members members;
    char endpoint[40] = "";
    (void)state;
    assert_int_equal(members_init(&members, &crew, 1), STATUS_OK);
    const struct member *member = &members.list[0];
    announce(&members, "tcp://here:1", endpoint);
    assert_string_equal(endpoint, "tcp://here:1");
    assert_int_equal(member->alive_ms, 0); // it has given none
    announce(&members, "alive 20000", endpoint);
    assert_true(member->alive_ms > 0);
    assert_int_equal(member->patience_ms, 20000);
    announce(&members, "busy", endpoint);
    assert_int_equal(member->alive_ms, 0); // none is due
    announce(&members, "alive 4000", endpoint);
    assert_true(member->alive_ms > 0);
    assert_int_equal(member->patience_ms, 4000);
    assert_string_equal(endpoint, "tcp://here:1");
    members_finish(&members);
}

/* Starts the only member, and returns what its agent is to put into its environment. */
static void start(struct members *members, const char *endpoint, int heard, char *ret_line,
                  size_t size)
{
    static const char *const argv[] = {"worker", NULL}, *const environment[] = {"A=b", NULL};
    const struct member_start how = {
        .name = "worker 0",
        .log = "worker-0.log",
        .argv = argv,
        .environment = environment,
        .endpoint = endpoint,
    };
    assert_int_equal(members_start(members, 0, &how), STATUS_OK);
    assert_int_equal(line_writer_flush(&members->crew->links[0].writer), STATUS_OK);
    ssize_t got = read(heard, ret_line, size - 1);
    ret_line[got > 0 ? got : 0] = '\0';
}

static void each_start_of_a_member_has_a_number_that_its_process_gets(void **state)
{
    struct host_link link = {.state = HOST_LINK_UP, .is_local = true};
    struct crew crew = {.links = &link, .count = 1, .next_id = 4};
    struct members members;
    char line[4096], wanted[64];
    int ends[2];
    (void)state;
    assert_int_equal(pipe(ends), 0);
    line_writer_init(&link.writer, ends[1]);
    assert_int_equal(members_init(&members, &crew, 1), STATUS_OK);
    members.shown_from = 1; // the agent writes its log
    uint32_t before = 0;
    for (int i = 0; i < 2; i++) {
        start(&members, "tcp://here:1", ends[0], line, sizeof(line));
        assert_true(members.list[0].launch > before);
        before = members.list[0].launch;
        snprintf(wanted, sizeof(wanted), "\"RINGSIDE_LAUNCH=%u@tcp://here:1\"", before);
        assert_non_null(strstr(line, wanted));
        assert_non_null(strstr(line, "\"A=b\""));
    }
    start(&members, NULL, ends[0], line, sizeof(line)); // a coordinator, which joins nobody
    assert_non_null(strstr(line, "\"A=b\""));
    assert_null(strstr(line, "RINGSIDE_LAUNCH"));
    members_finish(&members);
    line_writer_finish(&link.writer);
    close(ends[0]);
}

static const char *stop(struct members *members)
{
    const struct agent_message message = {
        .kind = AGENT_STOPPED, .id = members->first_id + 1, .signal = SIGSTOP};
    captured_log_begin();
    assert_true(members_take(members, 0, &message, NULL, 0));
    return captured_log_end();
}

static void a_planned_stop_ends_by_itself(void **state)
{
    static const char says[] =
        "2026 warn worker rank=1 host=n: --fault rank=1,step=5,stop=1s: this worker stands still\n";
    struct host_link link = {.state = HOST_LINK_UP};
    struct crew crew = {.links = &link, .count = 1};
    struct members members;
    char *folder = temp_folder_create();
    (void)state;
    assert_int_equal(members_init(&members, &crew, 2), STATUS_OK);
    struct member *member = &members.list[1];
    member->pid = 77;
    snprintf(member->name, sizeof(member->name), "worker 1");
    snprintf(member->log, sizeof(member->log), "%s/log", folder);
    assert_non_null(strstr(stop(&members), "worker 1 was stopped by SIGSTOP"));
    temp_folder_write(folder, "log", says, strlen(says));
    const char *said = stop(&members);
    assert_non_null(strstr(said, "as planned (--fault rank=1,step=5,stop=1s); it continues by"));
    assert_null(strstr(said, "kill -CONT"));
    assert_non_null(strstr(stop(&members), "kill -CONT 77 lets it continue")); // somebody else's
    members_finish(&members);
    temp_folder_destroy(folder);
}

/* Ranks have other numbers than their worker where it carries several, or others were lost. */
static void what_a_fault_names_is_named(void **state)
{
    static const char says[] = "2026 warn worker host=n: --fault rank=1,step=7,kill: this worker "
                               "kills itself\n";
    struct host_link link = {.state = HOST_LINK_UP};
    struct crew crew = {.links = &link, .count = 1};
    struct members members;
    char *folder = temp_folder_create(), text[256];
    (void)state;
    assert_int_equal(members_init(&members, &crew, 1), STATUS_OK);
    struct member *member = &members.list[0];
    member->is_over = true;
    member->result = SIGKILL;
    snprintf(member->log, sizeof(member->log), "%s/log", folder);
    temp_folder_write(folder, "log", says, strlen(says));
    snprintf(member->name, sizeof(member->name), "worker 0");
    members_explain_end(&members, 0, text, sizeof(text));
    assert_string_equal(text, "was killed by signal 9, as planned (--fault rank=1,step=7,kill: it "
                              "carried rank 1)");
    snprintf(member->name, sizeof(member->name), "worker 1");
    members_explain_end(&members, 0, text, sizeof(text));
    assert_string_equal(text, "was killed by signal 9, as planned (--fault rank=1,step=7,kill)");
    members_finish(&members);
    temp_folder_destroy(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_start_of_a_member_has_a_number_that_its_process_gets),
        cmocka_unit_test(signs_of_life_come_behind_the_endpoint),
        cmocka_unit_test(a_planned_stop_ends_by_itself),
        cmocka_unit_test(what_a_fault_names_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
