/* Looks for the checkpoint in one folder after the other. Each search has a thread of its own,
 * since the disk may hang. */
#include "ps-server/checkpoint/origin.h"

#include "common/base/log.h"
#include "common/thread/slow_disk.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PATH_BYTES  4200
#define NOTES_BYTES 4096
#define ERROR_BYTES 1024

/* A search of one folder. It belongs to its thread until that ends, so that a thread whose disk
 * hangs has all that it needs. */
struct search {
    struct job job;
    char folder[PATH_BYTES];
    uint64_t step; // of what was found in another folder; 0: nothing was
    bool was_completed, was_lost;
    struct origin found;
    bool has_some;
    uint32_t passed_over; // checkpoints on the way to it
    enum status status;
    _Atomic uint64_t read_bytes;
};

/* What was found so far. */
struct finds {
    struct origin origin;
    bool has_some, lacks_mirror;
    uint64_t written; // as in struct origin, which the next find may replace
    uint32_t passed_over;
};

/* `notes` has a line for each checkpoint that was passed over. */
static void note_passed_over(struct search *search, const char *notes)
{
    while (*notes != '\0') {
        size_t size = strcspn(notes, "\n");
        log_warn("%.*s", (int)size, notes);
        notes += size + (notes[size] == '\n');
        search->passed_over++;
    }
}

/* The newest one below a step. */
static enum status open_below(struct search *search, uint64_t before, char ret_error[ERROR_BYTES])
{
    const struct checkpoint_place place = {search->folder, before, &search->read_bytes};
    char notes[NOTES_BYTES] = "";
    enum status status = checkpoint_open_before(&place, &search->found.reader, ret_error,
                                                ERROR_BYTES, notes, sizeof(notes));
    note_passed_over(search, notes);
    return status;
}

static enum status read_part(struct search *search, char ret_error[ERROR_BYTES])
{
    struct origin *found = &search->found;
    return job_part_read(checkpoint_job_part(found->reader), &search->job,
                         checkpoint_step(found->reader), &found->part, ret_error, ERROR_BYTES);
}

static enum status refuse(const struct search *search, const char *error)
{
    log_error("cannot resume from %s: %s", checkpoint_path(search->found.reader), error);
    return STATUS_INVALID;
}

/* Opens the checkpoint before the open one in its place, if there is one that this job can go on
 * from. Otherwise the open one stays, and what it was refused for is still the reason. */
static bool step_back(struct search *search)
{
    struct checkpoint_reader *last = search->found.reader;
    char error[ERROR_BYTES] = "";
    if (open_below(search, checkpoint_step(last), error) != STATUS_OK) {
        return false;
    }
    if (read_part(search, error) != STATUS_OK) {
        checkpoint_reader_close(search->found.reader);
        search->found.reader = last;
        return false;
    }
    checkpoint_reader_close(last);
    return true;
}

/* Of the folder that the user has named. A job that was lost between its last checkpoint and its
 * result goes on from the checkpoint before that. */
static void search_named(void *data)
{
    struct search *search = data;
    char error[ERROR_BYTES] = "";
    search->status = open_below(search, UINT64_MAX, error);
    if (search->status != STATUS_OK) {
        log_error("cannot resume: %s", error);
        search->status = STATUS_INVALID;
        return;
    }
    search->status = read_part(search, error);
    if (search->status == STATUS_END_OF_DATA && search->was_lost && step_back(search)) {
        search->status = STATUS_OK;
    }
    if (search->status != STATUS_OK) {
        search->status = refuse(search, error);
    }
    search->has_some = search->status == STATUS_OK;
}

/* Of the job's own folder, if there is a whole one. A job that was lost between its last checkpoint
 * and its result goes on from the checkpoint before that. */
static void search_own(void *data)
{
    struct search *search = data;
    char error[ERROR_BYTES] = "";
    uint64_t before = UINT64_MAX;
    while (open_below(search, before, error) == STATUS_OK) {
        enum status status = read_part(search, error);
        bool is_complete = status == STATUS_END_OF_DATA;
        if (status == STATUS_OK || !is_complete || search->was_completed) {
            search->has_some = true;
            search->status = status == STATUS_OK || is_complete ? status : refuse(search, error);
            return;
        }
        before = checkpoint_step(search->found.reader);
        checkpoint_reader_close(search->found.reader);
        search->found.reader = NULL;
    }
}

