/* Tests of the rule: keys off the loopback interface, unless it is said that none are needed. */
#include "common/security/security.h"
#include "tests/support/common/captured_log.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static void loopback_is_told_from_everything_else(void **state)
{
    (void)state;
    const char *const local[] = {
        "tcp://127.0.0.1:5555",  "tcp://127.0.0.1:*",      "tcp://127.9.8.7:1",
        "tcp://localhost:5555",  "tcp://[::1]:5555",       "tcp://[::ffff:127.0.0.1]:1",
        "ipc://@ringside-1-2-3", "ipc:///tmp/some.socket",
    };
    const char *const far[] = {
        "tcp://10.0.0.7:5555",
        "tcp://0.0.0.0:5555",
        "tcp://*:5555",
        "tcp://[::]:5555",
        "tcp://[2001:db8::1]:5555",
        "tcp://128.0.0.1:5555",
        "tcp://node7:5555",
        "tcp://localhost.example.org:5555",
        "tcp://127.0.0.1.example.org:5555",
        "tcp://127.0.0.1:0;10.0.0.7:5555", // from there to here
        "tcp://127.1:5555",                // some take this for 127.0.0.1; we do not
        "tcp://",
        "tcp://:5555",
        "tcp://[127.0.0.1:5555",
    };
    for (size_t i = 0; i < sizeof(local) / sizeof(local[0]); i++) {
        assert_true(security_is_local(local[i]));
    }
    for (size_t i = 0; i < sizeof(far) / sizeof(far[0]); i++) {
        if (security_is_local(far[i])) {
            fail_msg("%s was taken for loopback", far[i]);
        }
    }
    char long_name[600] = "tcp://";
    memset(long_name + 6, '1', 500);
    assert_false(security_is_local(long_name));
}

/* Whether it may; what it says if not. */
static bool may(const struct security *security, enum security_role role, const char *endpoint,
                const char **ret_said)
{
    captured_log_begin();
    enum status status = security_check(security, role, endpoint);
    *ret_said = captured_log_end();
    return status == STATUS_OK;
}

static void tcp_takes_keys_or_a_word(void **state)
{
    (void)state;
    const enum security_role roles[] = {SECURITY_LISTEN, SECURITY_CONNECT};
    const struct security none = {0}, insecure = {.is_insecure = true};
    const char *said;
    const char *const near[] = {"tcp://127.0.0.1:5555", "tcp://[::1]:5555", "tcp://localhost:1"};
    for (size_t i = 0; i < 2 * sizeof(near) / sizeof(near[0]); i++) {
        assert_false(may(i % 4 < 2 ? &none : NULL, roles[i % 2], near[i / 2], &said));
        // The three ways out.
        assert_non_null(
            strstr(said, i % 2 == 0 ? "leave out --bind and --port" : "without --bind and --port"));
        assert_non_null(strstr(said, "ipc endpoint that"));
        assert_non_null(strstr(said, "--keys FILE"));
        assert_non_null(strstr(said, "say --insecure if every user may take part"));
        assert_true(may(&insecure, roles[i % 2], near[i / 2], &said));
    }
    assert_false(security_allows_tcp(NULL));
    assert_false(security_allows_tcp(&none));
    assert_true(security_allows_tcp(&insecure));
    for (size_t i = 0; i < 2; i++) {
        assert_true(may(NULL, roles[i], "ipc://@ringside-name", &said));
        assert_true(may(NULL, roles[i], "ipc:///proc/4711/fd/12", &said));
        assert_true(may(&insecure, roles[i], "tcp://10.0.0.7:5555", &said));
        assert_false(may(NULL, roles[i], "tcp://10.0.0.7:5555", &said));
        assert_false(may(&none, roles[i], "tcp://10.0.0.7:5555", &said));
        assert_non_null(strstr(said, i == 0 ? "cannot listen at tcp://10.0.0.7:5555"
                                            : "cannot connect to tcp://10.0.0.7:5555"));
        assert_non_null(strstr(said, "`ringside keygen FILE`"));
        assert_non_null(strstr(said, "--keys FILE"));
        assert_non_null(strstr(said, "--insecure"));
    }
}

/* At others it is not looked at whose process the other side is. */
static void names_of_ipc_are_of_ringside(void **state)
{
    (void)state;
    const char *const wrong[] = {
        "ipc:///tmp/socket",
        "ipc://@name",
        "ipc://ringside-name",
        "ipc://",
        "tipc://{1,2}",
        "inproc://x",
        "nonsense",
        "ipc:///proc/1/fd/",
        "ipc:///proc//fd/2",
        "ipc:///proc/1/fd/2/../../../tmp/x",
        "ipc:///proc/self/fd/2",
        "ipc://@/proc/1/fd/2",
    };
    const struct security insecure = {.is_insecure = true};
    const char *said;
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        assert_false(may(NULL, SECURITY_CONNECT, wrong[i], &said));
        assert_non_null(strstr(said, "or ipc://@ringside-NAME"));
        assert_false(may(&insecure, SECURITY_LISTEN, wrong[i], &said));
    }
}

