/* Makes the command line that reaches an agent through ssh, and knows what ssh's failures mean.
 * Pure. */
#ifndef DEPLOY_HOSTS_SSH_COMMAND_H
#define DEPLOY_HOSTS_SSH_COMMAND_H

#include "common/base/status.h"
#include "deploy/hosts/link_end.h"

#include <stddef.h>

#define SSH_WORDS_MAX     48
#define SSH_SCRIPT_BYTES  8192
#define SSH_CONNECT_SECS  4 // a host must have answered by then
#define SSH_COMMAND_BYTES 1024

struct ssh_command {
    char words[SSH_COMMAND_BYTES]; // --ssh, cut at blanks
    char timeout[32];
    char script[SSH_SCRIPT_BYTES];       // for the shell of the host
    const char *argv[SSH_WORDS_MAX + 1]; // into the above; ends with NULL
};

/* `ssh` is the user's command ("ssh", "ssh -p 2222"), `script` what the host's shell is to run.
 * Sets BatchMode (there is nobody to ask), ConnectTimeout and ServerAliveInterval; everything else
 * is the user's configuration. Returns STATUS_INVALID if it is too long. The command points into
 * itself, so it must not be moved. */
enum status ssh_command_make(struct ssh_command *command, const char *ssh, const char *host,
                             const char *script);

/* Makes a script that runs an agent: `place` if it is not "", otherwise the program at `own_path`
 * if it exists, otherwise the one on PATH. Returns STATUS_INVALID if a path cannot be quoted
 * because it has quotes, $, `, \, ! or control characters. (A place may begin with $HOME/.) */
enum status ssh_agent_script(const char *place, const char *own_path, double link_timeout,
                             char ret_script[SSH_SCRIPT_BYTES]);

/* For link_end_explain. */
extern const struct link_program ssh_program;

#endif
