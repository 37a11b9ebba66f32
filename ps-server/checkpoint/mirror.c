/* Writes copies of the vault's checkpoints on a thread of its own. */
#include "ps-server/checkpoint/mirror.h"

#include "common/base/log.h"
#include "common/checkpoint/checkpoint_writer.h"
#include "common/checkpoint/mirror_owner.h"
#include "common/thread/task_thread.h"
#include "ps-server/checkpoint/mirror_place.h"
#include "ps-server/coordinator/coordinator_port.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PIECE_BYTES (UINT64_C(4) << 20) // after which it is seen that the disk gets on
#define WHY_BYTES   512
#define LEFT_MS     3000 // how long the end may take after mirror_leave: the disk hangs or fails

/* The checkpoint of a step, which the vault holds. */
struct task {
    uint64_t step;
    struct vault_vector *vectors; // (count), owned; their values are the vault's
    uint32_t count;
    json_t *job_part; // owned
};

struct mirror {
    struct mirror_place *place; // owned; the thread's while it writes
    struct slow_disk_wait wait;
    struct task_thread *thread; // NULL: nothing is written
    _Atomic uint64_t moved;     // pieces that the disk has taken
    atomic_bool is_over;        // nobody needs what is being written

    // Of the last one that was written; the thread's while it writes.
    uint64_t step;
    enum status status;
    char why[WHY_BYTES];

    bool is_left; // nobody uses it any more
    bool is_writing;
    bool is_slow, hangs, has_failed; // it was said
    uint64_t good;                   // step of the last one that is whole; 0: none
    uint64_t seen;                   // of `moved`
    struct task_watch watch;
};

/* Has a thread do something with the folder. False: the thread has the place. */
static bool await(struct mirror *mirror, const struct slow_disk_wait *wait, const char *complaint,
                  void (*work)(void *data), enum status *ret_status)
{
    struct mirror_place *place = mirror->place;
    const struct slow_disk_work what = {
        .complaint = complaint, .path = place->folder, .run = work, .data = place};
    enum status status = slow_disk_await(wait, &what);
    *ret_status = status == STATUS_OK ? place->status : status;
    if (slow_disk_is_given_up(status)) {
        mirror->place = NULL;
    }
    return mirror->place != NULL;
}

/* ==========================================================================================
 * The thread
 * ========================================================================================== */

static void task_finish(struct task *task)
{
    free(task->vectors);
    json_decref(task->job_part);
}

static enum status write_vector(struct mirror *mirror, const struct vault_vector *vector)
{
    enum status status = STATUS_OK;
    uint64_t size = vector->total * sizeof(float), at = 0;
    do {
        uint64_t piece = size - at < PIECE_BYTES ? size - at : PIECE_BYTES;
        status = checkpoint_write(mirror->place->writer, vector->name, at,
                                  (const char *)vector->values + at, piece);
        at += piece;
        mirror->moved++;
        if (mirror->is_over) {
            return STATUS_INTERRUPTED;
        }
    } while (status == STATUS_OK && at < size);
    return status;
}

static enum status write_all(struct mirror *mirror, const struct task *task)
{
    struct checkpoint_writer *writer = mirror->place->writer;
    struct checkpoint_vector *vectors = calloc((size_t)task->count + 1, sizeof(*vectors));
    if (vectors == NULL) {
        snprintf(mirror->why, sizeof(mirror->why), "there is no memory for it");
        return STATUS_NO_MEMORY;
    }
    enum status status = checkpoint_begin(writer, task->step);
    for (uint32_t i = 0; i < task->count && status == STATUS_OK; i++) {
        const struct vault_vector *vector = &task->vectors[i];
        vectors[i] = (struct checkpoint_vector){vector->name, vector->total * sizeof(float)};
        status = write_vector(mirror, vector);
    }
    if (status == STATUS_OK) {
        status = checkpoint_commit(writer, vectors, task->count, task->job_part);
    }
    if (status != STATUS_OK) {
        snprintf(mirror->why, sizeof(mirror->why), "%s", checkpoint_writer_error(writer));
        checkpoint_abandon(writer);
    }
    free(vectors);
    return status;
}

