/* What the coordinator's process asks of a disk while it does nothing else: on a thread, since the
 * disk may hang, which is named and ends the job. */
#include "common/base/clock.h"
#include "common/base/log.h"
#include "ps-server/checkpoint/beginning.h"
#include "ps-server/record/history.h"
#include "ps-server/record/recorded_job.h"
#include "ps-server/server_state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PATH_BYTES 4200
#define RELEASE_S  3 // that a disk gets for the lock which has failed before

/* The thread's until it is over: if the disk hangs, it has all that it needs. */
struct errand {
    char folder[PATH_BYTES]; // run folder
    char resume[PATH_BYTES]; // folder to go on from; ""
    struct folder_lock lock;
    struct history_entry entry;
    uint64_t step;
    struct job job;
    struct job_part part; // owned by whoever takes it
    bool has_run, was_completed, was_lost;
    const char *other_option; // of a run that was completed: see recorded_job_other_option
    enum status status;
};

/* While the disk is waited for: the launcher hears that the coordinator is alive, and the user may
 * want the end. */
static bool take_turn(void *context)
{
    struct server *server = context;
    const struct server_options *options = server->options;
    if (options->launcher_fd >= 0) {
        signs_preparing(&server->signs, options->announce_fd, clock_now_ms(),
                        (uint64_t)(1000 * server->job.start_timeout));
    }
    return *options->is_interrupted == 0;
}

struct slow_disk_wait server_disk_wait(struct server *server)
{
    return (struct slow_disk_wait){.warn_s = server->job.stall_warn,
                                   .fail_s = job_disk_fail_s(&server->job),
                                   .turn = take_turn,
                                   .context = server};
}

static struct errand *errand_create(const char *folder)
{
    struct errand *errand = calloc(1, sizeof(*errand));
    if (errand != NULL) {
        snprintf(errand->folder, sizeof(errand->folder), "%s", folder);
    }
    return errand;
}

/* STATUS_OK: it was run. Otherwise the errand is gone. */
static enum status run(struct server *server, const char *complaint, const char *path,
                       double fail_s, void (*work)(void *data), struct errand *errand)
{
    struct slow_disk_wait wait = server_disk_wait(server);
    const struct slow_disk_work what = {
        .complaint = complaint, .path = path, .run = work, .data = errand};
    if (errand == NULL) {
        return STATUS_NO_MEMORY;
    }
    wait.fail_s = fail_s;
    enum status status = slow_disk_await(&wait, &what);
    if (status == STATUS_NO_MEMORY) {
        free(errand);
    }
    server->has_disk_failed |= slow_disk_is_given_up(status);
    return status;
}

static enum status ask(struct server *server, const char *complaint, const char *path,
                       void (*work)(void *data), struct errand *errand)
{
    return run(server, complaint, path, job_disk_fail_s(&server->job), work, errand);
}

static void take_lock(void *data)
{
    struct errand *errand = data;
    errand->status = folder_lock_take(errand->folder, &errand->lock);
}

enum status server_hold_folder(struct server *server)
{
    const char *folder = server->options->folder;
    if (folder[0] == '\0' || server->options->launcher_fd >= 0) {
        return STATUS_OK;
    }
    struct errand *errand = errand_create(folder);
    enum status status = ask(server, "not locked the run folder", folder, take_lock, errand);
    if (status != STATUS_OK) {
        return status;
    }
    status = errand->status;
    server->lock = errand->lock;
    free(errand);
    return status;
}

static void release_lock(void *data)
{
    struct errand *errand = data;
    folder_lock_release(&errand->lock);
}

void server_release_folder(struct server *server)
{
    if (server->lock.folder[0] == '\0') {
        return;
    }
    struct errand *errand = errand_create(server->options->folder);
    double patience_s = (double)server_disk_patience_ms(server) / 1000;
    if (errand != NULL) {
        errand->lock = server->lock;
    }
    server->lock = (struct folder_lock){.fd = -1}; // the thread has it
    if (run(server, "not taken the end of the lock on", server->options->folder,
            server->has_disk_failed && patience_s > RELEASE_S ? RELEASE_S : patience_s,
            release_lock, errand) == STATUS_OK) {
        free(errand);
    }
}

static void look_at_past(void *data)
{
    struct errand *errand = data;
    if (errand->folder[0] != '\0') {
        errand->has_run = history_has_run(errand->folder);
        errand->was_completed = history_is_complete(errand->folder);
    }
    if (errand->was_completed) {
        errand->other_option = recorded_job_other_option(errand->folder, &errand->job);
    }
    if (errand->resume[0] != '\0') {
        errand->was_lost = history_has_run(errand->resume) && !history_is_complete(errand->resume);
    }
}

enum status server_look_at_past(struct server *server)
{
    const struct server_options *options = server->options;
    const char *folder = options->goes_on ? options->folder : "";
    if (server->has_looked || (folder[0] == '\0' && options->resume[0] == '\0')) {
        return STATUS_OK;
    }
    struct errand *errand = errand_create(folder);
    if (errand != NULL) {
        snprintf(errand->resume, sizeof(errand->resume), "%s", options->resume);
        errand->job = *options->job;
    }
    enum status status = ask(server, "given nothing of the run in",
                             folder[0] != '\0' ? folder : options->resume, look_at_past, errand);
    if (status != STATUS_OK) {
        return status;
    }
    server->has_looked = true;
    server->has_run = errand->has_run;
    server->was_completed = errand->was_completed;
    server->was_lost = errand->was_lost;
    server->other_option = errand->other_option;
    free(errand);
    return STATUS_OK;
}

enum status server_check_completed(const struct server *server)
{
    const char *folder = server->options->folder;
    if (!server->was_completed || keeper_begin_step(server->keeper) > 0) {
        return STATUS_OK;
    }
    if (server->other_option == NULL) {
        return STATUS_END_OF_DATA;
    }
    bool is_epochs = strcmp(server->other_option, "epochs") == 0;
    log_error(
        "the run in %s is complete, with %s --%s, and has no checkpoint%s: for this job, name "
        "another folder with --out",
        folder, is_epochs ? "other" : "another", server->other_option,
        is_epochs ? " that more of them could go on from" : "");
    return STATUS_INVALID;
}

static void complete_entry(void *data)
{
    struct errand *errand = data;
    history_complete_entry(errand->folder, &errand->entry);
}

enum status server_complete_entry(struct server *server, const char *folder,
                                  struct history_entry *entry)
{
    struct errand *errand = errand_create(folder);
    if (errand != NULL) {
        errand->entry = *entry;
    }
    enum status status = ask(server, "given nothing of the run in", folder, complete_entry, errand);
    if (status == STATUS_OK) {
        *entry = errand->entry;
        free(errand);
    }
    return status;
}

static void read_beginning(void *data)
{
    struct errand *errand = data;
    errand->status = beginning_read(errand->folder, errand->step, &errand->job, &errand->part);
}

enum status server_read_beginning(struct server *server, uint64_t step, struct job_part *ret_part)
{
    char path[PATH_BYTES];
    if (server->options->folder[0] == '\0') {
        return STATUS_INVALID; // nothing was noted
    }
    struct errand *errand = errand_create(server->options->folder);
    if (errand != NULL) {
        errand->step = step;
        errand->job = server->job;
    }
    snprintf(path, sizeof(path), "%.4096s/" BEGINNING_FILE, server->options->folder);
    enum status status = ask(server, "given nothing of", path, read_beginning, errand);
    if (status != STATUS_OK) {
        return status;
    }
    status = errand->status;
    if (status == STATUS_OK) {
        *ret_part = errand->part;
    }
    free(errand);
    return status;
}
