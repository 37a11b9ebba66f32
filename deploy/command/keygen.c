/* ringside keygen: a key file for a job. */
#include "common/base/log.h"
#include "common/options/options.h"
#include "common/security/keys.h"
#include "common/security/z85.h"
#include "deploy/command/commands.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static const struct option own_rows[] = {
    {.name = "force",
     .type = OPTION_FLAG,
     .fallback = "false",
     .help = "replace an existing file: processes with the old keys are locked out"},
};

static const struct option_program program = {
    .name = "ringside keygen",
    .usage = "ringside keygen FILE [--force]",
    .summary =
        "Makes the keys of a job, and writes them to a file that only you can read; all processes "
        "of the\njob get it with --keys FILE. Prints the public ones.",
    .example = "  ringside keygen job.keys\n"
               "  ringside ps --bind 10.0.0.7 --workers 2 --keys job.keys\n",
    .taken_before = {.title = "Options",
                     .rows = own_rows,
                     .count = sizeof(own_rows) / sizeof(own_rows[0])},
};

static void print_key(const char *name, const struct key_pair *pair)
{
    char text[KEY_TEXT_BYTES];
    z85_encode(pair->public_key, KEY_BYTES, text);
    printf("%s = %s\n", name, text);
}

static enum exit_code make(const char *path, bool may_replace)
{
    struct keys *keys;
    enum status status = keys_generate(&keys);
    if (status != STATUS_OK) {
        log_error("cannot make keys: %s", status_text(status));
        return EXIT_FAILED;
    }
    status = keys_create_file(keys, path, may_replace);
    if (status == STATUS_OK) {
        print_key("server-public", &keys->server);
        print_key("client-public", &keys->client);
    }
    keys_destroy(keys);
    return exit_code(status);
}

enum exit_code command_keygen(int argc, char **argv)
{
    const char *path = NULL;
    bool may_replace = false;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            options_print_help(&program, stdout);
            return EXIT_COMPLETED;
        }
        if (strcmp(argv[i], "--describe-options") == 0) {
            options_describe(&program, stdout);
            return EXIT_COMPLETED;
        }
        if (strcmp(argv[i], "--force") == 0) {
            may_replace = true;
        } else if (argv[i][0] == '-') {
            log_error("unknown option '%.60s'; there is --force", argv[i]);
            return EXIT_USAGE;
        } else if (path != NULL) {
            log_error("one FILE at a time: '%.60s' is another one", argv[i]);
            return EXIT_USAGE;
        } else {
            path = argv[i];
        }
    }
    if (path == NULL) {
        options_print_help(&program, stderr);
        return EXIT_USAGE;
    }
    return make(path, may_replace);
}
