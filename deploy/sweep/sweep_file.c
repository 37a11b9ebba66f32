/* Writes and reads sweep.txt: "# command", "# on losses: OPTIONS" where they have any, "program
 * COMMAND" where the runs are of a program of the user's own, then for each run "[name] label", the
 * lines of its job, and an empty line. */
#include "deploy/sweep/sweep_file.h"

#include "common/base/log.h"
#include "common/job/job_text.h"
#include "deploy/system/folder.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PATH_BYTES (FOLDER_PATH_MAX + 32)

#define PROGRAM "program "
#define LOSSES  "# on losses: "

static void path_of(const char *folder, char ret_path[PATH_BYTES])
{
    snprintf(ret_path, PATH_BYTES, "%.4000s/" SWEEP_FILE_NAME, folder);
}

bool sweep_file_is_there(const char *folder)
{
    char path[PATH_BYTES];
    path_of(folder, path);
    return access(path, F_OK) == 0;
}

/* ==========================================================================================
 * Writing
 * ========================================================================================== */

/* The runs as text, without the command; the caller frees it. NULL without memory. */
static char *runs_text(const struct sweep_plan *plan)
{
    char job[JOB_TEXT_BYTES], *text = NULL;
    size_t size = 0;
    FILE *memory = open_memstream(&text, &size);
    bool is_written = memory != NULL && (plan->program[0] == '\0' ||
                                         fprintf(memory, PROGRAM "%s\n", plan->program) > 0);
    for (size_t i = 0; is_written && i < plan->count; i++) {
        const struct sweep_run *run = &plan->runs[i];
        is_written = job_encode(&run->job, job, sizeof(job)) == STATUS_OK &&
                     fprintf(memory, "[%s] %s\n%s\n", run->name, run->label, job) > 0;
    }
    if (memory != NULL && fclose(memory) != 0) {
        is_written = false;
    }
    if (!is_written) {
        free(text);
        return NULL;
    }
    return text;
}

/* Behind the lines of the command, which do not tell sweeps apart. */
static const char *skip_command(const char *text)
{
    while (*text == '#') {
        text += strcspn(text, "\n");
        text += *text == '\n';
    }
    return text;
}

/* The whole file; the caller frees it. NULL if it cannot be read. */
static char *read_file(const char *path)
{
    char *text = NULL;
    size_t size = 0;
    FILE *file = fopen(path, "re");
    // No file of ours has a byte of 0: this reads all of it.
    ssize_t length = file != NULL ? getdelim(&text, &size, '\0', file) : -1;
    if (file != NULL) {
        fclose(file);
    }
    if (length < 0) {
        free(text);
        return NULL;
    }
    return text;
}

#define NO_LOSSES "neither --mirror nor --restarts"

/* A sweep may go on with other options for losses: its runs stay the same, but not their mirrors.
 */
static void compare_losses(const char *folder, const char *text, const char *now)
{
    const char *line = strstr(text, "\n" LOSSES);
    bool is_there = line != NULL && line < skip_command(text);
    const char *before = is_there ? line + strlen("\n" LOSSES) : NO_LOSSES;
    size_t size = strcspn(before, "\n");
    now = now[0] != '\0' ? now : NO_LOSSES;
    if (size != strlen(now) || strncmp(before, now, size) != 0) {
        log_warn("sweep.txt in %s has %.*s, and the sweep goes on with %s: mirrors of runs before "
                 "stay where they are",
                 folder, (int)size, before, now);
    }
}

static enum status check_same(const char *folder, const char *path, const char *runs,
                              const char *losses)
{
    char *text = read_file(path);
    bool is_same = text != NULL && strcmp(skip_command(text), runs) == 0;
    if (is_same) {
        compare_losses(folder, text, losses);
    }
    free(text);
    if (!is_same) {
        log_error("%s holds another sweep: choose another folder with --out, or give the options "
                  "that it was begun with",
                  folder);
    }
    return is_same ? STATUS_OK : STATUS_INVALID;
}

struct contents {
    const char *command, *losses, *runs;
};

static void write_contents(FILE *file, const void *context)
{
    const struct contents *contents = context;
    bool has_losses = contents->losses[0] != '\0';
    fprintf(file, "# %s\n%s%s%s%s", contents->command, has_losses ? LOSSES : "", contents->losses,
            has_losses ? "\n" : "", contents->runs);
}