static void run_task(void *context, void *data)
{
    struct mirror *mirror = context;
    struct task *task = data;
    mirror->step = task->step;
    mirror->status = write_all(mirror, task);
    if (mirror->status == STATUS_OK && !mirror_place_restore(mirror->place)) {
        mirror->status = STATUS_IO;
        snprintf(mirror->why, sizeof(mirror->why), "cannot write %.400s/" MIRROR_FILE ": %s",
                 mirror->place->folder, strerrordesc_np(errno));
    }
    task_finish(task);
}

/* ==========================================================================================
 * The coordinator's
 * ========================================================================================== */

/* Ends what no thread has. */
static void finish(struct mirror *mirror)
{
    free(mirror->place);
    free(mirror);
}

enum status mirror_open(const struct mirror_options *options, struct mirror **ret_mirror)
{
    struct mirror *mirror = calloc(1, sizeof(*mirror));
    struct mirror_place *place = calloc(1, sizeof(*place));
    if (mirror == NULL || place == NULL) {
        free(mirror);
        free(place);
        return STATUS_NO_MEMORY;
    }
    mirror->place = place;
    mirror->wait = options->wait;
    place->goes_on = options->goes_on;
    place->is_again = options->is_again;
    snprintf(place->folder, sizeof(place->folder), "%s", options->folder);
    snprintf(place->run_folder, sizeof(place->run_folder), "%s", options->run_folder);
    snprintf(place->run, sizeof(place->run), "%s", options->run != NULL ? options->run : "");
    enum status status;
    (void)await(mirror, &options->wait, "given nothing of the mirror in", mirror_place_open,
                &status);
    if (status != STATUS_OK) {
        finish(mirror);
        return status;
    }
    *ret_mirror = mirror;
    return STATUS_OK;
}

bool mirror_is_of_run(const struct mirror *mirror)
{
    return mirror->place != NULL && mirror->place->is_of_run && !mirror->is_left;
}

void mirror_leave(struct mirror *mirror)
{
    mirror->is_left = true;
}

enum status mirror_begin(struct mirror *mirror)
{
    enum status status;
    (void)await(mirror, &mirror->wait, "not opened the mirror in", mirror_place_begin, &status);
    if (status != STATUS_OK) {
        return status;
    }
    const struct task_thread_options thread = {.name = "mirror",
                                               .capacity = 1,
                                               .task_bytes = sizeof(struct task),
                                               .run = run_task,
                                               .context = mirror};
    status = task_thread_create(&thread, &mirror->thread);
    if (status != STATUS_OK) {
        log_error("cannot start the thread that writes the mirror");
    }
    return status;
}

/* False: there is no memory for it. */
static bool list_vectors(const struct vault *vault, struct task *task)
{
    while (vault_vector(vault, task->count).name != NULL) {
        task->count++;
    }
    task->vectors = calloc((size_t)task->count + 1, sizeof(*task->vectors));
    for (uint32_t i = 0; i < task->count && task->vectors != NULL; i++) {
        task->vectors[i] = vault_vector(vault, i);
    }
    return task->vectors != NULL;
}

void mirror_take(struct mirror *mirror, struct vault *vault)
{
    if (mirror->thread == NULL || mirror->is_left || mirror->is_writing || vault_step(vault) == 0) {
        return;
    }
    struct task task = {.step = vault_step(vault)};
    task.job_part = vault_copy_job_part(vault);
    if (task.job_part == NULL || !list_vectors(vault, &task) || task.count == 0) {
        task_finish(&task);
        return; // the next one is written
    }
    vault_hold(vault);
    mirror->is_writing = task_thread_add(mirror->thread, &task);
    if (!mirror->is_writing) {
        vault_let_go(vault);
        task_finish(&task);
    }
}

