/* ringside agent: started by the launcher on each host, never by hand. */
#include "common/options/options.h"
#include "deploy/agent/agent.h"
#include "deploy/command/commands.h"

#include <stddef.h>
#include <unistd.h>

struct agent_settings {
    double link_timeout; // seconds
    uint32_t terminal_fd;
    char lock[4096];
};

#define FIELD(kind, field) OPTION_FIELD(kind, agent_settings, field)

static const struct option rows[] = {
    {.name = "link-timeout",
     FIELD(REAL, link_timeout),
     .fallback = "0",
     OPTION_RANGE(0, 3600),
     .metavar = "SECONDS",
     .help = "silence of the launcher after which its processes here are ended; 0: never"},
    {.name = "terminal-fd",
     FIELD(U32, terminal_fd),
     .fallback = "0",
     OPTION_RANGE(0, 1 << 20),
     .metavar = "FD",
     .help = "open file descriptor that is the launcher's standard output, on its own host"},
    {.name = "lock",
     FIELD(TEXT, lock),
     .fallback = "",
     .metavar = "FILE",
     .help = "lock of the launcher's folder, on its own host: removed if the launcher goes first"},
};

enum exit_code command_agent(int argc, char **argv)
{
    struct agent_settings settings;
    bool is_done;
    struct option_program program = {
        .name = "ringside agent",
        .usage = "ringside agent [OPTION ...]",
        .summary = "Starts and ends processes of a job on this host, as the launcher says on "
                   "standard input.",
        .example = "  ssh node2 ringside agent      (which is what `ringside run -H` does)\n",
        .sets = {{.title = "Options",
                  .rows = rows,
                  .count = sizeof(rows) / sizeof(rows[0]),
                  .values = &settings}},
        .set_count = 1,
        // The launcher's variables, and those of start files on its host, are options of a
        // launcher.
        .takes_arguments_alone = true,
    };
    if (options_parse(&program, argc, argv, &is_done) != STATUS_OK) {
        return EXIT_USAGE;
    }
    if (is_done) {
        return EXIT_COMPLETED;
    }
    const struct agent_options options = {
        .input_fd = STDIN_FILENO,
        .output_fd = STDOUT_FILENO,
        .terminal_fd = settings.terminal_fd != 0 ? (int)settings.terminal_fd : -1,
        .silence_ms = (uint32_t)(1000 * settings.link_timeout),
        .lock = settings.lock,
    };
    return agent_run(&options);
}