enum status sweep_file_open(const char *folder, const struct sweep_plan *plan, const char *command)
{
    char path[PATH_BYTES];
    path_of(folder, path);
    char *runs = runs_text(plan);
    if (runs == NULL) {
        return STATUS_NO_MEMORY;
    }
    enum status status;
    if (access(path, F_OK) == 0) {
        status = check_same(folder, path, runs, plan->losses);
    } else {
        const struct contents contents = {command, plan->losses, runs};
        status = folder_make(folder, NULL);
        if (status == STATUS_OK) {
            status = folder_write(folder, SWEEP_FILE_NAME, write_contents, &contents);
        }
    }
    free(runs);
    return status;
}

/* ==========================================================================================
 * Reading
 * ========================================================================================== */

/* Cuts a line off; *at goes behind it. */
static char *take_line(char **at)
{
    char *line = *at;
    size_t size = strcspn(line, "\n");
    *at = line + size + (line[size] == '\n');
    line[size] = '\0';
    return line;
}

/* "[name] label" */
static bool parse_head(const char *line, struct sweep_run *run)
{
    size_t size = strcspn(line, "]");
    if (line[0] != '[' || line[size] != ']' || line[size + 1] != ' ' ||
        size - 1 >= sizeof(run->name) || strlen(line + size + 2) >= sizeof(run->label) ||
        strchr(line, '/') != NULL) {
        return false;
    }
    memcpy(run->name, line + 1, size - 1);
    run->name[size - 1] = '\0';
    snprintf(run->label, sizeof(run->label), "%s", line + size + 2);
    return true;
}

/* Settings are told apart by their labels. */
static void find_group(struct sweep_plan *plan, struct sweep_run *run)
{
    run->group = plan->group_count;
    for (size_t i = 0; i < plan->count; i++) {
        if (strcmp(plan->runs[i].label, run->label) == 0) {
            run->group = plan->runs[i].group;
        }
    }
    plan->group_count += run->group == plan->group_count;
}

static bool read_run(char **at, struct sweep_plan *plan)
{
    struct sweep_run *run = &plan->runs[plan->count];
    char error[OPTION_ERROR_BYTES];
    if (!parse_head(take_line(at), run)) {
        return false;
    }
    char *end = strstr(*at, "\n\n");
    if (end == NULL) {
        return false;
    }
    end[1] = '\0';
    if (job_decode(*at, &run->job, error, sizeof(error)) != STATUS_OK) {
        return false;
    }
    *at = end + 2;
    find_group(plan, run);
    plan->count++;
    return true;
}

enum status sweep_file_read(const char *folder, struct sweep_plan *ret_plan,
                            char ret_command[COMMAND_TEXT_BYTES])
{
    char path[PATH_BYTES];
    path_of(folder, path);
    char *text = read_file(path), *at = text;
    struct sweep_plan plan = {.runs = calloc(SWEEP_RUNS_MAX, sizeof(*plan.runs))};
    bool is_sound = text != NULL && plan.runs != NULL && text[0] == '#';
    if (is_sound) {
        const char *command = take_line(&at);
        snprintf(ret_command, COMMAND_TEXT_BYTES, "%s", command + 1 + (command[1] == ' '));
    }
    if (is_sound && strncmp(at, LOSSES, strlen(LOSSES)) == 0) {
        snprintf(plan.losses, sizeof(plan.losses), "%s", take_line(&at) + strlen(LOSSES));
    }
    if (is_sound && strncmp(at, PROGRAM, strlen(PROGRAM)) == 0) {
        snprintf(plan.program, sizeof(plan.program), "%s", take_line(&at) + strlen(PROGRAM));
    }
    while (is_sound && *at != '\0') {
        is_sound = plan.count < SWEEP_RUNS_MAX && read_run(&at, &plan);
    }
    free(text);
    if (!is_sound || plan.count == 0) {
        log_error("%s does not describe a sweep of this version (run %zu)", path, plan.count + 1);
        sweep_plan_free(&plan);
        return STATUS_MALFORMED;
    }
    *ret_plan = plan;
    return STATUS_OK;
}
