/* Tests of what files say of their measurement, and when two of them, or a job, do not go together.
 */
#include "deploy/predict/basis/conditions.h"
#include "tests/support/common/captured_log.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <string.h>

static enum status read_text(const char *text, struct conditions *ret_conditions)
{
    json_t *object = json_loads(text, 0, NULL);
    assert_non_null(object);
    enum status status = conditions_read(&(struct fields){"a file", "", object}, ret_conditions);
    json_decref(object);
    return status;
}

static void refused(const char *text, const char *why)
{
    struct conditions conditions;
    captured_log_begin();
    enum status status = read_text(text, &conditions);
    const char *log = captured_log_end();
    assert_int_equal(status, STATUS_INVALID);
    if (strstr(log, why) == NULL) {
        fail_msg("%s: '%s' instead of '%s'", text, log, why);
    }
}

static void what_is_written_is_read_again(void **state)
{
    (void)state;
    struct conditions conditions = {.model = "cnn", .transport = "tcp", .security = "none"}, again;
    conditions_add_host(&conditions, "node1");
    conditions_add_host(&conditions, "node10");
    conditions_add_host(&conditions, "node1");
    json_t *object = json_pack("{s:o}", "conditions", conditions_json(&conditions));
    assert_int_equal(conditions_read(&(struct fields){"a file", "", object}, &again), STATUS_OK);
    json_decref(object);
    assert_string_equal(again.model, "cnn");
    assert_string_equal(again.transport, "tcp");
    assert_string_equal(again.security, "none");
    assert_string_equal(again.hosts, "node1, node10");
    char text[CONDITIONS_TEXT_BYTES];
    assert_true(conditions_format(&again, text, sizeof(text)));
    assert_string_equal(text, "cnn, tcp, no keys, node1, node10");
}

static void a_file_need_not_say_anything(void **state)
{
    (void)state;
    struct conditions conditions;
    char text[CONDITIONS_TEXT_BYTES];
    assert_int_equal(read_text("{}", &conditions), STATUS_OK);
    assert_null(conditions_json(&conditions));
    assert_false(conditions_format(&conditions, text, sizeof(text)));
    const struct conditions_job job = {TRANSPORT_TCP, true, false};
    assert_false(conditions_clash(&conditions, &conditions, &job, text, sizeof(text)));
}

static void bad_fields_are_refused_by_name(void **state)
{
    (void)state;
    refused("{\"conditions\": {\"transport\": \"pigeons\"}}", "has to be tcp, ipc or shm");
    refused("{\"conditions\": {\"transport\": \"auto\"}}", "has to be tcp, ipc or shm");
    refused("{\"conditions\": {\"security\": \"tls\"}}", "has to be curve, auth-only or none");
    refused("{\"conditions\": {\"mode\": \"ring\"}}", "conditions.mode");
    refused("{\"conditions\": {\"model\": 3}}", "conditions.model");
    refused("{\"conditions\": 3}", "conditions");
}

static void files_of_other_measurements_clash(void **state)
{
    (void)state;
    static const struct {
        struct conditions costs, network;
        struct conditions_job job;
        const char *why; // NULL: they go together
    } cases[] = {
        {{"cnn", "tcp", "", "a"}, {"", "tcp", "", "a"}, {TRANSPORT_TCP, true, false}, NULL},
        {{"cnn", "tcp", "", "a"}, {"", "tcp", "", "a"}, {TRANSPORT_AUTO, false, false}, NULL},
        {{"cnn", "shm", "", "a"}, {"", "shm", "", "a"}, {TRANSPORT_AUTO, true, false}, NULL},
        {{"cnn", "tcp", "", "a"}, {"", "", "", ""}, {TRANSPORT_TCP, true, false}, NULL},
        {{"cnn", "tcp", "", "a"},
         {"", "shm", "", "a"},
         {TRANSPORT_TCP, true, false},
         "the network over shm"},
        {{"cnn", "tcp", "", "a"},
         {"", "tcp", "", "b"},
         {TRANSPORT_TCP, true, false},
         "on a, and the network on b"},
        {{"cnn", "tcp", "", "a"},
         {"", "tcp", "", "a"},
         {TRANSPORT_AUTO, true, false},
         "auto is shm on one host"},
        {{"", "", "", ""},
         {"", "ipc", "", "a"},
         {TRANSPORT_TCP, false, false},
         "--transport tcp is another"},
        {{"", "ipc", "", "a"}, {"", "ipc", "", "a"}, {TRANSPORT_AUTO, true, true}, NULL},
        {{"", "ipc", "", "a"}, {"", "ipc", "", "a"}, {TRANSPORT_SHM, true, true}, NULL},
        {{"", "shm", "", "a"},
         {"", "shm", "", "a"},
         {TRANSPORT_SHM, true, true},
         "shm is ipc with --compress"},
        {{"", "shm", "", "a"},
         {"", "shm", "", "a"},
         {TRANSPORT_AUTO, true, true},
         "auto is ipc with --compress"},
        {{"", "tcp", "", "a"}, {"", "tcp", "", "a"}, {TRANSPORT_AUTO, false, true}, NULL},
        {{"", "tcp", "none", "a"},
         {"", "tcp", "none", "a"},
         {TRANSPORT_TCP, true, false, NULL},
         NULL},
        {{"", "tcp", "curve", "a"},
         {"", "tcp", "none", "a"},
         {TRANSPORT_TCP, true, false, NULL},
         "had --security curve, and those of the network no keys"},
        {{"", "tcp", "curve", "a"}, {"", "", "", ""}, {TRANSPORT_TCP, true, false, "curve"}, NULL},
        {{"", "tcp", "curve", "a"},
         {"", "tcp", "", "a"},
         {TRANSPORT_TCP, true, false, "auth-only"},
         "those of the job have --security auth-only"},
        {{"", "tcp", "curve", "a"},
         {"", "tcp", "", "a"},
         {TRANSPORT_AUTO, false, false, "none"},
         "those of the job have no keys"},
        {{"", "", "curve", "a"}, {"", "", "", "a"}, {TRANSPORT_AUTO, true, false, "none"}, NULL},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char why[256] = "";
        bool clashes =
            conditions_clash(&cases[i].costs, &cases[i].network, &cases[i].job, why, sizeof(why));
        assert_int_equal(clashes, cases[i].why != NULL);
        if (clashes && cases[i].why != NULL && strstr(why, cases[i].why) == NULL) {
            fail_msg("case %zu: '%s' instead of '%s'", i, why, cases[i].why);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_written_is_read_again),
        cmocka_unit_test(a_file_need_not_say_anything),
        cmocka_unit_test(bad_fields_are_refused_by_name),
        cmocka_unit_test(files_of_other_measurements_clash),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
