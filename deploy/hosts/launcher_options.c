/* The table of options of `ringside run` and `ringside compare`, beside the job's. */
#include "deploy/hosts/launcher_options.h"

#include "common/options/log_level.h"

#include <stdio.h>
#include <time.h>
#include <unistd.h>

#define SAME_SECOND_MAX 1000

#define FIELD(name) \
    offsetof(struct launcher_options, name), sizeof(((struct launcher_options *)0)->name)

static const struct option rows[] = {
    {"out", 'o', OPTION_TEXT, FIELD(out), "", 0, 0, NULL, NULL, "DIR",
     "folder to write, new or empty; otherwise runs/DATE-TIME-..."},
    {"bind", 0, OPTION_TEXT, FIELD(bind), "127.0.0.1", 0, 0, NULL, NULL, "ADDRESS",
     "address that the processes listen on"},
    {"port", 'p', OPTION_U32, FIELD(port), "0", 0, 65535, NULL, NULL, "PORT",
     "TCP port of the coordinator; 0 picks a free one"},
    {"log-level", 0, OPTION_CHOICE, FIELD(log_level), "warn", 0, 0, log_level_choices, NULL, NULL,
     "least severe lines in the logs"},
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
