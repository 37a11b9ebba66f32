/* ringside: picks the command. */
#include "common/base/log.h"
#include "common/options/options.h"
#include "deploy/agent/agent_message.h"
#include "deploy/command/commands.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

struct command {
    const char *name;
    enum exit_code (*run)(int argc, char **argv);
    const char *summary; // NULL: not for people, and not in --help
};

static const struct command commands[] = {
    {"run", command_run, "one job: starts ps and workers, shows progress, writes a run folder"},
    {"compare", command_compare,
     "the same job in several modes, side by side: table, plots, report"},
    {"sweep", command_sweep, "a grid of jobs with several seeds: means and their intervals"},
    {"predict", command_predict, "from what a step costs on one worker to the speed of many"},
    {"calibrate", command_calibrate, "measures the costs that predict reads, from traced runs"},
    {"report", command_report, "run folders -> table, plots and one self-contained HTML page"},
    {"watch", command_watch, "a job that runs or has run: in the terminal, or on a page"},
    {"timeline", command_timeline,
     "what happened when in a job with --timeline, and what limits it"},
    {"evaluate", command_evaluate, "a checkpoint: test loss and accuracy"},
    {"export", command_export, "a checkpoint -> a file that PyTorch or Keras can load"},
    {"pack", command_pack, "a folder of images -> one file for slow file systems"},
    {"preview", command_preview, "training images as a model sees them -> one PNG file to look at"},
    {"check", command_check, "what this build and this machine can do"},
    {"ps", command_ps, "the program ps, started by hand: coordinator, and server of parameters"},
    {"worker", command_worker, "the program worker, started by hand: trains as one of a job"},
    {"join", command_join, "a worker that joins a running job, after a loss or as one more"},
    {"keygen", command_keygen, "a key file, for jobs whose processes are started by hand"},
    {"agent", command_agent, NULL},
};
static const size_t command_count = sizeof(commands) / sizeof(commands[0]);

static const char usage[] = "ringside COMMAND [OPTION ...]";
static const char summary[] =
    "Distributed training of CNNs: parameter server and ring all-reduce, side by side.";
static const char examples[] =
    "  ringside run -n 2 --mode ring --model lenet5 --data shapes\n"
    "  ringside compare -n 4 --modes local,ps-sync,ring --global-batch 128\n";

static void print_help(FILE *stream)
{
    fprintf(stream, "usage: %s\n\n%s\n\nCommands\n", usage, summary);
    for (size_t i = 0; i < command_count; i++) {
        if (commands[i].summary != NULL) {
            fprintf(stream, "  %-10s %s\n", commands[i].name, commands[i].summary);
        }
    }
    fprintf(stream, "\n`ringside COMMAND --help` lists the options of a command.\n\nExamples\n%s",
            examples);
}

/* As options_describe, with a line for each command. */
static void describe(void)
{
    const struct option_program program = {
        .name = "ringside", .usage = usage, .summary = summary, .example = examples};
    options_describe(&program, stdout);
    for (size_t i = 0; i < command_count; i++) {
        if (commands[i].summary != NULL) {
            printf("{\"command\":\"%s\",\"summary\":\"%s\"}\n", commands[i].name,
                   commands[i].summary);
        }
    }
}

static int refuse(const char *name)
{
    const char *names[sizeof(commands) / sizeof(commands[0])];
    for (size_t i = 0; i < command_count; i++) {
        names[i] = commands[i].name;
    }
    const char *nearest = options_nearest(name, names, command_count);
    log_error("there is no command '%.60s'%s%s%s", name, nearest != NULL ? "; did you mean " : "",
              nearest != NULL ? nearest : "", nearest != NULL ? "?" : "; see ringside --help");
    return EXIT_USAGE;
}

static int run_command(int argc, char **argv)
{
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
        print_help(stdout);
        return EXIT_COMPLETED;
    }
    if (strcmp(argv[1], "--describe-options") == 0) {
        describe();
        return EXIT_COMPLETED;
    }
    if (strcmp(argv[1], "--version") == 0) {
        printf("ringside %s\n", RINGSIDE_VERSION);
        return EXIT_COMPLETED;
    }
    for (size_t i = 0; i < command_count; i++) {
        if (strcmp(commands[i].name, argv[1]) == 0) {
            return (int)commands[i].run(argc - 1, argv + 1);
        }
    }
    return refuse(argv[1]);
}

/* The verdict of commands whose result is text. A job's is in its run folder. */
static int check_output(const char *command, int code)
{
    bool is_job = strcmp(command, "run") == 0 || strcmp(command, "compare") == 0 ||
                  strcmp(command, "sweep") == 0;
    bool is_lost = fflush(stdout) != 0 || ferror(stdout) != 0;
    if (!is_lost || code != EXIT_COMPLETED || is_job) {
        return code;
    }
    log_error("cannot write to standard output: %m");
    return EXIT_FAILED;
}

int main(int argc, char **argv)
{
    log_init("ringside", LOG_WARN);
    agent_message_wipe_memory(); // keys go to agents as JSON
    if (argc < 2) {
        print_help(stderr);
        return EXIT_USAGE;
    }
    return check_output(argv[1], run_command(argc, argv));
}
