/* The mirror of a coordinator, which is an aid: where it cannot be used, a job that is under way
 * goes on without it. */
#include "common/base/log.h"
#include "ps-server/checkpoint/mirror.h"
#include "ps-server/checkpoint/mirror_owner.h"
#include "ps-server/server_state.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PATH_BYTES 4200
#define OUTLAST_PARTS \
    4 // of which a mirror that is of no use gets one for each thing it is asked for

/* The thread's until it is over. */
struct farewell {
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

static void say_farewell(void *data)
{
    struct farewell *farewell = data;
    farewell->status = mirror_owner_leave(farewell->folder);
    farewell->error = errno;
}

/* In the run folder, whose disk the job needs anyway. */
static enum status note_left(struct server *server)
{
    const char *folder = server->options->folder;
    struct farewell *farewell = calloc(1, sizeof(*farewell));
    if (farewell == NULL) {
        return STATUS_NO_MEMORY;
    }
    snprintf(farewell->folder, sizeof(farewell->folder), "%s", folder);
    const struct slow_disk_wait wait = server_disk_wait(server);
    const struct slow_disk_work work = {.complaint = "not taken " MIRROR_FILE " in",
                                        .path = farewell->folder,
                                        .run = say_farewell,
                                        .data = farewell};
    enum status status = slow_disk_await(&wait, &work);
    if (slow_disk_is_given_up(status)) {
        server->has_disk_failed = true;
        return status; // which leaves it to the thread
    }
    status = status == STATUS_OK ? farewell->status : status;
    if (status != STATUS_OK) {
        log_error("cannot write %s/" MIRROR_FILE ", by which copies in --mirror %s would be known "
                  "to be old: %s",
                  folder, server->options->mirror, strerrordesc_np(farewell->error));
    }
    free(farewell);
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
