/* Finds the critical path, replays it, and writes both as JSON. */
#include "deploy/trace/critical_file.h"

#include "common/base/log.h"
#include "common/base/printable.h"
#include "deploy/trace/critical_path.h"
#include "deploy/trace/replay.h"
#include "deploy/trace/timeline_merge.h"

#include <jansson.h>

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PATH_BYTES     4200
#define SENTENCE_BYTES 512
#define SHOWN_MAX      8      // shares that people see
#define SHOWN_BYTES    512    // of a text
#define LEAST_SHARE    0.0005 // of the path, that the file has

static json_t *describe_shares(const struct timeline *timeline, const struct critical_path *path)
{
    json_t *shares = json_array();
    for (size_t i = 0; i < path->share_count; i++) {
        const struct critical_share *share = &path->shares[i];
        char who[96], name[128];
        double part = (double)share->ns / (double)path->total_ns;
        critical_name_who(timeline, share, who, sizeof(who));
        critical_name(timeline, share, name, sizeof(name));
        if (part >= LEAST_SHARE) {
            json_array_append_new(
                shares, json_pack("{s:s, s:s, s:s, s:f, s:f, s:f}", "name", name, "who", who,
                                  "what", critical_what_name(share->what), "share", part,
                                  "ms_per_step", (double)share->ns / 1e6 / (double)path->step_count,
                                  "steps_limited", (double)share->led / (double)path->step_count));
        }
    }
    return shares;
}

static enum status describe_changes(const struct segments *segments, json_t *ret_changes)
{
    double before, after;
    enum status status = replay_run(segments, REPLAY_AS_IT_WAS, &before);
    for (unsigned i = REPLAY_AS_IT_WAS + 1; i < REPLAY_CHANGE_COUNT && status == STATUS_OK; i++) {
        status = replay_run(segments, (enum replay_change)i, &after);
        if (status == STATUS_OK && before > 0) {
            json_array_append_new(ret_changes,
                                  json_pack("{s:s, s:f}", "change",
                                            replay_change_name((enum replay_change)i), "percent",
                                            100 * (after - before) / before));
        }
    }
    return status;
}

static enum status write_out(const char *run, json_t *object)
{
    char path[PATH_BYTES], draft[PATH_BYTES + 8];
    snprintf(path, sizeof(path), "%.4000s/" CRITICAL_FILE_NAME, run);
    snprintf(draft, sizeof(draft), "%s.part", path);
    unlink(draft);
    if (object == NULL || json_dump_file(object, draft, JSON_INDENT(2)) != 0 ||
        rename(draft, path) != 0) {
        log_error("cannot write %s: %m", path);
        unlink(draft);
        return STATUS_IO;
    }
    return STATUS_OK;
}

static enum status make(const char *run, const struct segments *segments,
                        struct critical_path *path)
{
    const struct timeline *timeline = segments->timeline;
    char sentence[SENTENCE_BYTES];
    enum status status = critical_path_find(segments, path);
    if (status != STATUS_OK || path->step_count == 0 || path->total_ns == 0) {
        return status;
    }
    json_t *changes = json_array();
    status = describe_changes(segments, changes);
    critical_sentence(timeline, path, sentence, sizeof(sentence));
    json_t *object =
        json_pack("{s:I, s:f, s:s, s:o, s:o}", "steps", (json_int_t)path->step_count, "ms_per_step",
                  (double)path->total_ns / 1e6 / (double)path->step_count, "limiter", sentence,
                  "shares", describe_shares(timeline, path), "what_if", changes);
    status = status == STATUS_OK ? write_out(run, object) : status;
    json_decref(object);
    return status;
}

/* What is made on the way, which the caller frees. */
struct making {
    struct timeline timeline;
    struct segments segments;
    struct timeline_flow *flows;
    struct critical_path *found;
};

static enum status make_all(const char *run, struct making *making)
{
    char path[PATH_BYTES];
    size_t flow_count;
    making->found = calloc(1, sizeof(*making->found));
    if (making->found == NULL) {
        return STATUS_NO_MEMORY;
    }
    snprintf(path, sizeof(path), "%.4000s/" TIMELINE_NAME, run);
    enum status status = timeline_read(path, &making->timeline);
    if (status != STATUS_OK) {
        return status;
    }
    status = timeline_list_flows(&making->timeline, &making->flows, &flow_count);
    if (status != STATUS_OK) {
        return status;
    }
    status = segments_make(&making->timeline, making->flows, flow_count, &making->segments);
    return status == STATUS_OK ? make(run, &making->segments, making->found) : status;
}

enum status critical_file_make(const char *run)
{
    struct making making = {0};
    enum status status = make_all(run, &making);
    if (status == STATUS_NO_MEMORY) {
        log_error("no memory for the critical path of %s: --timeline-steps records fewer steps",
                  run);
    }
    segments_finish(&making.segments);
    free(making.flows);
    timeline_finish(&making.timeline);
    free(making.found);
    return status;
}

/* A text of a file that anybody may have written, as a terminal may show it; "" if it is none. */
static const char *shown(const json_t *object, const char *key, char ret_text[SHOWN_BYTES])
{
    const char *text = json_string_value(json_object_get(object, key));
    snprintf(ret_text, SHOWN_BYTES, "%s", text != NULL ? text : "");
    printable_make_utf8(ret_text);
    return ret_text;
}

void critical_file_print(FILE *stream, const char *run)
{
    char path[PATH_BYTES], text[SHOWN_BYTES];
    size_t i;
    json_t *share, *change;
    snprintf(path, sizeof(path), "%.4000s/" CRITICAL_FILE_NAME, run);
    json_t *object = json_load_file(path, 0, NULL);
    if (object == NULL) {
        return;
    }
    fprintf(stream, "%s\n", shown(object, "limiter", text));
    json_array_foreach(json_object_get(object, "shares"), i, share)
    {
        if (i < SHOWN_MAX) {
            fprintf(stream, "  %5.1f %%  %8.3f ms a step  %s\n",
                    100 * json_number_value(json_object_get(share, "share")),
                    json_number_value(json_object_get(share, "ms_per_step")),
                    shown(share, "name", text));
        }
    }
    json_array_foreach(json_object_get(object, "what_if"), i, change)
    {
        fprintf(stream, "  %+5.1f %%  with %s\n",
                json_number_value(json_object_get(change, "percent")),
                shown(change, "change", text));
    }
    json_decref(object);
}
