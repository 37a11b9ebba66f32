/* Compares the options of two jobs. */
#include "common/job/job_resume.h"

#include "common/job/job_options.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Options that may differ when a job is resumed. This is the one place that says so: they are
 * about how a job is carried out, and leave its bits as they are. Only of ranks that are left out
 * the bits depend: those that a loss has taken may come back. */
static const char *const may_differ[] = {
    "threads",
    "server-threads",
    "servers",
    "transport",
    "connections",
    "security",
    "all-reduce",
    "cuda-peers",
    "cuda-graphs",
    "cuda-sync-check",
    "report-every",
    "start-timeout",
    "lost-after",
    "stall-warn",
    "stall-fail",
    "checkpoint-every",
    "keep",
    "processes",
    "on-loss",
    "min-workers",
    "fault",
    "timeline",
    "timeline-steps",
    "without-ranks",
    "loader-threads",
    "outlast",
    "cache",
    "cache-mb",
    "coordinator-role",
};

bool job_option_may_change(const char *name, const struct job *job)
{
    // A code is of the part that one shard has: others have other codes.
    bool is_of_shards = strcmp(name, "servers") == 0 || strcmp(name, "server-threads") == 0;
    if (is_of_shards && job->compress.kind != CODEC_NONE) {
        return false;
    }
    for (size_t i = 0; i < sizeof(may_differ) / sizeof(may_differ[0]); i++) {
        if (strcmp(name, may_differ[i]) == 0) {
            return true;
        }
    }
    return false;
}

/* The value of an option in a job's text; false if the text has none. */
static bool find_value(const char *text, const char *name, char value[OPTION_VALUE_BYTES])
{
    size_t name_size = strlen(name);
    while (*text != '\0') {
        size_t size = strcspn(text, "\n");
        if (size > name_size && text[name_size] == '=' && strncmp(text, name, name_size) == 0) {
            size_t value_size = size - name_size - 1;
            if (value_size >= OPTION_VALUE_BYTES) {
                return false;
            }
            memcpy(value, text + name_size + 1, value_size);
            value[value_size] = '\0';
            return true;
        }
        text += size + (text[size] == '\n');
    }
    return false;
}

static bool is_same(const struct option *row, const char *saved, const char *now)
{
    bool has_grown = strcmp(row->name, "epochs") == 0 && strtoull(now, NULL, 10) > 0 &&
                     strtoull(saved, NULL, 10) > 0 &&
                     strtoull(now, NULL, 10) >= strtoull(saved, NULL, 10);
    return has_grown || strcmp(saved, now) == 0;
}

/* A batch follows from the global batch, or the other way round: a user has given one of them. */
static void add_global_batches(const char *saved, const struct job *job,
                               char before[OPTION_VALUE_BYTES], char now[OPTION_VALUE_BYTES])
{
    char global[OPTION_VALUE_BYTES];
    size_t size = strlen(before), now_size = strlen(now);
    if (find_value(saved, "global-batch", global)) {
        snprintf(before + size, OPTION_VALUE_BYTES - size, " (--global-batch %.16s)", global);
        snprintf(now + now_size, OPTION_VALUE_BYTES - now_size, " (--global-batch %u)",
                 job->global_batch);
    }
}

enum status job_check_resume(const char *saved, const struct job *job, char *ret_error,
                             size_t error_size)
{
    for (size_t i = 0; i < job_option_count; i++) {
        const struct option *row = &job_options[i];
        char before[OPTION_VALUE_BYTES], now[OPTION_VALUE_BYTES];
        option_format(row, job, now, sizeof(now));
        if (!find_value(saved, row->name, before)) {
            snprintf(before, sizeof(before), "%s", row->fallback);
        }
        if (is_same(row, before, now) || job_option_may_change(row->name, job)) {
            continue;
        }
        bool is_less = strcmp(row->name, "epochs") == 0;
        if (strcmp(row->name, "batch") == 0) {
            add_global_batches(saved, job, before, now);
        }
        snprintf(ret_error, error_size,
                 "the checkpoint is of a job with --%s %.200s, this one has --%s %.200s: %s",
                 row->name, before, row->name, now,
                 is_less ? "epochs may become more, and not fewer"
                         : "give the same, or begin a new job without --resume");
        return STATUS_INVALID;
    }
    return STATUS_OK;
}
