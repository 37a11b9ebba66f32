/* ringside check: what this build and this machine can do. */
#include "common/base/log.h"
#include "common/base/printable.h"
#include "common/job/job.h"
#include "common/job/job_effects.h"
#include "common/job/job_options.h"
#include "common/job/job_resolve.h"
#include "common/transport/transport.h"
#include "common/vector/vector.h"
#include "deploy/command/commands.h"
#include "deploy/hosts/host_options.h"
#include "deploy/hosts/launcher.h"
#include "deploy/launch/launch.h"
#include "deploy/preflight/preflight.h"
#include "deploy/system/process_run.h"
#include "deploy/system/programs.h"

#include <jansson.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/* Prints the backends of the worker; the number that are available. */
static unsigned print_backends(const struct programs *programs)
{
    char output[8192];
    const char *const argv[] = {programs->worker, "--backends", NULL};
    unsigned available = 0;
    const struct process_run_options options = {.argv = argv, .input = ""};
    int code = 0;
    if (process_run(&options, output, sizeof(output), &code) != STATUS_OK || code != 0) {
        printf("devices      the worker cannot list them\n");
        return 0;
    }
    for (char *line = output, *end; (end = strchr(line, '\n')) != NULL; line = end + 1) {
        *end = '\0';
        json_t *backend = json_loads(line, 0, NULL);
        bool is_available = json_is_true(json_object_get(backend, "available"));
        const char *name = json_string_value(json_object_get(backend, "name"));
        const char *summary = json_string_value(json_object_get(backend, "summary"));
        const char *why = json_string_value(json_object_get(backend, "why"));
        printf("device       %-5s %s: %s\n", name != NULL ? name : "?",
               is_available ? "yes" : "no ", is_available ? summary : why);
        const char *list = json_string_value(json_object_get(backend, "list"));
        if (list != NULL && list[0] != '\0') {
            printf("             %s\n", list);
        }
        available += is_available;
        json_decref(backend);
    }
    return available;
}

static void print_machine(void)
{
    struct rlimit files;
    long pages = sysconf(_SC_PHYS_PAGES), page_bytes = sysconf(_SC_PAGESIZE);
    printf("cores        %ld, vectors %s\n", sysconf(_SC_NPROCESSORS_ONLN), vector_variant());
    printf("memory       %.1f GiB\n", (double)pages * (double)page_bytes / (1 << 30));
    if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
        printf("open files   %llu%s\n", (unsigned long long)files.rlim_cur,
               files.rlim_cur < 1024 ? ": few; a job of many workers needs more (ulimit -n)" : "");
    }
}

static bool has_gnuplot(void)
{
    char output[256];
    const char *const argv[] = {"gnuplot", "--version", NULL};
    const struct process_run_options options = {.argv = argv, .input = ""};
    int code = 0;
    return process_run(&options, output, sizeof(output), &code) == STATUS_OK && code == 0;
}

/* What this host has. */
static bool check_here(const struct job *job, bool tries)
{
    struct programs programs;
    char text[256], line[4096];
    printf("ringside     %s\n", RINGSIDE_VERSION);
    transport_describe(text, sizeof(text));
    printf("transport    %s\n", text);
    print_machine();
    printf("gnuplot      %s\n",
           has_gnuplot() ? "yes" : "no: reports will have no plots (package gnuplot-nox)");
    if (programs_find(&programs) != STATUS_OK) {
        return false;
    }
    printf("ps           %s\nworker       %s\n", programs.ps, programs.worker);
    bool is_fine = print_backends(&programs) > 0;
    if (tries && job_is_external(job)) {
        printf("data         %s: a program of your own brings them\n", job->data);
    } else if (tries) {
        enum status status = programs_try(&programs, job, line, sizeof(line));
        if (status != STATUS_OK) {
            snprintf(line, sizeof(line), "%s (see above)\n",
                     status == STATUS_MISMATCH ? "an option asks for what the job does not have"
                                               : "cannot be used");
        }
        printf("data         %s: %s", job->data, line);
        is_fine = is_fine && status == STATUS_OK;
    }
    return is_fine;
}

