/* Chooses folders for the parts of a timeline, and merges these at the end of the job. */
#include "deploy/launch/launch_timeline.h"

#include "common/base/log.h"
#include "deploy/launch/fetch.h"
#include "deploy/system/folder.h"
#include "deploy/trace/critical_file.h"
#include "deploy/trace/timeline_merge.h"

#include <stdio.h>
#include <stdlib.h>

static void forget(struct launch *launch)
{
    for (size_t i = 0; i < launch->timeline_count; i++) {
        free(launch->timelines[i]);
    }
    free(launch->timelines);
    launch->timelines = NULL;
    launch->timeline_count = 0;
}

static void remove_old(const char *folder)
{
    static const char *const names[] = {TIMELINE_PARTS_NAME, TIMELINE_NAME, CRITICAL_FILE_NAME};
    char path[LAUNCH_PATH_MAX + 64];
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        snprintf(path, sizeof(path), "%s/%s", folder, names[i]);
        folder_remove(path);
    }
}

enum status launch_timeline_begin(struct launch *launch)
{
    forget(launch);
    remove_old(launch->options->folder);
    if (!launch->options->job->timeline) {
        return STATUS_OK;
    }
    launch->timelines = calloc(launch->launcher->crew.count, sizeof(*launch->timelines));
    if (launch->timelines == NULL) {
        log_error("cannot prepare the timeline: out of memory");
        return STATUS_NO_MEMORY;
    }
    launch->timeline_count = launch->launcher->crew.count;
    return STATUS_OK;
}

enum status launch_timeline_choose(struct launch *launch, size_t host)
{
    char folder[LAUNCH_PATH_MAX], *path;
    enum status status = STATUS_OK;
    if (launch->timelines == NULL || launch->timelines[host] != NULL) {
        return STATUS_OK;
    }
    if (!launch_is_remote(launch, host)) {
        snprintf(folder, sizeof(folder), "%s", launch->options->folder);
    } else if (host == launch->placement.host_of_server[0]) {
        snprintf(folder, sizeof(folder), "%s", launch->folder);
    } else {
        status = fetch_make_folder(&launch->launcher->crew, host, folder, sizeof(folder));
    }
    if (status != STATUS_OK) {
        return status;
    }
    if (asprintf(&path, "%s/" TIMELINE_PARTS_NAME, folder) < 0) {
        return STATUS_NO_MEMORY;
    }
    launch->timelines[host] = path;
    return STATUS_OK;
}

void launch_timeline_end(struct launch *launch)
{
    const char *folder = launch->options->folder;
    for (size_t i = 0; i < launch->timeline_count; i++) {
        bool is_coordinators = i == launch->placement.host_of_server[0]; // has come as a whole
        if (launch->timelines[i] != NULL && launch_is_remote(launch, i) && !is_coordinators) {
            (void)fetch_folder(&launch->launcher->crew, i, folder);
        }
    }
    if (launch->timelines != NULL && timeline_merge(folder) == STATUS_OK) {
        (void)critical_file_make(folder);
    }
    forget(launch);
}
