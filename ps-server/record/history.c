/* Reads and appends to restarts.jsonl. */
#include "ps-server/record/history.h"

#include "common/base/new_file.h"
#include "common/base/printable.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define PATH_BYTES 4200
#define LINE_BYTES 4096

static void path_of(const char *folder, const char *name, char ret_path[PATH_BYTES])
{
    snprintf(ret_path, PATH_BYTES, "%.4096s/%s", folder, name);
}

static bool is_there(const char *folder, const char *name)
{
    char path[PATH_BYTES];
    path_of(folder, name, path);
    return access(path, F_OK) == 0;
}

bool history_has_run(const char *folder)
{
    return is_there(folder, "job.json") || is_there(folder, "summary.json") ||
           is_there(folder, HISTORY_FILE);
}

/* NULL: there is none that is whole. */
static json_t *read_summary(const char *folder)
{
    char path[PATH_BYTES];
    path_of(folder, "summary.json", path);
    FILE *file = new_file_read(path);
    json_t *summary = file != NULL ? json_loadf(file, 0, NULL) : NULL;
    if (file != NULL) {
        fclose(file);
    }
    return summary;
}

bool history_is_complete(const char *folder)
{
    json_t *summary = read_summary(folder);
    const char *outcome = json_string_value(json_object_get(summary, "outcome"));
    bool is_complete = outcome != NULL && strcmp(outcome, "completed") == 0;
    json_decref(summary);
    return is_complete;
}

static uint32_t count_of(const json_t *tree, const char *name)
{
    json_int_t value = json_integer_value(json_object_get(tree, name));
    return value > 0 && value <= UINT32_MAX ? (uint32_t)value : 0;
}

static void raise_to(uint32_t *total, uint32_t value)
{
    *total = value > *total ? value : *total;
}

/* Calls `take` with each line. The last one may be cut, and what is no line of ours is skipped. */
static void read_lines(const char *folder, void (*take)(void *context, json_t *line), void *context)
{
    char path[PATH_BYTES], text[LINE_BYTES];
    path_of(folder, HISTORY_FILE, path);
    FILE *file = new_file_read(path);
    while (file != NULL && fgets(text, sizeof(text), file) != NULL) {
        json_t *line = json_loads(text, 0, NULL);
        if (json_is_object(line)) {
            take(context, line);
        }
        json_decref(line);
    }
    if (file != NULL) {
        fclose(file);
    }
}

static void take_totals(void *context, json_t *line)
{
    struct history_entry *entry = context;
    uint32_t launch = count_of(line, "launch");
    if (launch == 0) { // the job has gone on
        entry->counted_count = 0;
    } else if (entry->counted_count < HISTORY_COUNTED_MAX) {
        entry->counted[entry->counted_count++] = launch;
    }
    raise_to(&entry->restarts, count_of(line, "restarts"));
    raise_to(&entry->workers_lost, count_of(line, "workers_lost"));
}

void history_complete_entry(const char *folder, struct history_entry *entry)
{
    json_t *summary = read_summary(folder);
    const char *reason = json_string_value(json_object_get(summary, "reason"));
    uint32_t known = entry->restarts; // with this one
    entry->counted_count = 0;
    entry->restarts = count_of(summary, "restarts");
    raise_to(&entry->workers_lost, count_of(summary, "workers_lost"));
    read_lines(folder, take_totals, entry);
    entry->restarts += entry->restarts < UINT32_MAX;
    raise_to(&entry->restarts, known);
    if (entry->reason[0] == '\0') {
        snprintf(entry->reason, sizeof(entry->reason), "%s",
                 reason != NULL
                     ? reason
                     : "the coordinator before it ended without a result: was it killed?");
    }
    json_decref(summary);
}

/* Whether a process was killed while it wrote the last line. */
static bool ends_within_a_line(const char *path)
{
    FILE *file = new_file_read(path);
    bool is_cut = file != NULL && fseek(file, -1, SEEK_END) == 0 && fgetc(file) != '\n';
    if (file != NULL) {
        fclose(file);
    }
    return is_cut;
}

static json_t *loss_json(const struct history_entry *entry, const char *reason)
{
    return json_pack("{s:s, s:s, s:I, s:I}", "of", "loss", "reason", reason, "launch",
                     (json_int_t)entry->lost_launch, "workers_lost",
                     (json_int_t)entry->workers_lost);
}

static json_t *start_json(const struct history_entry *entry, const char *reason)
{
    return json_pack("{s:s, s:s, s:I, s:I, s:I}", "of", entry->is_whole ? "job" : "processes",
                     "reason", reason, "begin_step", (json_int_t)entry->begin_step, "restarts",
                     (json_int_t)entry->restarts, "workers_lost", (json_int_t)entry->workers_lost);
}

enum status history_add(const char *folder, const struct history_entry *entry)
{
    char path[PATH_BYTES], reason[HISTORY_REASON_BYTES];
    path_of(folder, HISTORY_FILE, path);
    snprintf(reason, sizeof(reason), "%s", entry->reason);
    printable_make_utf8(reason); // JSON takes nothing else
    bool is_cut = ends_within_a_line(path);
    int fd = new_file_append(path);
    FILE *file = fd >= 0 ? fdopen(fd, "a") : NULL;
    if (file == NULL) {
        if (fd >= 0) {
            close(fd);
        }
        return STATUS_IO;
    }
    json_t *line = entry->lost_launch != 0 ? loss_json(entry, reason) : start_json(entry, reason);
    bool is_written = line != NULL && (!is_cut || fputc('\n', file) != EOF) &&
                      json_dumpf(line, file, 0) == 0 && fputc('\n', file) != EOF;
    json_decref(line);
    return fclose(file) == 0 && is_written ? STATUS_OK : STATUS_IO;
}

static void list_whole(void *context, json_t *line)
{
    const char *of = json_string_value(json_object_get(line, "of"));
    if (of != NULL && strcmp(of, "job") == 0) {
        json_object_del(line, "of");
        json_object_del(line, "restarts");
        json_array_append(context, line);
    }
}

json_t *history_json(const char *folder)
{
    json_t *list = json_array();
    read_lines(folder, list_whole, list);
    return list;
}
