/* Run folders to one report, and the command that does it. */
#include "deploy/report.h"

#include "common/log.h"
#include "deploy/commands.h"
#include "deploy/folder.h"
#include "deploy/html.h"
#include "deploy/plots.h"
#include "deploy/sweep_file.h"
#include "deploy/sweep_report.h"
#include "deploy/table.h"

#include <assert.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum status report_add(struct report *report, const char *run_folder)
{
    if (report->runs == NULL) {
        report->runs = calloc(REPORT_RUNS_MAX, sizeof(*report->runs));
    }
    if (report->runs == NULL || report->count == REPORT_RUNS_MAX) {
        log_error("more than %d runs in a report", REPORT_RUNS_MAX);
        return STATUS_NO_MEMORY;
    }
    enum status status = run_folder_open(run_folder, &report->runs[report->count]);
    report->count += status == STATUS_OK;
    return status;
}

void report_finish(struct report *report)
{
    for (size_t i = 0; i < report->count; i++) {
        run_folder_close(&report->runs[i]);
    }
    free(report->runs);
    *report = (struct report){0};
}

void report_quote(const char *argument, char *ret_text, size_t text_size)
{
    // What no shell takes for anything else. A tilde is, at the front.
    static const char safe[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                               "@%+=:,./_-";
    if (argument[0] != '\0' && argument[strspn(argument, safe)] == '\0') {
        snprintf(ret_text, text_size, "%s", argument);
        return;
    }
    size_t used = 0;
    ret_text[used++] = '\'';
    for (const char *at = argument; *at != '\0' && used + 6 < text_size; at++) {
        used +=
            (size_t)snprintf(ret_text + used, text_size - used, *at == '\'' ? "'\\''" : "%c", *at);
    }
    ret_text[used++] = '\'';
    ret_text[used] = '\0';
}

void report_set_command(struct report *report, int argc, char **argv)
{
    char quoted[REPORT_COMMAND_BYTES];
    size_t used = 0;
    int wrote = snprintf(report->command, sizeof(report->command), "ringside");
    for (int i = 0; i < argc && wrote > 0; i++) {
        used += (size_t)wrote;
        if (used >= sizeof(report->command)) {
            break;
        }
        assert(argv[i] != NULL);
        report_quote(argv[i], quoted, sizeof(quoted));
        wrote = snprintf(report->command + used, sizeof(report->command) - used, " %s", quoted);
    }
}

enum status report_write(const struct report *report, const char *folder)
{
    if (report->count == 0) {
        log_error("there is no run to report");
        return STATUS_INVALID;
    }
    enum status status = table_write(folder, report->runs, report->count);
    if (status == STATUS_OK) {
        status = plots_write(folder, report->runs, report->count);
    }
    if (status == STATUS_OK) {
        status = html_write(folder, report);
    }
    printf("\n");
    table_print(stdout, report->runs, report->count);
    printf("\n");
    table_print_verdicts(stdout, report->runs, report->count);
    if (status == STATUS_OK) {
        printf("report: %s/report.html\n", folder);
    }
    fflush(stdout);
    return status;
}

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
        snprintf(below, sizeof(below), "%s/%s/summary.json", path, entry->d_name);
        if (entry->d_name[0] != '.' && access(below, F_OK) == 0) {
            names[count++] = strdup(entry->d_name);
        }
    }
    if (folder != NULL) {
        closedir(folder);
    }
    qsort(names, count, sizeof(names[0]), compare_names);
    enum status status = count > 0 ? STATUS_OK : STATUS_INVALID;
    if (count == 0) {
        log_error("%s is no run folder, and there is none in it: no summary.json", path);
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
    char summary[RUN_FOLDER_PATH_MAX];
    snprintf(summary, sizeof(summary), "%s/summary.json", path);
    return access(summary, F_OK) == 0 ? report_add(report, path) : add_below(report, path);
}

static const struct option own_rows[] = {
    {"out", 'o', OPTION_TEXT, 0, 0, NULL, 0, 0, NULL, NULL, "DIR",
     "folder to write; otherwise the first FOLDER"},
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
    code = EXIT_FAILED;
    if (out != NULL && folder_make(out, NULL) != STATUS_OK) {
        goto end;
    }
    if (sweep != NULL) {
        code = sweep_report_read(sweep, out != NULL ? out : sweep) == STATUS_OK ? EXIT_COMPLETED
                                                                                : EXIT_FAILED;
        goto end;
    }
    report_set_command(&report, argc, argv);
    code = report_write(&report, out != NULL ? out : first) == STATUS_OK ? EXIT_COMPLETED
                                                                         : EXIT_FAILED;
end:
    report_finish(&report);
    return code;
}
