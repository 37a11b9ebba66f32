/* Tests of the command lines for ssh, and of what its failures mean. */
#include "deploy/hosts/ssh_command.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <stdio.h>
#include <string.h>

static void the_users_command_comes_first_and_the_host_last(void **state)
{
    (void)state;
    struct ssh_command command;
    char line[2048] = "";
    assert_int_equal(ssh_command_make(&command, "ssh  -p 2222", "ada@node1", "sh -c 'true'"),
                     STATUS_OK);
    size_t used = 0;
    for (size_t i = 0; command.argv[i] != NULL; i++) {
        used += (size_t)snprintf(line + used, sizeof(line) - used, "[%s]", command.argv[i]);
    }
    assert_string_equal(line, "[ssh][-p][2222][-T][-o][BatchMode=yes][-o][ConnectTimeout=4][-o]"
                              "[ServerAliveInterval=2][-o][ServerAliveCountMax=3][ada@node1]"
                              "[sh -c 'true']");
    assert_int_equal(ssh_command_make(&command, " ", "node1", "true"), STATUS_INVALID);
    char words[SSH_COMMAND_BYTES];
    for (size_t i = 0; i + 1 < sizeof(words); i++) {
        words[i] = i % 2 == 0 ? 'v' : ' ';
    }
    words[sizeof(words) - 1] = '\0';
    assert_int_equal(ssh_command_make(&command, words, "node1", "true"), STATUS_INVALID);
}

static void an_agent_is_looked_for_where_the_user_says_or_here_or_on_the_path(void **state)
{
    (void)state;
    char script[SSH_SCRIPT_BYTES];
    assert_int_equal(ssh_agent_script("/opt/ring side", "/own", 5, script), STATUS_OK);
    assert_string_equal(script, "sh -c 'exec \"/opt/ring side\" agent --link-timeout 5'");
    assert_int_equal(ssh_agent_script("", "/own", 2.5, script), STATUS_OK);
    assert_non_null(strstr(script, "if test -x \"/own\"; then exec \"/own\" agent"));
    assert_non_null(strstr(script, "exec ringside agent --link-timeout 2.5'"));
    assert_int_equal(ssh_agent_script("", "/it's mine", 5, script), STATUS_OK);
    assert_string_equal(script, "sh -c 'exec ringside agent --link-timeout 5'");
    assert_int_equal(ssh_agent_script("$HOME/.cache/x", "/own", 5, script), STATUS_OK);
}

static void a_place_that_a_shell_would_read_otherwise_is_refused(void **state)
{
    (void)state;
    char script[SSH_SCRIPT_BYTES];
    static const char *const wrong[] = {"/a'b",  "/a\"b", "/$(rm x)", "/`x`",         "/a\\b",
                                        "/a\nb", "a!b",   "$HOMEx",   "$HOME/a$HOME/"};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        assert_int_equal(ssh_agent_script(wrong[i], "/own", 5, script), STATUS_INVALID);
    }
}

static void what_ssh_says_comes_with_what_to_do(void **state)
{
    (void)state;
    static const struct {
        int code;
        const char *said, *why, *advice;
    } cases[] = {
        {255, "ssh: Could not resolve hostname n1: Name or service not known", "resolve hostname",
         "`ssh n1 true`"},
        {255, "ssh: connect to host n1 port 22: Connection refused", "refused", "start sshd"},
        {255, "ssh: connect to host n1 port 22: Connection timed out", "timed out", "host up"},
        {255, "root@n1: Permission denied (publickey).", "Permission denied", "ssh-copy-id n1"},
        {255, "Host key verification failed.", "Host key", "ssh n1"},
        {255, "",
         "ssh ended with exit code 255: the connection broke, or the agent there was killed",
         "`ssh n1 true`"},
        {127, "sh: 1: exec: ringside: not found", "ringside is not there", "--ship"},
        {127, "x: error while loading shared libraries: libzmq.so.5: cannot open", "libzmq.so.5",
         "install-dependencies"},
        {126, "Exec format error", "cannot run there", "build for n1"},
        {1, "", "the agent ended with exit code 1", "ssh n1"},
    };
    char why[OPTION_ERROR_BYTES], advice[OPTION_ERROR_BYTES];
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        link_end_explain(&ssh_program, "n1", cases[i].code << 8, cases[i].said, why, advice);
        if (strstr(why, cases[i].why) == NULL || strstr(advice, cases[i].advice) == NULL) {
            fail_msg("'%s': %s; %s", cases[i].said, why, advice);
        }
    }
    link_end_explain(&ssh_program, "n1", 9, "", why, advice);
    assert_string_equal(why, "ssh was killed by signal 9");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_users_command_comes_first_and_the_host_last),
        cmocka_unit_test(an_agent_is_looked_for_where_the_user_says_or_here_or_on_the_path),
        cmocka_unit_test(a_place_that_a_shell_would_read_otherwise_is_refused),
        cmocka_unit_test(what_ssh_says_comes_with_what_to_do),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
