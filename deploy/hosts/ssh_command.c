/* Makes the command lines of ssh, and explains its failures. */
#include "deploy/hosts/ssh_command.h"

#include <stdio.h>
#include <string.h>

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

/* Whether a path may stand in double quotes that stand in single quotes. */
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

/* Messages of ssh, and what helps. */
static const struct advice advices[] = {
    {"resolve hostname", "check the name; `ssh %s true` has to work (~/.ssh/config may name it)"},
    {"onnection refused", "start sshd there; `ssh %s true` has to work"},
    {"timed out", "is the host up, and its ssh port open? `ssh %s true` has to work"},
    {"No route to host", "is the host up? `ssh %s true` has to work"},
    {"ermission denied", "give ssh a key that the host accepts, for example with ssh-copy-id %s"},
    {"Host key verification", "connect once by hand to accept the host's key: ssh %s"},
    {"error while loading shared libraries",
     "%s lacks a library: install what deploy/install-dependencies lists there"},
};

const struct link_program ssh_program = {
    .name = "ssh",
    .advices = advices,
    .advice_count = sizeof(advices) / sizeof(advices[0]),
    .otherwise = "`ssh %s true` has to work",
    .own_exit_code = 255,
    .agent = "the agent",
    .not_found = "ringside is not there",
    .not_found_advice = "install it on %s, say where it is with --remote-ringside, or use --ship",
    .not_runnable = "ringside cannot run there",
    .not_runnable_advice = "is it a build for %s's machine, and executable?",
};
