/* What to say to ssh, and what it says. */
#include "deploy/hosts/ssh_command.h"

#include "deploy/system/advice.h"

#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

enum { EXIT_OF_SSH = 255, EXIT_NOT_FOUND = 127, EXIT_NOT_RUNNABLE = 126 };

enum status ssh_command_make(struct ssh_command *command, const char *ssh, const char *host,
                             const char *script)
{
    const char *const own[] = {"-T",
                               "-o",
                               "BatchMode=yes",
                               "-o",
                               command->timeout,
                               "-o",
                               "ServerAliveInterval=2",
                               "-o",
                               "ServerAliveCountMax=3"};
    static const size_t own_count = sizeof(own) / sizeof(own[0]);
    snprintf(command->timeout, sizeof(command->timeout), "ConnectTimeout=%d", SSH_CONNECT_SECS);
    if (strlen(ssh) >= sizeof(command->words) || strlen(script) >= sizeof(command->script)) {
        return STATUS_INVALID;
    }
    snprintf(command->words, sizeof(command->words), "%s", ssh);
    snprintf(command->script, sizeof(command->script), "%s", script);
    size_t count = 0;
    char *rest = NULL;
    for (char *word = strtok_r(command->words, " \t", &rest); word != NULL;
         word = strtok_r(NULL, " \t", &rest)) {
        if (count + own_count + 3 > SSH_WORDS_MAX) {
            return STATUS_INVALID;
        }
        command->argv[count++] = word;
    }
    if (count == 0) {
        return STATUS_INVALID;
    }
    for (size_t i = 0; i < own_count; i++) {
        command->argv[count++] = own[i];
    }
    command->argv[count++] = host;
    command->argv[count++] = command->script;
    command->argv[count] = NULL;
    return STATUS_OK;
}

/* Whether a path may stand between double quotes, themselves between single ones. */
static bool is_quotable(const char *path)
{
    static const char home[] = "$HOME/";
    path += strncmp(path, home, strlen(home)) == 0 ? strlen(home) : 0;
    for (const char *at = path; *at != '\0'; at++) {
        if ((unsigned char)*at < 0x20 || *at == 0x7F || strchr("'\"$`\\!", *at) != NULL) {
            return false;
        }
    }
    return true;
}

enum status ssh_agent_script(const char *place, const char *own_path, double link_timeout,
                             char ret_script[SSH_SCRIPT_BYTES])
{
    int used;
    if (!is_quotable(place)) {
        return STATUS_INVALID;
    }
    if (place[0] != '\0') {
        used = snprintf(ret_script, SSH_SCRIPT_BYTES, "sh -c 'exec \"%s\" agent --link-timeout %g'",
                        place, link_timeout);
    } else if (is_quotable(own_path)) {
        used = snprintf(ret_script, SSH_SCRIPT_BYTES,
                        "sh -c 'if test -x \"%s\"; then exec \"%s\" agent --link-timeout %g; fi; "
                        "exec ringside agent --link-timeout %g'",
                        own_path, own_path, link_timeout, link_timeout);
    } else {
        used = snprintf(ret_script, SSH_SCRIPT_BYTES,
                        "sh -c 'exec ringside agent --link-timeout %g'", link_timeout);
    }
    return used < SSH_SCRIPT_BYTES ? STATUS_OK : STATUS_INVALID;
}

/* What ssh says, and what helps. */
static const struct advice advices[] = {
    {"resolve hostname", "check the name; `ssh %s true` has to work (~/.ssh/config may name it)"},
    {"onnection refused", "start sshd there; `ssh %s true` has to work"},
    {"timed out", "is the host up, and its port of ssh open? `ssh %s true` has to work"},
    {"No route to host", "is the host up? `ssh %s true` has to work"},
    {"ermission denied", "give ssh a key that the host takes, such as with ssh-copy-id %s"},
    {"Host key verification", "connect once by hand to accept the host's key: ssh %s"},
    {"error while loading shared libraries",
     "install there what deploy/install-dependencies lists: %s lacks a library"},
};

void ssh_explain(const char *host, int result, const char *said, char ret_why[OPTION_ERROR_BYTES],
                 char ret_advice[OPTION_ERROR_BYTES])
{
    int code = WIFEXITED(result) ? WEXITSTATUS(result) : -1;
    bool has_said = said[0] != '\0';
    const char *advice = advice_find(advices, sizeof(advices) / sizeof(advices[0]), said,
                                     "`ssh %s true` has to work");
    if (code == EXIT_NOT_FOUND && strstr(said, "shared libraries") == NULL) {
        snprintf(ret_why, OPTION_ERROR_BYTES, "ringside is not there%s%.300s%s",
                 has_said ? " (" : "", said, has_said ? ")" : "");
        advice = "install it on %s, say where it is with --remote-ringside, or use --ship";
    } else if (code == EXIT_NOT_RUNNABLE) {
        snprintf(ret_why, OPTION_ERROR_BYTES, "ringside cannot be run there%s%.300s%s",
                 has_said ? " (" : "", said, has_said ? ")" : "");
        advice = "is it a build for %s's machine, and executable?";
    } else if (has_said) {
        snprintf(ret_why, OPTION_ERROR_BYTES, "%.400s", said);
    } else if (code >= 0) {
        snprintf(ret_why, OPTION_ERROR_BYTES, "%s ended with exit code %d",
                 code == EXIT_OF_SSH ? "ssh" : "the agent", code);
    } else {
        snprintf(ret_why, OPTION_ERROR_BYTES, "ssh was killed by signal %d", WTERMSIG(result));
    }
    advice_fill(advice, host, ret_advice);
}
