/* The table of options of `ringside run` and `ringside compare`, beside the job's. */
#include "deploy/hosts/launcher_options.h"

#include "common/options/log_level.h"

#include <stdio.h>
#include <time.h>
#include <unistd.h>

#define SAME_SECOND_MAX 1000

#define FIELD(kind, field) OPTION_FIELD(kind, launcher_options, field)

static const struct option rows[] = {
    {.name = "out",
     .letter = 'o',
     FIELD(TEXT, out),
     .fallback = "",
     .is_valid = options_text_is_there,
     .metavar = "DIR",
     .help = "folder to write, new or empty; the default is runs/DATE-TIME-..."},
    {.name = "bind",
     FIELD(TEXT, bind),
     .fallback = "127.0.0.1",
     .metavar = "ADDRESS",
     .help = "address that the processes listen on"},
    {.name = "port",
     .letter = 'p',
     FIELD(U32, port),
     .fallback = "0",
     OPTION_RANGE(0, 65535),
     .metavar = "PORT",
     .help = "TCP port of the coordinator; 0 picks a free one"},
    {.name = "log-level",
     FIELD(CHOICE, log_level),
     .fallback = "warn",
     .choices = log_level_choices,
     .help = "least severe lines in the logs"},
};

struct option_set launcher_option_set(struct launcher_options *options)
{
    return (struct option_set){.title = "The launcher",
                               .rows = rows,
                               .count = sizeof(rows) / sizeof(rows[0]),
                               .values = options};
}

void launcher_default_folder(struct launcher_options *options, const char *what)
{
    if (options->out[0] != '\0') {
        return;
    }
    time_t now = time(NULL);
    struct tm parts;
    char stamp[32];
    localtime_r(&now, &parts);
    strftime(stamp, sizeof(stamp), "%Y%m%d-%H%M%S", &parts);
    snprintf(options->out, sizeof(options->out), "runs/%s-%s", stamp, what);
    // Scripts begin several in one second.
    for (unsigned i = 2; i < SAME_SECOND_MAX && access(options->out, F_OK) == 0; i++) {
        snprintf(options->out, sizeof(options->out), "runs/%s-%s-%u", stamp, what, i);
    }
}
