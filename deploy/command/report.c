/* `ringside report`: run folders, or the folder of a sweep, to tables, plots and HTML. */
#include "deploy/page/report.h"

#include "common/base/log.h"
#include "common/options/options.h"
#include "deploy/command/commands.h"
#include "deploy/page/sweep_report.h"
#include "deploy/sweep/sweep_file.h"
#include "deploy/system/command_text.h"
#include "deploy/system/folder.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Adds the run folders below a folder, by name. */
static enum status add_below(struct report *report, const char *path)
{
    char *names[REPORT_RUNS_MAX], below[RUN_FOLDER_PATH_MAX];
    size_t count = 0;
    DIR *folder = opendir(path);
    for (const struct dirent *entry;
         folder != NULL && count < REPORT_RUNS_MAX && (entry = readdir(folder)) != NULL;) {
        snprintf(below, sizeof(below), "%s/%s", path, entry->d_name);
        if (entry->d_name[0] != '.' && run_folder_has_summary(below)) {
            names[count++] = strdup(entry->d_name);
        }
    }
    if (folder != NULL) {
        closedir(folder);
    }
    qsort(names, count, sizeof(names[0]), compare_names);
    enum status status = count > 0 ? STATUS_OK : STATUS_INVALID;
    if (count == 0) {
        log_error("%s is not a run folder and contains none (no summary.json)", path);
    }
    for (size_t i = 0; i < count; i++) {
        snprintf(below, sizeof(below), "%s/%s", path, names[i]);
        if (status == STATUS_OK) {
            status = report_add(report, below);
        }
        free(names[i]);
    }
    return status;
}

static enum status add_folder(struct report *report, const char *path)
{
    return run_folder_has_summary(path) ? report_add(report, path) : add_below(report, path);
}

/* Folders that the command line has named. */
struct named {
    struct {
        dev_t device;
        ino_t number;
    } list[REPORT_RUNS_MAX];
    size_t count;
};

/* Whether a folder was named before, by whatever path. */
static bool is_named_again(struct named *named, const char *path)
{
    struct stat facts;
    if (stat(path, &facts) != 0) {
        return false; // which is said when it is read
    }
    for (size_t i = 0; i < named->count; i++) {
        if (named->list[i].device == facts.st_dev && named->list[i].number == facts.st_ino) {
            return true;
        }
    }
    if (named->count < REPORT_RUNS_MAX) {
        named->list[named->count].device = facts.st_dev;
        named->list[named->count++].number = facts.st_ino;
    }
    return false;
}

static const struct option own_rows[] = {
    {.name = "out",
     .letter = 'o',
     .type = OPTION_TEXT,
     .metavar = "DIR",
     .help = "folder to write; otherwise the first FOLDER"},
};

static const struct option_program program = {
    .name = "ringside report",
    .usage = "ringside report FOLDER ... [--out DIR]",
    .summary =
        "Run folders (or folders of them) to table.csv, table.md, plots and report.html. The "
        "folder of a\nsweep becomes what `ringside sweep` ends with.",
    .example = "  ringside report runs/a runs/b --out both\n",
    .taken_before = {.title = "Options",
                     .rows = own_rows,
                     .count = sizeof(own_rows) / sizeof(own_rows[0])},
};

enum exit_code command_report(int argc, char **argv)
{
    struct report report = {0};
    struct named named = {.count = 0};
    const char *out = NULL, *first = NULL, *sweep = NULL;
    enum exit_code code = EXIT_USAGE;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            options_print_help(&program, stdout);
            code = EXIT_COMPLETED;
            goto end;
        }
        if (strcmp(argv[i], "--describe-options") == 0) {
            options_describe(&program, stdout);
            code = EXIT_COMPLETED;
            goto end;
        }
        if ((strcmp(argv[i], "--out") == 0 || strcmp(argv[i], "-o") == 0) && i + 1 < argc) {
            out = argv[++i];
        } else if (strncmp(argv[i], "--out=", 6) == 0) {
            out = argv[i] + 6;
        } else if (argv[i][0] == '-') {
            log_error("unknown option '%.60s', or its value is missing; there is --out DIR",
                      argv[i]);
            goto end;
        } else if (is_named_again(&named, argv[i])) {
            log_error("%s is named twice: a run counts once in a report", argv[i]);
            goto end;
        } else if (sweep != NULL || (first != NULL && sweep_file_is_there(argv[i]))) {
            log_error("the folder of a sweep is reported by itself, and %s is another one",
                      argv[i]);
            goto end;
        } else if (sweep_file_is_there(argv[i])) {
            sweep = first = argv[i];
        } else if (add_folder(&report, argv[i]) != STATUS_OK) {
            code = EXIT_FAILED;
            goto end;
        } else if (first == NULL) {
            first = argv[i];
        }
    }
    if (first == NULL) {
        options_print_help(&program, stderr);
        goto end;
    }
    if (out != NULL && out[0] == '\0') {
        log_error("out is '': give it a value, or leave it out");
        goto end;
    }
    code = EXIT_FAILED;
    if (out != NULL && strcmp(out, first) != 0 && folder_make(out, NULL) != STATUS_OK) {
        goto end;
    }
    if (sweep != NULL) {
        code = sweep_report_read(sweep, out != NULL ? out : sweep) == STATUS_OK ? EXIT_COMPLETED
                                                                                : EXIT_FAILED;
        goto end;
    }
    command_text_write(argc, argv, report.command);
    code = report_write(&report, out != NULL ? out : first) == STATUS_OK ? EXIT_COMPLETED
                                                                         : EXIT_FAILED;
end:
    report_finish(&report);
    return code;
}
