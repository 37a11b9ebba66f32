/* metrics.jsonl while it is written: a line is there whole or not at all, also where the disk
 * becomes full in the midst of it. Nothing logs. */
#ifndef PS_SERVER_RECORD_METRICS_FILE_H
#define PS_SERVER_RECORD_METRICS_FILE_H

#include "common/base/status.h"

#include <jansson.h>

#include <stdbool.h>

#define METRICS_FILE "metrics.jsonl"

struct metrics_file {
    int fd; // -1: it is not open
};

static const struct metrics_file metrics_file_closed = {-1};

/* Opens a new file, where nothing may be, or the one that is there to go on with it. STATUS_IO and
 * errno. */
enum status metrics_file_open(struct metrics_file *file, const char *path, bool goes_on);

/* Whether the open file still has this path. */
bool metrics_file_is_in_place(const struct metrics_file *file, const char *path);

void metrics_file_close(struct metrics_file *file); // also where it is not open

/* Appends a line. STATUS_IO and errno: nothing of it is there. */
enum status metrics_file_add(struct metrics_file *file, const json_t *line);

#endif
