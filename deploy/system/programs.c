/* Finds the programs ps and worker, and has a worker probe a job. */
#include "deploy/system/programs.h"

#include "common/base/log.h"
#include "common/base/signals.h"
#include "common/job/job_text.h"
#include "deploy/system/process.h"
#include "deploy/system/process_run.h"

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool is_executable(const char *path)
{
    return access(path, X_OK) == 0;
}

/* Where the programs may be: from the folder of this one if it does not begin with a slash. */
struct place {
    const char *ps, *worker;
};

static const struct place places[] = {
    {"../ps-server/ps", "../worker/worker"},                  // as they are built
    {LIBEXEC_FROM_BIN "/ps", LIBEXEC_FROM_BIN "/worker"},     // as they are installed
    {"../libexec/ringside/ps", "../libexec/ringside/worker"}, // as --ship lays them
};

static void make_path(const char *from, const char *place, char ret_path[PROGRAMS_PATH_MAX])
{
    bool is_absolute = place[0] == '/';
    snprintf(ret_path, PROGRAMS_PATH_MAX, "%s%s%s", is_absolute ? "" : from, is_absolute ? "" : "/",
             place);
}

void programs_find_own(char *ret_path, size_t path_size)
{
    ssize_t size = readlink("/proc/self/exe", ret_path, path_size - 1);
    ret_path[size > 0 ? size : 0] = '\0';
}

static bool is_program(const char *path)
{
    struct stat of;
    return stat(path, &of) == 0 && S_ISREG(of.st_mode) && access(path, X_OK) == 0;
}

/* Whether one of the folders of PATH has it; without PATH, one of those in which execvp looks then.
 */
static bool is_on_path(const char *name)
{
    char path[PROGRAMS_PATH_MAX], usual[PROGRAMS_PATH_MAX] = "";
    const char *at = getenv("PATH"); // NOLINT(concurrency-mt-unsafe): nobody changes it
    if (at == NULL && confstr(_CS_PATH, usual, sizeof(usual)) > 0) {
        at = usual;
    }
    while (at != NULL && *at != '\0') {
        int size = (int)strcspn(at, ":");
        snprintf(path, sizeof(path), "%.*s/%s", size, at, name);
        if (is_program(path)) {
            return true;
        }
        at += at[size] == ':' ? size + 1 : size;
    }
    return false;
}

bool programs_have(const char *program)
{
    return strchr(program, '/') != NULL ? is_program(program) : is_on_path(program);
}

enum status programs_find(struct programs *ret_programs)
{
    char self[PROGRAMS_PATH_MAX / 2];
    programs_find_own(self, sizeof(self));
    char *slash = strrchr(self, '/');
    if (slash != NULL) {
        *slash = '\0';
    }
    const char *libexec = getenv("RINGSIDE_LIBEXEC");
    struct programs *programs = ret_programs;
    bool is_found = false;
    if (libexec != NULL) {
        make_path(libexec, "ps", programs->ps);
        make_path(libexec, "worker", programs->worker);
        is_found = is_executable(programs->ps) && is_executable(programs->worker);
    }
    for (size_t i = 0; libexec == NULL && !is_found && i < sizeof(places) / sizeof(places[0]);
         i++) {
        make_path(self, places[i].ps, programs->ps);
        make_path(self, places[i].worker, programs->worker);
        is_found = is_executable(programs->ps) && is_executable(programs->worker);
    }
    if (!is_found) {
        log_error("cannot find the programs ps and worker (looked for %s and %s): set "
                  "RINGSIDE_LIBEXEC to their folder",
                  programs->ps, programs->worker);
        return STATUS_INVALID;
    }
    return STATUS_OK;
}

enum status programs_try(const struct programs *programs, const struct job *job, char *ret_line,
                         size_t line_size)
{
    char text[JOB_TEXT_BYTES];
    enum status status = job_encode(job, text, sizeof(text));
    if (status != STATUS_OK) {
        return status;
    }
    const char *const argv[] = {programs->worker, "--probe", NULL};
    const struct process_run_options options = {
        .argv = argv,
        .input = text,
        .timeout_ms = (unsigned)(1000 * job->start_timeout),
    };
    int code = 0;
    status = process_run(&options, ret_line, line_size, &code);
    if (status == STATUS_TIMED_OUT) {
        log_error("the job's data, model and device could not be opened within %g s "
                  "(--start-timeout)",
                  job->start_timeout);
    } else if (status == STATUS_IO) {
        char name[80] = "a signal";
        if (code < 0) {
            process_name_signal(-code, name, sizeof(name));
        }
        log_error("the probe of the job's data, model and device was killed by %s%s", name,
                  code == -SIGXFSZ   ? " (ulimit -f)"
                  : code == -SIGSEGV ? " (ulimit -s?)"
                                     : "");
    }
    // Otherwise the worker has said what is wrong.
    if (status != STATUS_OK || code == 0) {
        return status;
    }
    return code == EXIT_USAGE ? STATUS_MISMATCH : STATUS_INVALID;
}
