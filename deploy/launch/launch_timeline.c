/* Chooses folders for the parts of a timeline, and merges these at the end of the job. */
#include "deploy/launch/launch_timeline.h"

#include "common/base/log.h"
#include "deploy/launch/fetch.h"
#include "deploy/system/folder.h"
#include "deploy/trace/critical_file.h"
#include "deploy/trace/timeline_merge.h"

#include <stdio.h>
#include <stdlib.h>

void launch_timeline_forget(struct launch *launch)
{
    for (size_t i = 0; i < launch->timeline_count; i++) {
        free(launch->timelines[i]);
    }
    free(launch->timelines);
    launch->timelines = NULL;
    launch->timeline_count = 0;
}

static bool is_coordinators(const struct launch *launch, size_t host)
{
    return host == launch->placement.host_of_server[0];
}

static enum status note_folder(struct launch *launch, size_t host, const char *folder)
{
    char *path;
    if (asprintf(&path, "%s/" TIMELINE_PARTS_NAME, folder) < 0) {
        return STATUS_NO_MEMORY;
    }
    launch->timelines[host] = path;
    return STATUS_OK;
}

static enum status make_folder(struct launch *launch, size_t host)
{
    char folder[LAUNCH_PATH_MAX];
    if (launch->timelines[host] != NULL || !launch_is_remote(launch, host) ||
        is_coordinators(launch, host)) {
        return STATUS_OK;
    }
    enum status status = fetch_make_folder(&launch->launcher->crew, host, folder, sizeof(folder));
    return status == STATUS_OK ? note_folder(launch, host, folder) : status;
}

void launch_timeline_remove_old(const struct launch *launch)
{
    static const char *const names[] = {TIMELINE_PARTS_NAME, TIMELINE_NAME, CRITICAL_FILE_NAME};
    char path[LAUNCH_PATH_MAX + 64];
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        snprintf(path, sizeof(path), "%s/%s", launch->options->folder, names[i]);
        folder_remove(path);
    }
}

/* On hosts other than the coordinator's, whose agents are asked before they have anything else to
 * say: who waits for their answer hears nothing of members. */
static enum status make_folders(struct launch *launch)
{
    const struct placement *placement = &launch->placement;
    enum status status = STATUS_OK;
    for (uint32_t i = 1; i < placement->server_count && status == STATUS_OK; i++) {
        status = make_folder(launch, placement->host_of_server[i]);
    }
    for (uint32_t i = 0; i < placement->worker_count && status == STATUS_OK; i++) {
        status = make_folder(launch, placement->host_of_worker[i]);
    }
    return status;
}

enum status launch_timeline_begin(struct launch *launch)
{
    launch_timeline_forget(launch);
    if (!launch->options->job->timeline) {
        return STATUS_OK;
    }
    launch->timelines = calloc(launch->launcher->crew.count, sizeof(*launch->timelines));
    if (launch->timelines == NULL) {
        log_error("cannot prepare the timeline: out of memory");
        return STATUS_NO_MEMORY;
    }
    launch->timeline_count = launch->launcher->crew.count;
    return make_folders(launch);
}

enum status launch_timeline_choose(struct launch *launch, size_t host)
{
    if (launch->timelines == NULL || launch->timelines[host] != NULL) {
        return STATUS_OK;
    }
    // The coordinator's folder may be one that its agent has made, on its host.
    return note_folder(launch, host,
                       is_coordinators(launch, host) ? launch->folder : launch->options->folder);
}

/* Of an attempt that began no job: what was there before stays as it was. */
static void remove_parts(const char *folder)
{
    char path[LAUNCH_PATH_MAX + 64];
    snprintf(path, sizeof(path), "%s/" TIMELINE_PARTS_NAME, folder);
    folder_remove(path);
}

void launch_timeline_end(struct launch *launch)
{
    const char *folder = launch->options->folder;
    if (launch->endpoint[0] == '\0') {
        remove_parts(folder);
        launch_timeline_forget(launch);
        return;
    }
    for (size_t i = 0; i < launch->timeline_count; i++) {
        // The coordinator's has come as a whole.
        if (launch->timelines[i] != NULL && launch_is_remote(launch, i) &&
            !is_coordinators(launch, i)) {
            (void)fetch_folder(&launch->launcher->crew, i, folder);
        }
    }
    enum status status = launch->timelines != NULL ? timeline_merge(folder) : STATUS_OK;
    if (launch->timelines != NULL && status == STATUS_OK) {
        (void)critical_file_make(folder);
    } else if (status == STATUS_END_OF_DATA) {
        log_warn("the job has no timeline: none of its processes could write a part; %s/logs say "
                 "why",
                 folder);
    }
    launch_timeline_forget(launch);
}
