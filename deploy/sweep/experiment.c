/* Reads experiment files, by inih. */
#include "deploy/sweep/experiment.h"

#include "common/base/log.h"

#include <ini.h>

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* The argument that a line stands for. False if its section has no such lines. */
static bool format_line(char *ret_line, const char *section, const char *name, const char *value)
{
    int used = -1;
    if (strcmp(section, "job") == 0) {
        used = snprintf(ret_line, EXPERIMENT_LINE_MAX, "--%s=%s", name, value);
    } else if (strcmp(section, "grid") == 0) {
        used = snprintf(ret_line, EXPERIMENT_LINE_MAX, "--" EXPERIMENT_GRID "=%s=%s", name, value);
    } else if (strcmp(section, "sweep") == 0 && strcmp(name, "repeat") == 0) {
        used = snprintf(ret_line, EXPERIMENT_LINE_MAX, "--repeat=%s", value);
    }
    return used >= 0 && used < EXPERIMENT_LINE_MAX;
}

/* Called by inih for each line; 0 says that it is wrong. */
static int take_line(void *data, const char *section, const char *name, const char *value)
{
    struct experiment *experiment = data;
    if (experiment->count == EXPERIMENT_LINES_MAX ||
        !format_line(experiment->lines[experiment->count], section, name,
                     value != NULL ? value : "")) {
        return 0;
    }
    experiment->count++;
    return 1;
}

static enum status read_file(const char *path, struct experiment *experiment)
{
    *experiment = (struct experiment){.count = 0};
    FILE *file = fopen(path, "re");
    int wrong_line = file != NULL ? ini_parse_file(file, take_line, experiment) : -1;
    bool is_read = file != NULL && ferror(file) == 0; // a folder is opened, and then not read
    if (!is_read) {
        log_error("cannot read the experiment %s: %m", path);
    }
    if (file != NULL) {
        fclose(file);
    }
    if (!is_read || wrong_line < 0) {
        return STATUS_INVALID;
    }
    if (wrong_line > 0) {
        log_error("%s:%d: wanted is NAME = VALUE of at most 198 characters, in a section [job], "
                  "[grid] or [sweep] (which has repeat alone), and at most %d of them",
                  path, wrong_line, EXPERIMENT_LINES_MAX);
        return STATUS_INVALID;
    }
    return STATUS_OK;
}

/* Where --experiment stands, and its value; -1 if it is not there. */
static int find(int argc, char **argv, const char **ret_path, int *ret_taken)
{
    static const char name[] = "--experiment";
    size_t size = strlen(name);
    for (int i = 1; i < argc; i++) {
        if (strncmp(argv[i], name, size) != 0) {
            continue;
        }
        if (argv[i][size] == '=') {
            *ret_path = argv[i] + size + 1;
            *ret_taken = 1;
            return i;
        }
        if (argv[i][size] == '\0' && i + 1 < argc) {
            *ret_path = argv[i + 1];
            *ret_taken = 2;
            return i;
        }
    }
    return -1;
}

enum status experiment_expand(int argc, char **argv, struct experiment *experiment, int *ret_argc,
                              char **ret_argv)
{
    const char *path = NULL;
    int taken = 0, count = 0;
    int at = find(argc, argv, &path, &taken);
    experiment->count = 0;
    if (at >= 0) {
        enum status status = read_file(path, experiment);
        if (status != STATUS_OK) {
            return status;
        }
    }
    ret_argv[count++] = argv[0];
    for (int i = 0; i < experiment->count; i++) {
        ret_argv[count++] = experiment->lines[i];
    }
    for (int i = 1; i < argc; i++) {
        if (at < 0 || i < at || i >= at + taken) {
            ret_argv[count++] = argv[i];
        }
    }
    ret_argv[count] = NULL;
    *ret_argc = count;
    return STATUS_OK;
}
