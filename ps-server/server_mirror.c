/* The mirror of a coordinator. If it cannot be used, a job that is under way goes on without it. */
#include "common/base/log.h"
#include "common/checkpoint/mirror_owner.h"
#include "ps-server/checkpoint/mirror.h"
#include "ps-server/server_state.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PATH_BYTES    4200
#define OUTLAST_PARTS 4 // of --outlast, one for each thing that the mirror's disk is asked for

/* That the run has left its mirror. Belongs to the thread that writes it until that ends. */
struct leave_note {
    char folder[PATH_BYTES]; // run folder
    enum status status;
    int error; // errno
};

static bool has_mirror(const struct server *server)
{
    return server->options->mirror != NULL && server->options->mirror[0] != '\0';
}

/* By hand, whoever starts the coordinator again can repair the folder first. */
bool server_may_lack_mirror(const struct server *server)
{
    return has_mirror(server) && (server->has_started || server->options->restarted[0] != '\0');
}

struct slow_disk_wait server_mirror_wait(struct server *server)
{
    struct slow_disk_wait wait = server_disk_wait(server);
    double most_s = server->job.outlast / OUTLAST_PARTS;
    if (server_may_lack_mirror(server) && most_s > 0 && wait.fail_s > most_s) {
        wait.fail_s = most_s;
    }
    return wait;
}

bool server_may_use_mirror(const struct server *server)
{
    return server->mirror != NULL && mirror_is_of_run(server->mirror);
}

/* Whether the status is about the mirror, and the job goes on. */
static bool is_bearable(const struct server *server, enum status status)
{
    return status != STATUS_OK && status != STATUS_INTERRUPTED && status != STATUS_NO_MEMORY &&
           server_may_lack_mirror(server);
}

static void write_leave_note(void *data)
{
    struct leave_note *note = data;
    note->status = mirror_owner_leave(note->folder);
    note->error = errno;
}

/* Writes it to the run folder, whose disk the job needs anyway. */
static enum status note_left(struct server *server)
{
    const char *folder = server->options->folder;
    struct leave_note *note = calloc(1, sizeof(*note));
    if (note == NULL) {
        return STATUS_NO_MEMORY;
    }
    snprintf(note->folder, sizeof(note->folder), "%s", folder);
    const struct slow_disk_wait wait = server_disk_wait(server);
    const struct slow_disk_work work = {.complaint = "not taken " MIRROR_FILE " in",
                                        .path = note->folder,
                                        .run = write_leave_note,
                                        .data = note};
    enum status status = slow_disk_await(&wait, &work);
    if (slow_disk_is_given_up(status)) {
        server->has_disk_failed = true;
        return status; // the thread keeps the note
    }
    status = status == STATUS_OK ? note->status : status;
    if (status != STATUS_OK) {
        log_error("cannot write %s/" MIRROR_FILE ", by which copies in --mirror %s would be known "
                  "to be old: %s",
                  folder, server->options->mirror, strerrordesc_np(note->error));
    }
    free(note);
    return status;
}

enum status server_leave_mirror(struct server *server)
{
    enum status status = note_left(server);
    if (status != STATUS_OK) {
        return status;
    }
    server->has_left_mirror = true;
    if (server->mirror != NULL) {
        mirror_leave(server->mirror);
    }
    log_warn(
        "the job goes on without --mirror %s, which cannot be used: copies that are left there "
        "are not taken any more, and can be removed",
        server->options->mirror);
    return STATUS_OK;
}

enum status server_open_mirror(struct server *server)
{
    const struct server_options *options = server->options;
    if (!has_mirror(server)) {
        return STATUS_OK;
    }
    const struct mirror_options mirror = {.folder = options->mirror,
                                          .run_folder = options->folder,
                                          .run = options->run,
                                          .goes_on = options->goes_on,
                                          .is_again = options->restarted[0] != '\0',
                                          .wait = server_mirror_wait(server)};
    enum status status = mirror_open(&mirror, &server->mirror);
    if (is_bearable(server, status)) {
        return server_leave_mirror(server);
    }
    server->has_disk_failed |= slow_disk_is_given_up(status);
    // A launcher would start the coordinator again, as one of a job that is under way.
    bool is_refused = status == STATUS_TIMED_OUT && options->launcher_fd >= 0;
    return is_refused ? STATUS_INVALID : status;
}

/* A run that goes on without its mirror does not take that again later. */
static void forget_mirror(struct server *server)
{
    char *folder = server->recorder != NULL ? strdup(server->options->folder) : NULL;
    if (folder != NULL && !recorder_do(server->recorder, mirror_owner_forget, folder)) {
        free(folder);
    }
}

enum status server_begin_mirror(struct server *server)
{
    if (server->has_left_mirror) {
        return STATUS_OK;
    }
    if (server->mirror == NULL) {
        forget_mirror(server);
        return STATUS_OK;
    }
    enum status status = mirror_begin(server->mirror);
    if (is_bearable(server, status)) {
        return server_leave_mirror(server);
    }
    server->has_disk_failed |= slow_disk_is_given_up(status);
    return status;
}

void server_end_mirror(struct server *server, bool is_over)
{
    if (!mirror_destroy(server->mirror, is_over && !server->is_replaced,
                        server_disk_patience_ms(server))) {
        log_error("the disk has not taken the end of the mirror in %s: what is there is left "
                  "behind",
                  server->options->mirror);
        server->vault = NULL; // the thread reads what it holds, until the process ends
    }
}
