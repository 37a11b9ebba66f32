/* Explains why ssh or srun ended. */
#include "deploy/hosts/link_end.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

enum { EXIT_NOT_RUNNABLE = 126, EXIT_NOT_FOUND = 127 };

void link_end_explain(const struct link_program *program, const char *host, int result,
                      const char *said, char ret_why[OPTION_ERROR_BYTES],
                      char ret_advice[OPTION_ERROR_BYTES])
{
    int code = WIFEXITED(result) ? WEXITSTATUS(result) : -1;
    bool has_said = said[0] != '\0';
    bool lacks_library = strstr(said, "shared libraries") != NULL; // also exits with 127
    const char *why = NULL;
    const char *advice =
        advice_find(program->advices, program->advice_count, said, program->otherwise);
    if (code == EXIT_NOT_FOUND && !lacks_library) {
        why = program->not_found;
        advice = program->not_found_advice;
    } else if (code == EXIT_NOT_RUNNABLE && !lacks_library) {
        why = program->not_runnable;
        advice = program->not_runnable_advice;
    }
    if (why != NULL) {
        snprintf(ret_why, OPTION_ERROR_BYTES, has_said ? "%s (%.300s)" : "%s", why, said);
    } else if (has_said) {
        snprintf(ret_why, OPTION_ERROR_BYTES, "%.400s", said);
    } else if (code >= 0 && code == program->own_exit_code) {
        snprintf(ret_why, OPTION_ERROR_BYTES,
                 "%s ended with exit code %d: the connection broke, or the agent there was killed",
                 program->name, code);
    } else if (code >= 0) {
        snprintf(ret_why, OPTION_ERROR_BYTES, "%s ended with exit code %d", program->agent, code);
    } else {
        snprintf(ret_why, OPTION_ERROR_BYTES, "%s was killed by signal %d", program->name,
                 WTERMSIG(result));
    }
    advice_fill(advice, host, ret_advice);
}
