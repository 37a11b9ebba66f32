/* Reads metrics.jsonl line by line, and leaves out what is damaged. */
#include "deploy/report/metrics_file.h"

#include <stdbool.h>

#define LINE_BYTES 4096

void metrics_file_open(const struct run_folder *run, struct metrics_file *ret_metrics)
{
    *ret_metrics = (struct metrics_file){.file = NULL};
    snprintf(ret_metrics->path, sizeof(ret_metrics->path), "%s/metrics.jsonl", run->path);
    ret_metrics->file = fopen(ret_metrics->path, "re");
}

void metrics_file_close(struct metrics_file *metrics)
{
    if (metrics->file != NULL) {
        fclose(metrics->file);
        metrics->file = NULL;
    }
}

/* A line that is longer than any of ours is taken in pieces, which are no JSON. */
static bool read_line(struct metrics_file *metrics, char line[LINE_BYTES])
{
    if (metrics->file == NULL || fgets(line, LINE_BYTES, metrics->file) == NULL) {
        return false;
    }
    metrics->line++;
    return true;
}

json_t *metrics_file_next(struct metrics_file *metrics)
{
    char text[LINE_BYTES];
    while (read_line(metrics, text)) {
        json_t *line = json_loads(text, 0, NULL);
        if (json_is_object(line)) {
            return line;
        }
        json_decref(line);
        damaged_lines_note(&metrics->damaged, metrics->line);
    }
    return NULL;
}
