/* ringside ps, ringside worker: the programs that are not on PATH, where `ps` is another one. */
#include "common/base/log.h"
#include "deploy/command/commands.h"
#include "deploy/system/programs.h"

#include <unistd.h>

static enum exit_code become(const char *path, char **argv)
{
    execv(path, argv);
    log_error("cannot start %s: %m", path);
    return EXIT_FAILED;
}

enum exit_code command_ps(int argc, char **argv)
{
    (void)argc;
    struct programs programs;
    return programs_find(&programs) == STATUS_OK ? become(programs.ps, argv) : EXIT_FAILED;
}

enum exit_code command_worker(int argc, char **argv)
{
    (void)argc;
    struct programs programs;
    return programs_find(&programs) == STATUS_OK ? become(programs.worker, argv) : EXIT_FAILED;
}