/* Of the mirror, if that has a newer one than the job's own folder. */
static void search_mirror(void *data)
{
    struct search *search = data;
    char error[ERROR_BYTES] = "";
    if (open_below(search, UINT64_MAX, error) != STATUS_OK) {
        log_warn("nothing to go on from in --mirror %s: %s", search->folder, error);
    } else if (checkpoint_step(search->found.reader) > search->step) {
        search->status = read_part(search, error) == STATUS_OK ? STATUS_OK : refuse(search, error);
        search->has_some = true;
    }
}

void origin_finish(struct origin *origin)
{
    checkpoint_reader_close(origin->reader);
    job_part_finish(&origin->part);
    *origin = (struct origin){.reader = NULL};
}

static uint64_t step_of(const struct origin *origin)
{
    return origin->reader != NULL ? checkpoint_step(origin->reader) : 0;
}

/* Has a thread search a folder. What it finds replaces what was found so far. STATUS_IO and
 * STATUS_INTERRUPTED: the thread keeps the search until the process ends. */
static enum status look(const struct origin_options *options, const struct slow_disk_wait *wait,
                        const char *folder, void (*run)(void *data), struct finds *finds)
{
    struct search *search = calloc(1, sizeof(*search));
    if (search == NULL) {
        return STATUS_NO_MEMORY;
    }
    search->job = *options->job;
    snprintf(search->folder, sizeof(search->folder), "%s", folder);
    search->step = step_of(&finds->origin);
    search->was_completed = options->was_completed;
    search->was_lost = options->was_lost;
    const struct slow_disk_work work = {.complaint = "given nothing of the checkpoint in",
                                        .path = search->folder,
                                        .moved = &search->read_bytes,
                                        .run = run,
                                        .data = search};
    enum status status = slow_disk_await(wait, &work);
    if (slow_disk_is_given_up(status)) {
        return status;
    }
    status = status == STATUS_OK ? search->status : status;
    finds->passed_over += search->passed_over;
    if (status == STATUS_OK && search->has_some) {
        origin_finish(&finds->origin);
        finds->origin = search->found;
        finds->has_some = true;
    } else {
        origin_finish(&search->found);
    }
    free(search);
    return status;
}

/* Of the run that goes on: the newer one of those in its folder and in its mirror. */
static enum status look_for_newest(const struct origin_options *options, struct finds *finds)
{
    enum status status = look(options, &options->wait, options->folder, search_own, finds);
    finds->written = step_of(&finds->origin);
    if (status != STATUS_OK || options->mirror == NULL || options->mirror[0] == '\0') {
        return status;
    }
    const struct checkpoint_reader *own = finds->origin.reader;
    status = look(options, &options->mirror_wait, options->mirror, search_mirror, finds);
    finds->origin.is_of_mirror = finds->origin.reader != own;
    finds->lacks_mirror = status == STATUS_IO && options->may_lack_mirror;
    return finds->lacks_mirror ? STATUS_OK : status;
}

enum status origin_find(const struct origin_options *options, struct origin *ret_origin)
{
    struct finds finds = {.has_some = false};
    enum status status = options->goes_on ? look_for_newest(options, &finds) : STATUS_OK;
    *ret_origin = (struct origin){.reader = NULL};
    if (status == STATUS_OK && !finds.has_some && options->resume[0] != '\0') {
        status = look(options, &options->wait, options->resume, search_named, &finds);
        finds.written = step_of(&finds.origin);
    }
    if (status != STATUS_OK) {
        origin_finish(&finds.origin);
        return status;
    }
    *ret_origin = finds.origin;
    ret_origin->written = finds.written;
    ret_origin->lacks_mirror = finds.lacks_mirror;
    ret_origin->part.resume.passed_over = finds.passed_over;
    return STATUS_OK;
}