static void print_hosts(const struct launcher *launcher)
{
    if (launcher->allocation.job[0] != '\0') {
        printf("slurm        job %s\n", launcher->allocation.job);
    }
    for (size_t i = 0; i < launcher->crew.count; i++) {
        const struct host_link *link = &launcher->crew.links[i];
        char address[160];
        launcher_describe_address(launcher, i, address, sizeof(address));
        printable_make(address, strlen(address));
        printf("host         %s: %s\n", link->name,
               link->state == HOST_LINK_UP ? address : "cannot be used (see below)");
    }
    fflush(stdout);
}

/* What the hosts of a job have, and whether they reach each other. */
static enum status check_hosts(const struct job *job, const struct host_options *hosts)
{
    static const struct launcher_options options = {.bind = "127.0.0.1"};
    struct launcher *launcher = calloc(1, sizeof(*launcher));
    struct preflight *preflight = calloc(1, sizeof(*preflight));
    enum status status = STATUS_NO_MEMORY;
    if (launcher != NULL && preflight != NULL) {
        launch_block_signals();
        preflight_begin(preflight, launcher, &options, hosts);
        print_hosts(launcher);
        preflight_try(preflight, job);
        status = preflight_end(preflight);
        launcher_close(launcher);
    }
    free(preflight);
    free(launcher);
    return status;
}

static enum exit_code check(const struct job *job, bool tries, const struct host_options *hosts)
{
    bool names_hosts = host_options_name_hosts(hosts);
    bool is_fine = check_here(job, tries && !names_hosts);
    if (names_hosts) {
        enum status status = check_hosts(job, hosts);
        if (status == STATUS_INTERRUPTED) {
            return EXIT_INTERRUPTED;
        }
        is_fine = is_fine && status == STATUS_OK;
    }
    printf("%s\n", is_fine ? "all that is needed is here" : "something that is needed is missing");
    return is_fine ? EXIT_COMPLETED : EXIT_FAILED;
}

/* Whether the command line says what a job would compute, which can be tried. */
static bool names_work(const struct option_program *program)
{
    static const char *const names[] = {"data", "model", "device", "precision"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (options_was_given(program, names[i])) {
            return true;
        }
    }
    return false;
}

enum exit_code command_check(int argc, char **argv)
{
    struct job job, resolved;
    struct host_options hosts;
    char error[OPTION_ERROR_BYTES];
    bool is_done;
    struct option_program program = {
        .name = "ringside check",
        .usage = "ringside check [--data NAME[:PATH]] [-H HOSTS] [OPTION ...]",
        .summary =
            "Prints what this build and this machine can do; with --data, --model, --device "
            "or --precision, tries\nthem; with -H, also what a job on those hosts would need.",
        .example = "  ringside check --data cifar10:/data/cifar10 --model cnn\n"
                   "  ringside check -H node1:2,node2:2 --mode ring\n",
        .sets = {job_option_set(&job), host_option_set(&hosts)},
        .set_count = 2,
    };
    if (options_parse(&program, argc, argv, &is_done) != STATUS_OK) {
        return EXIT_USAGE;
    }
    if (is_done) {
        return EXIT_COMPLETED;
    }
    hosts.preflight = true; // it is what was asked for
    if (host_options_fill(&hosts, options_was_given(&program, "workers"), job.processes,
                          &job.workers) != STATUS_OK) {
        return EXIT_USAGE;
    }
    resolved = job;
    const struct job_list jobs = {&resolved, 1, sizeof(resolved)};
    if (job_resolve(&resolved, error, sizeof(error)) != STATUS_OK ||
        job_check_effects(&program, &job, &jobs, error, sizeof(error)) != STATUS_OK) {
        log_error("%s", error);
        return EXIT_USAGE;
    }
    return check(&resolved, names_work(&program), &hosts);
}
