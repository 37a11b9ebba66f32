/* Tests of the lines between the launcher and its agents. */
#include "deploy/agent/agent_message.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct agent_message message;
static char error[256];

static void a_start_comes_out_as_it_went_in(void **state)
{
    (void)state;
    const struct agent_message start = {
        .kind = AGENT_START,
        .id = 4711,
        .argv = {"/bin/worker", "--rank", "ü\n\"2\""},
        .environment = {"A=b"},
        .input = "secret\n",
        .announces = true,
    };
    char *line = agent_message_encode(&start);
    assert_non_null(line);
    assert_null(strchr(line, '\n'));
    assert_int_equal(agent_message_decode(line, &message, error, sizeof(error)), STATUS_OK);
    assert_int_equal(message.kind, AGENT_START);
    assert_int_equal(message.id, 4711);
    assert_string_equal(message.argv[2], "ü\n\"2\"");
    assert_null(message.argv[3]);
    assert_string_equal(message.environment[0], "A=b");
    assert_string_equal(message.input, "secret\n");
    assert_true(message.announces);
    assert_false(message.has_terminal);
    assert_null(message.log);
    agent_message_finish(&message);
    free(line);
}

static void every_kind_comes_out_as_it_went_in(void **state)
{
    (void)state;
    for (unsigned i = 0; i < AGENT_KIND_COUNT; i++) {
        const struct agent_message one = {
            .kind = (enum agent_kind)i,
            .id = 1,
            .port = 2,
            .time_us = UINT64_C(1) << 60,
            .text = "",
            .stream = "error",
            .address = "10.0.0.7",
            .own = "10.0.0.8",
            .peer = "",
            .ports = "*",
            .path = "a/b",
            .data = "",
            .version = "1",
            .host = "h",
            .host_id = "0",
            .ps = "p",
            .worker = "w",
            .argv = {"x"},
            .interfaces = {"lo", "127.0.0.1"},
        };
        char *line = agent_message_encode(&one), *again;
        assert_non_null(line);
        if (agent_message_decode(line, &message, error, sizeof(error)) != STATUS_OK) {
            fail_msg("%s: %s", line, error);
        }
        again = agent_message_encode(&message);
        assert_string_equal(line, again);
        agent_message_finish(&message);
        free(line);
        free(again);
    }
}

static void what_is_no_message_is_malformed_and_says_why(void **state)
{
    (void)state;
    static const struct {
        const char *line, *says;
    } wrong[] = {
        {"", "not a JSON object"},
        {"[]", "not a JSON object"},
        {"{", "not a JSON object"},
        {"{\"is\":\"ping\",\"is\":\"ping\",\"time_us\":1}", "not a JSON object"},
        {"{\"is\":\"ping\",\"time_us\":1} x", "not a JSON object"},
        {"{}", "no message ''"},
        {"{\"is\":7}", "no message ''"},
        {"{\"is\":\"format\"}", "no message 'format'"},
        {"{\"is\":\"ping\"}", "'time_us' is missing"},
        {"{\"is\":\"ping\",\"time_us\":-1}", "'time_us' is not"},
        {"{\"is\":\"ping\",\"time_us\":1.5}", "'time_us' is not"},
        {"{\"is\":\"signal\",\"id\":4294967296,\"signal\":2}", "'id' is not"},
        {"{\"is\":\"start\",\"id\":1,\"argv\":\"ls\"}", "'argv' is not"},
        {"{\"is\":\"start\",\"id\":1,\"argv\":[1]}", "'argv' is not"},
        {"{\"is\":\"start\",\"id\":1,\"argv\":[]}", "'argv' is empty"},
        {"{\"is\":\"start\",\"id\":1,\"argv\":[\"a\\u0000b\"]}", "not a JSON object"},
        {"{\"is\":\"start\",\"id\":1,\"argv\":[\"a\"],\"announces\":1}", "'announces' is not"},
        {"{\"is\":\"output\",\"id\":1,\"stream\":\"error\",\"text\":null}", "'text' is not"},
    };
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        assert_int_equal(agent_message_decode(wrong[i].line, &message, error, sizeof(error)),
                         STATUS_MALFORMED);
        if (strstr(error, wrong[i].says) == NULL) {
            fail_msg("%s: %s", wrong[i].line, error);
        }
    }
}

static void a_list_that_is_too_long_is_malformed(void **state)
{
    (void)state;
    char line[8192];
    size_t used =
        (size_t)snprintf(line, sizeof(line), "{\"is\":\"start\",\"id\":1,\"argv\":[\"a\"");
    for (unsigned i = 0; i < AGENT_LIST_MAX; i++) {
        used += (size_t)snprintf(line + used, sizeof(line) - used, ",\"a\"");
    }
    snprintf(line + used, sizeof(line) - used, "]}");
    assert_int_equal(agent_message_decode(line, &message, error, sizeof(error)), STATUS_MALFORMED);
}

static void fields_that_nobody_knows_are_ignored(void **state)
{
    (void)state;
    assert_int_equal(agent_message_decode("{\"is\":\"ping\",\"time_us\":1,\"colour\":[1,2]}",
                                          &message, error, sizeof(error)),
                     STATUS_OK);
    agent_message_finish(&message);
}

static void bytes_that_are_no_text_become_question_marks(void **state)
{
    (void)state;
    const struct agent_message output = {
        .kind = AGENT_OUTPUT, .stream = "error", .text = "a\xff\xfe z"};
    char *line = agent_message_encode(&output);
    assert_non_null(strstr(line, "\"a?? z\""));
    free(line);
}

static void a_line_that_would_be_too_long_is_not_made(void **state)
{
    (void)state;
    char *text = malloc(AGENT_LINE_MAX + 1);
    assert_non_null(text);
    memset(text, 'x', AGENT_LINE_MAX);
    text[AGENT_LINE_MAX] = '\0';
    const struct agent_message output = {.kind = AGENT_OUTPUT, .stream = "error", .text = text};
    assert_null(agent_message_encode(&output));
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_start_comes_out_as_it_went_in),
        cmocka_unit_test(every_kind_comes_out_as_it_went_in),
        cmocka_unit_test(what_is_no_message_is_malformed_and_says_why),
        cmocka_unit_test(a_list_that_is_too_long_is_malformed),
        cmocka_unit_test(fields_that_nobody_knows_are_ignored),
        cmocka_unit_test(bytes_that_are_no_text_become_question_marks),
        cmocka_unit_test(a_line_that_would_be_too_long_is_not_made),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
