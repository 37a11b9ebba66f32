/* Looks for the checkpoint on a thread of its own, since the disk may hang. */
#include "ps-server/checkpoint/origin.h"

#include "common/base/log.h"
#include "common/thread/slow_disk.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PATH_BYTES  4200
#define NOTES_BYTES 4096
#define ERROR_BYTES 1024

/* The thread's until it has ended: if that hangs, it has all that it needs. */
struct search {
    struct job job;
    char resume[PATH_BYTES], folder[PATH_BYTES], mirror[PATH_BYTES];
    struct origin_options options; // of those above
    struct origin found;
    bool is_mirrored;     // what was found is in the mirror
    uint32_t passed_over; // checkpoints on the way to it
    enum status status;
    _Atomic uint64_t read_bytes;
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

/* The newest one in `folder` below a step. */
static enum status open_below(struct search *search, const char *folder, uint64_t before,
                              char ret_error[ERROR_BYTES])
{
    const struct checkpoint_place place = {folder, before, &search->read_bytes};
    char notes[NOTES_BYTES] = "";
    enum status status = checkpoint_open_before(&place, &search->found.reader, ret_error,
                                                ERROR_BYTES, notes, sizeof(notes));
    note_passed_over(search, notes);
    return status;
}

static enum status read_part(struct search *search, char ret_error[ERROR_BYTES])
{
    struct origin *found = &search->found;
    return job_part_read(checkpoint_job_part(found->reader), search->options.job,
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
    if (open_below(search, search->options.resume, checkpoint_step(last), error) != STATUS_OK) {
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
static enum status open_named(struct search *search)
{
    char error[ERROR_BYTES] = "";
    enum status status = open_below(search, search->options.resume, UINT64_MAX, error);
    if (status != STATUS_OK) {
        log_error("cannot resume: %s", error);
        return STATUS_INVALID;
    }
    status = read_part(search, error);
    if (status == STATUS_END_OF_DATA && search->options.was_lost && step_back(search)) {
        status = STATUS_OK;
    }
    return status == STATUS_OK ? status : refuse(search, error);
}

/* Of the job's own folder, if there is a whole one: *ret_has_some. A job that was lost between its
 * last checkpoint and its result goes on from the checkpoint before that. */
static enum status open_own(struct search *search, bool *ret_has_some)
{
    const struct origin_options *options = &search->options;
    char error[ERROR_BYTES] = "";
    uint64_t before = UINT64_MAX;
    while (open_below(search, options->folder, before, error) == STATUS_OK) {
        enum status status = read_part(search, error);
        bool is_complete = status == STATUS_END_OF_DATA;
        *ret_has_some = status == STATUS_OK || !is_complete || options->was_completed;
        if (*ret_has_some) {
            return status == STATUS_OK || is_complete ? status : refuse(search, error);
        }
        before = checkpoint_step(search->found.reader);
        checkpoint_reader_close(search->found.reader);
        search->found.reader = NULL;
    }
    *ret_has_some = false;
    return STATUS_OK;
}

void origin_finish(struct origin *origin)
{
    checkpoint_reader_close(origin->reader);
    job_part_finish(&origin->part);
    *origin = (struct origin){.reader = NULL};
}

/* Takes the mirror's newest checkpoint in the place of what was found so far, if it is newer. */
static enum status take_newer(struct search *search, bool *ret_has_some)
{
    char error[ERROR_BYTES] = "";
    struct origin own = search->found;
    uint64_t step = own.reader != NULL ? checkpoint_step(own.reader) : 0;
    search->found = (struct origin){.reader = NULL};
    if (open_below(search, search->mirror, UINT64_MAX, error) != STATUS_OK) {
        log_warn("nothing to go on from in --mirror %s: %s", search->mirror, error);
    } else if (checkpoint_step(search->found.reader) > step) {
        enum status status = read_part(search, error);
        if (status != STATUS_OK) {
            origin_finish(&own);
            return refuse(search, error);
        }
        origin_finish(&own);
        search->found.written = step;
        *ret_has_some = search->is_mirrored = true;
        return STATUS_OK;
    }
    origin_finish(&search->found);
    search->found = own;
    return STATUS_OK;
}

/* Opens the newest checkpoint of the run that goes on: in its folder, or in its mirror. */
static enum status open_newest(struct search *search, bool *ret_has_some)
{
    enum status status = open_own(search, ret_has_some);
    if (status == STATUS_OK && search->mirror[0] != '\0') {
        status = take_newer(search, ret_has_some);
    }
    return status;
}

static void run_search(void *data)
{
    struct search *search = data;
    bool has_some = false;
    search->status = search->options.goes_on ? open_newest(search, &has_some) : STATUS_OK;
    if (search->status == STATUS_OK && !has_some && search->options.resume[0] != '\0') {
        search->status = open_named(search);
    }
}

/* Has the thread do it. STATUS_IO and STATUS_INTERRUPTED: it has not, and has the search until the
 * process ends. */
static enum status run(struct search *search)
{
    const struct slow_disk_work work = {.complaint = "given nothing of the checkpoint in",
                                        .path = search->options.goes_on ? search->folder
                                                                        : search->resume,
                                        .moved = &search->read_bytes,
                                        .run = run_search,
                                        .data = search};
    return slow_disk_await(&search->options.wait, &work);
}

enum status origin_find(const struct origin_options *options, struct origin *ret_origin)
{
    *ret_origin = (struct origin){.reader = NULL};
    if (!options->goes_on && options->resume[0] == '\0') {
        return STATUS_OK;
    }
    struct search *search = calloc(1, sizeof(*search));
    if (search == NULL) {
        return STATUS_NO_MEMORY;
    }
    search->job = *options->job;
    snprintf(search->resume, sizeof(search->resume), "%s", options->resume);
    snprintf(search->folder, sizeof(search->folder), "%s", options->folder);
    snprintf(search->mirror, sizeof(search->mirror), "%s",
             options->mirror != NULL ? options->mirror : "");
    search->options = *options;
    search->options.job = &search->job;
    search->options.resume = search->resume;
    search->options.folder = search->folder;
    enum status status = run(search);
    if (slow_disk_is_given_up(status)) {
        return status; // which leaves it to the thread
    }
    status = status == STATUS_OK ? search->status : status;
    if (status == STATUS_OK) {
        search->found.part.resume.passed_over = search->passed_over;
        if (search->found.reader != NULL && !search->is_mirrored) {
            search->found.written = checkpoint_step(search->found.reader);
        }
        *ret_origin = search->found;
    } else {
        origin_finish(&search->found);
    }
    free(search);
    return status;
}