static void describe_last(const struct mirror *mirror, char *ret_text, size_t size)
{
    if (mirror->good > 0) {
        snprintf(ret_text, size, "the last good one is of step %llu",
                 (unsigned long long)mirror->good);
    } else {
        snprintf(ret_text, size, "there is none of this process so far");
    }
}

/* The one that was written is done, well or not. */
static void note_done(struct mirror *mirror, struct coordinator *coordinator)
{
    char last[80];
    bool was_said = mirror->has_failed || mirror->hangs;
    mirror->is_writing = mirror->is_slow = mirror->hangs = false;
    if (mirror->status == STATUS_OK) {
        mirror->good = mirror->step;
        mirror->has_failed = false;
        if (was_said) {
            coordinator_port_say(&coordinator->port, false,
                                 "the mirror in %s takes copies again: it has step %llu",
                                 mirror->place->folder, (unsigned long long)mirror->step);
        }
        return;
    }
    if (!mirror->has_failed) {
        mirror->has_failed = true;
        describe_last(mirror, last, sizeof(last));
        coordinator_port_say(&coordinator->port, true,
                             "the mirror has no copy of step %llu: %s; training goes on, and %s",
                             (unsigned long long)mirror->step, mirror->why, last);
    }
}

/* Says once that the disk takes long, and that it hangs. */
static void watch(struct mirror *mirror, struct coordinator *coordinator, uint64_t now_ms)
{
    char text[COORDINATOR_REASON_BYTES], last[80];
    uint64_t moved = mirror->moved;
    bool has_moved = moved != mirror->seen || !mirror->is_writing;
    uint64_t idle_ms = task_watch_note(&mirror->watch, has_moved, now_ms);
    mirror->seen = moved;
    if (idle_ms == 0 || mirror->hangs) {
        return;
    }
    if (!mirror->is_slow && (double)idle_ms >= 1000 * mirror->wait.warn_s) {
        mirror->is_slow = true;
        slow_disk_describe("taken nothing of the mirror in", mirror->place->folder, idle_ms, text,
                           sizeof(text));
        coordinator_port_say(&coordinator->port, true, "%s; training goes on meanwhile", text);
    }
    if ((double)idle_ms >= 1000 * mirror->wait.fail_s) {
        mirror->hangs = true;
        slow_disk_describe_hanging("taken nothing of the mirror in", mirror->place->folder, idle_ms,
                                   text, sizeof(text));
        describe_last(mirror, last, sizeof(last));
        coordinator_port_say(&coordinator->port, true,
                             "%s; training goes on, copies are in memory alone until it takes "
                             "something, and of those in the mirror %s",
                             text, last);
    }
}

void mirror_look(struct mirror *mirror, struct vault *vault, struct coordinator *coordinator,
                 uint64_t now_ms)
{
    if (mirror->thread == NULL) {
        return;
    }
    if (mirror->is_writing && !task_thread_is_busy(mirror->thread, NULL)) {
        vault_let_go(vault);
        note_done(mirror, coordinator);
    }
    watch(mirror, coordinator, now_ms);
    coordinator->checkpointing.is_mirroring = mirror->is_writing && !mirror->hangs;
}

bool mirror_destroy(struct mirror *mirror, bool is_over, uint64_t patience_ms)
{
    enum status status;
    if (mirror == NULL || mirror->place == NULL) { // a thread has that
        free(mirror);
        return true;
    }
    if (mirror->is_left && patience_ms > LEFT_MS) {
        patience_ms = LEFT_MS;
    }
    mirror->is_over = is_over;
    if (mirror->thread != NULL &&
        !task_thread_destroy(mirror->thread, mirror->hangs ? 0 : patience_ms)) {
        return false;
    }
    const struct slow_disk_wait wait = {.warn_s = (double)patience_ms / 1000,
                                        .fail_s = (double)patience_ms / 1000};
    mirror->place->removes = is_over;
    bool is_ended =
        await(mirror, &wait, "not taken the end of the mirror in", mirror_place_end, &status);
    finish(mirror); // without what a thread has
    return is_ended;
}