static void a_key_file_must_have_what_its_process_does(void **state)
{
    (void)state;
    struct keys *keys;
    const char *said;
    assert_int_equal(keys_generate(&keys), STATUS_OK);
    struct security security = {.keys = keys};
    const char *far = "tcp://10.0.0.7:5555", *near = "tcp://127.0.0.1:5555";
    assert_true(may(&security, SECURITY_LISTEN, far, &said));
    assert_true(may(&security, SECURITY_CONNECT, far, &said));
    keys->server.has_secret = false;
    assert_false(may(&security, SECURITY_LISTEN, far, &said));
    assert_non_null(strstr(said, "no server-secret"));
    assert_false(may(&security, SECURITY_LISTEN, near, &said));
    assert_true(may(&security, SECURITY_LISTEN, "ipc://@ringside-name", &said));
    assert_true(may(&security, SECURITY_CONNECT, far, &said));
    keys->server.has_secret = true;
    keys->client.has_secret = false;
    assert_true(may(&security, SECURITY_LISTEN, far, &said));
    assert_false(may(&security, SECURITY_CONNECT, near, &said));
    assert_non_null(strstr(said, "no client-secret"));
    keys->client.has_public = false;
    assert_false(may(&security, SECURITY_LISTEN, far, &said));
    assert_non_null(strstr(said, "nobody could connect"));
    keys->allowed_count = 1;
    assert_true(may(&security, SECURITY_LISTEN, far, &said));
    security_close(&security);
}

static void keys_and_none_contradict_each_other(void **state)
{
    (void)state;
    struct security_options options = {.keys = "job.keys", .insecure = true};
    captured_log_begin();
    assert_int_equal(security_check_options(&options), STATUS_INVALID);
    assert_non_null(strstr(captured_log_end(), "--keys and --insecure contradict each other"));
    options.insecure = false;
    assert_int_equal(security_check_options(&options), STATUS_OK);
    options = (struct security_options){.insecure = true};
    assert_int_equal(security_check_options(&options), STATUS_OK);
}

static void going_without_is_said_in_the_log(void **state)
{
    (void)state;
    const struct security_options options = {.insecure = true};
    struct security security;
    captured_log_begin();
    assert_int_equal(security_open(&options, &security), STATUS_OK);
    const char *said = captured_log_end();
    assert_non_null(strstr(said, " warn "));
    assert_non_null(strstr(said, "--insecure: connections are neither encrypted nor"));
    assert_true(security.is_insecure);
    security_close(&security);
}

static void a_process_with_keys_dumps_no_core(void **state)
{
    (void)state;
    const struct security_options options = {.keys = "/nowhere/job.keys"};
    struct security security;
    struct rlimit limit;
    captured_log_begin();
    assert_int_equal(security_open(&options, &security), STATUS_IO);
    captured_log_end();
    assert_int_equal(getrlimit(RLIMIT_CORE, &limit), 0);
    assert_int_equal(limit.rlim_cur, limit.rlim_max > 0 ? 1 : 0); // see core(5) on pipes
    security_close(&security);
}

/* In a process of its own, which cannot get its limit back. */
static void where_no_core_dump_may_have_a_byte_none_has_memory(void **state)
{
    (void)state;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        const struct rlimit none = {0, 0};
        char text[32] = "";
        setrlimit(RLIMIT_CORE, &none);
        security_forbid_core_dumps();
        FILE *file = fopen("/proc/self/coredump_filter", "re");
        bool is_empty = file != NULL && fgets(text, sizeof(text), file) != NULL &&
                        strcmp(text, "00000000\n") == 0;
        _exit(is_empty ? 0 : 1);
    }
    int result = -1;
    assert_int_equal(waitpid(child, &result, 0), child);
    assert_int_equal(result, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(loopback_is_told_from_everything_else),
        cmocka_unit_test(tcp_takes_keys_or_a_word),
        cmocka_unit_test(names_of_ipc_are_of_ringside),
        cmocka_unit_test(a_key_file_must_have_what_its_process_does),
        cmocka_unit_test(keys_and_none_contradict_each_other),
        cmocka_unit_test(going_without_is_said_in_the_log),
        cmocka_unit_test(a_process_with_keys_dumps_no_core),
        cmocka_unit_test(where_no_core_dump_may_have_a_byte_none_has_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
