/* Finds and names a program of the user's own, and tells its processes what job they are of. */
#include "deploy/launch/own_program.h"

#include "deploy/agent/agent_message.h"
#include "deploy/system/programs.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const char *const *own_program_cut(int *argc, char **argv)
{
    for (int i = 1; i < *argc; i++) {
        if (strcmp(argv[i], "--") == 0) {
            *argc = i;
            argv[i] = NULL;
            return (const char *const *)argv + i + 1;
        }
    }
    return NULL;
}

static bool is_script(const char *argument)
{
    size_t size = strlen(argument);
    return size > 3 && strcmp(argument + size - 3, ".py") == 0;
}

/* A script is known by its own name, and not by that of its interpreter. */
static const char *name_of(const char *const *program)
{
    const char *name = program[0];
    for (size_t i = 1; program[i] != NULL && name == program[0]; i++) {
        name = is_script(program[i]) ? program[i] : name;
    }
    const char *slash = strrchr(name, '/');
    return slash != NULL && slash[1] != '\0' ? slash + 1 : name;
}

static void set_name(const char *const *program, struct job *job)
{
    const size_t room = sizeof(job->model) - sizeof(JOB_EXTERNAL_PREFIX);
    snprintf(job->model, sizeof(job->model), "%s%.*s", JOB_EXTERNAL_PREFIX, (int)room,
             name_of(program));
    for (char *at = job->model + strlen(JOB_EXTERNAL_PREFIX); *at != '\0'; at++) {
        bool is_plain = (*at >= 'a' && *at <= 'z') || (*at >= 'A' && *at <= 'Z') ||
                        (*at >= '0' && *at <= '9') || strchr("._+-", *at) != NULL;
        if (!is_plain) {
            *at = '_'; // it becomes part of a folder's name
        }
    }
}

enum status own_program_take(const char *const *program, bool is_for_here, struct job *job,
                             char *ret_error, size_t error_size)
{
    size_t count = 0;
    while (program[count] != NULL) {
        count++;
    }
    if (count == 0) {
        snprintf(ret_error, error_size, "%s",
                 "there is no program behind `--`: ringside run -n 2 -- python3 train.py");
        return STATUS_INVALID;
    }
    if (count + 2 > AGENT_LIST_MAX) { // env and its --
        snprintf(ret_error, error_size, "%s has %zu arguments, and at most %d are handed on",
                 program[0], count - 1, AGENT_LIST_MAX - 3);
        return STATUS_INVALID;
    }
    if (program[0][0] == '\0' || strchr(program[0], '=') != NULL) { // env would set a variable
        snprintf(ret_error, error_size,
                 "'%.200s' behind `--` is not the name of a program: set variables before ringside",
                 program[0]);
        return STATUS_INVALID;
    }
    if (is_for_here && !programs_have(program[0])) {
        snprintf(ret_error, error_size, "there is no program %.200s%s", program[0],
                 strchr(program[0], '/') == NULL ? " in the folders of PATH" : "");
        return STATUS_INVALID;
    }
    if (!job_is_external(job)) {
        set_name(program, job);
    }
    return STATUS_OK;
}

__attribute__((format(printf, 2, 3))) static void add(struct own_program_environment *environment,
                                                      const char *format, ...)
{
    va_list arguments;
    char *text = environment->texts[environment->count];
    va_start(arguments, format);
    vsnprintf(text, sizeof(environment->texts[0]), format, arguments);
    va_end(arguments);
    environment->list[environment->count++] = text;
}

/* What the user has set stays. */
static void add_unless_set(struct own_program_environment *environment, const char *name,
                           uint64_t value)
{
    if (getenv(name) == NULL) { // NOLINT(concurrency-mt-unsafe): nobody changes it
        add(environment, "%s=%" PRIu64, name, value);
    }
}

/* As many as the host's cores allow, where --threads does not say. */
static uint64_t thread_count(const struct launch *launch, size_t host)
{
    uint32_t local = launch->placement.local_size[host];
    uint64_t cores = launch->launcher->crew.links[host].facts.cores;
    uint64_t share = local > 0 ? cores / local : 1;
    return launch->job.threads > 0 ? launch->job.threads : share > 0 ? share : 1;
}

static void add_keys(struct own_program_environment *environment, const struct launch *launch)
{
    for (const char *const *at = launch->handover.arguments; *at != NULL; at++) {
        if (strcmp(*at, "--insecure") == 0) {
            add(environment, "RINGSIDE_INSECURE=true");
        } else if (strcmp(*at, "-") == 0) {
            add(environment, "RINGSIDE_KEYS=-"); // its standard input
        }
    }
}

/* A program may go to another folder before its part is written. */
static void add_timeline(struct own_program_environment *environment, const struct launch *launch,
                         size_t host)
{
    char here[LAUNCH_PATH_MAX] = "";
    const char *folder = launch->timelines != NULL ? launch->timelines[host] : NULL;
    if (folder != NULL && (folder[0] == '/' || getcwd(here, sizeof(here)) != NULL)) {
        bool is_relative = folder[0] != '/';
        add(environment, "RINGSIDE_TIMELINE_DIR=%s%s%s", is_relative ? here : "",
            is_relative ? "/" : "", folder);
    }
}

/* What the user has set for the program: the text of this process's own environment, however long
 * it is. */
static void hand_on(struct own_program_environment *environment, const char *name)
{
    size_t size = strlen(name);
    for (char **variable = environ; *variable != NULL; variable++) {
        if (strncmp(*variable, name, size) == 0 && (*variable)[size] == '=') {
            environment->list[environment->count++] = *variable;
            return;
        }
    }
}

void own_program_describe(const struct launch *launch, uint32_t rank,
                          struct own_program_environment *ret_environment)
{
    const struct placement *placement = &launch->placement;
    size_t host = placement->host_of_worker[rank];
    ret_environment->count = 0;
    add(ret_environment, "RINGSIDE_SERVER=%s", launch->endpoint);
    add(ret_environment, "RINGSIDE_RANK=%u", rank);
    add(ret_environment, "RINGSIDE_LOCAL_RANK=%u", placement->local_rank[rank]);
    add(ret_environment, "RINGSIDE_LOCAL_SIZE=%u", placement->local_size[host]);
    if (!launch->is_private) {
        add(ret_environment, "RINGSIDE_BIND=%s", launch->launcher->addresses[host]);
        add(ret_environment, "RINGSIDE_PORT_RANGE=%s", launch->launcher->host_options->port_range);
    }
    add_timeline(ret_environment, launch, host);
    hand_on(ret_environment, "RINGSIDE_LIBRARY");
    hand_on(ret_environment, "RINGSIDE_UPDATES");
    hand_on(ret_environment, "RINGSIDE_DATA"); // a folder, of which the program may read
    add_keys(ret_environment, launch);
    add_unless_set(ret_environment, "OMP_NUM_THREADS", thread_count(launch, host));
    add_unless_set(ret_environment, "PYTHONUNBUFFERED", 1); // its lines come as they are written
    ret_environment->list[ret_environment->count] = NULL;
}
