/* Reads the checkpoint that a job goes on from, and has others written. */
#include "ps-server/checkpoint/keeper.h"

#include "common/base/log.h"
#include "common/channel/snapshot.h"
#include "common/checkpoint/checkpoint_reader.h"
#include "ps-server/checkpoint/beginning.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PATH_BYTES  4200
#define NOTES_BYTES 4096
#define ERROR_BYTES 1024

/* What was done in memory alone. */
struct memory_news {
    bool is_end; // of the checkpoint; false: a piece of `peer` was stored
    enum status status;
    uint64_t step, peer;
};

struct keeper {
    struct keeper_options options;
    struct checkpoint_reader *reader; // NULL: the job begins, or goes on from memory
    bool has_part;
    struct job_part part;    // of what the job goes on from
    uint32_t passed_over;    // checkpoints on the way to it
    bool writes;             // checkpoints, by the saver
    char folder[PATH_BYTES]; // of checkpoints, in the run folder
    float *piece;            // (SNAPSHOT_PIECE_FLOATS) to answer with, owned

    // Which nobody was told yet.
    struct memory_news *news; // (news_capacity), owned; the oldest first
    uint32_t news_count, news_capacity;
};

/* `notes` has a line for each checkpoint that was passed over. */
static void note_passed_over(struct keeper *keeper, const char *notes)
{
    while (*notes != '\0') {
        size_t size = strcspn(notes, "\n");
        log_warn("%.*s", (int)size, notes);
        notes += size + (notes[size] == '\n');
        keeper->passed_over++;
    }
}

static enum status read_part_of_reader(struct keeper *keeper, char ret_error[ERROR_BYTES])
{
    return job_part_read(checkpoint_job_part(keeper->reader), keeper->options.job,
                         checkpoint_step(keeper->reader), &keeper->part, ret_error, ERROR_BYTES);
}

static enum status take_checkpoint(struct keeper *keeper)
{
    keeper->has_part = true;
    keeper->part.resume.passed_over = keeper->passed_over;
    keeper->piece = malloc(SNAPSHOT_PIECE_FLOATS * sizeof(float));
    return keeper->piece != NULL ? STATUS_OK : STATUS_NO_MEMORY;
}

static enum status refuse_checkpoint(const struct keeper *keeper, const char *error)
{
    log_error("cannot resume from %s: %s", checkpoint_path(keeper->reader), error);
    return STATUS_INVALID;
}

/* Opens the checkpoint before the open one in its place, if there is one that this job can go on
 * from. Otherwise the open one stays, and what it was refused for is still the reason. */
static bool step_back(struct keeper *keeper)
{
    struct checkpoint_place place = {keeper->options.resume, checkpoint_step(keeper->reader)};
    char error[ERROR_BYTES] = "", notes[NOTES_BYTES] = "";
    struct checkpoint_reader *last = keeper->reader;
    enum status status =
        checkpoint_open_before(&place, &keeper->reader, error, sizeof(error), notes, sizeof(notes));
    note_passed_over(keeper, notes);
    if (status != STATUS_OK) {
        return false;
    }
    if (read_part_of_reader(keeper, error) != STATUS_OK) {
        checkpoint_reader_close(keeper->reader);
        keeper->reader = last;
        return false;
    }
    checkpoint_reader_close(last);
    return true;
}

/* Of the folder that the user has named. A job that was lost between its last checkpoint and its
 * result goes on from the checkpoint before that. */
static enum status open_checkpoint(struct keeper *keeper)
{
    char error[ERROR_BYTES] = "", notes[NOTES_BYTES] = "";
    enum status status = checkpoint_open(keeper->options.resume, &keeper->reader, error,
                                         sizeof(error), notes, sizeof(notes));
    note_passed_over(keeper, notes);
    if (status != STATUS_OK) {
        log_error("cannot resume: %s", error);
        return STATUS_INVALID;
    }
    status = read_part_of_reader(keeper, error);
    if (status == STATUS_END_OF_DATA && keeper->options.was_lost && step_back(keeper)) {
        status = STATUS_OK;
    }
    return status == STATUS_OK ? take_checkpoint(keeper) : refuse_checkpoint(keeper, error);
}

/* Of the job's own folder, if there is a whole one: *ret_has_some. A job that was lost between its
 * last checkpoint and its result goes on from the checkpoint before that. */
static enum status open_own(struct keeper *keeper, bool *ret_has_some)
{
    struct checkpoint_place place = {keeper->options.folder, UINT64_MAX};
    char error[ERROR_BYTES] = "", notes[NOTES_BYTES] = "";
    while (checkpoint_open_before(&place, &keeper->reader, error, sizeof(error), notes,
                                  sizeof(notes)) == STATUS_OK) {
        note_passed_over(keeper, notes);
        enum status status = read_part_of_reader(keeper, error);
        bool is_complete = status == STATUS_END_OF_DATA;
        *ret_has_some = status == STATUS_OK || !is_complete || keeper->options.was_completed;
        if (*ret_has_some) {
            return status == STATUS_OK ? take_checkpoint(keeper)
                   : is_complete       ? status
                                       : refuse_checkpoint(keeper, error);
        }
        place.before = checkpoint_step(keeper->reader);
        checkpoint_reader_close(keeper->reader);
        keeper->reader = NULL;
    }
    note_passed_over(keeper, notes);
    *ret_has_some = false;
    return STATUS_OK;
}

/* What to go on from is in memory. */
static enum status take_vault(struct keeper *keeper)
{
    const struct keeper_options *options = &keeper->options;
    char error[ERROR_BYTES] = "";
    enum status status =
        job_part_read(vault_job_part(options->vault), options->job, vault_step(options->vault),
                      &keeper->part, error, sizeof(error));
    if (status != STATUS_OK) {
        log_error("cannot go on from step %llu: %s", (unsigned long long)vault_step(options->vault),
                  error);
    }
    keeper->has_part = status == STATUS_OK;
    return status;
}

static bool is_in_memory(const struct keeper *keeper)
{
    return keeper->options.vault != NULL && vault_step(keeper->options.vault) > 0;
}

static enum status find_beginning(struct keeper *keeper)
{
    if (is_in_memory(keeper)) {
        return take_vault(keeper);
    }
    bool has_some = false;
    enum status status = keeper->options.goes_on ? open_own(keeper, &has_some) : STATUS_OK;
    if (has_some) {
        return status;
    }
    return keeper->options.resume[0] != '\0' ? open_checkpoint(keeper) : STATUS_OK;
}

enum status keeper_create(const struct keeper_options *options, struct keeper **ret_keeper)
{
    struct keeper *keeper = calloc(1, sizeof(*keeper));
    if (keeper == NULL) {
        return STATUS_NO_MEMORY;
    }
    keeper->options = *options;
    snprintf(keeper->folder, sizeof(keeper->folder), "%.4096s/checkpoint", options->folder);
    keeper->news_capacity = options->member_count * SNAPSHOT_CREDITS + 2;
    keeper->news = calloc(keeper->news_capacity, sizeof(*keeper->news));
    enum status status = keeper->news != NULL ? find_beginning(keeper) : STATUS_NO_MEMORY;
    if (status != STATUS_OK) {
        keeper_destroy(keeper);
        return status;
    }
    *ret_keeper = keeper;
    return STATUS_OK;
}

void keeper_destroy(struct keeper *keeper)
{
    if (keeper == NULL) {
        return;
    }
    if (keeper->writes && !saver_is_busy(*keeper->options.saver)) {
        saver_abandon(*keeper->options.saver); // what is not whole
    }
    checkpoint_reader_close(keeper->reader);
    job_part_finish(&keeper->part);
    free(keeper->piece);
    free(keeper->news);
    free(keeper);
}

uint64_t keeper_begin_step(const struct keeper *keeper)
{
    return keeper->has_part ? keeper->part.resume.step : 0;
}

struct beginning *keeper_beginning(const struct keeper *keeper)
{
    const struct keeper_options *options = &keeper->options;
    if (!keeper->has_part || options->folder[0] == '\0') {
        return NULL;
    }
    const json_t *part = keeper->reader != NULL ? checkpoint_job_part(keeper->reader)
                                                : vault_job_part(options->vault);
    return beginning_create(options->folder, keeper->part.resume.step, part);
}

void keeper_hand_over(struct keeper *keeper, struct coordinator *coordinator)
{
    if (!keeper->has_part) {
        return;
    }
    coordinator->resume = &keeper->part.resume;
    // A copy in memory is none.
    coordinator->checkpointing.written = keeper->reader != NULL ? keeper->part.resume.step : 0;
    results_go_on(&coordinator->results, &keeper->part.results);
}

enum status keeper_begin_writing(struct keeper *keeper, struct coordinator *coordinator)
{
    const struct keeper_options *options = &keeper->options;
    if (options->job->checkpoint_every.kind == CHECKPOINT_NEVER) {
        return STATUS_OK;
    }
    keeper->writes = true;
    if (*options->saver != NULL) { // of a generation before, which may have left it something
        coordinator->checkpointing.has_rest = true;
        return STATUS_OK;
    }
    const struct saver_options saver = {
        .folder = keeper->folder,
        .keep = options->job->keep,
        .member_count = options->member_count,
        .wake = options->wake,
        .context = options->context,
    };
    enum status status = saver_create(&saver, options->saver);
    keeper->writes = status == STATUS_OK;
    return status;
}

/* Part of a vector of the checkpoint that the job goes on from; NULL: it has none. *ret_total: the
 * whole vector's floats. Borrowed until the next call. */
static const float *read_part(struct keeper *keeper, const char *name, struct span part,
                              uint64_t *ret_total)
{
    uint64_t size = 0;
    if (keeper->reader == NULL) {
        const float *values =
            is_in_memory(keeper) ? vault_find(keeper->options.vault, name, ret_total) : NULL;
        bool is_part =
            values != NULL && part.offset <= *ret_total && part.count <= *ret_total - part.offset;
        return is_part ? values + part.offset : NULL;
    }
    bool is_there = checkpoint_has(keeper->reader, name, &size);
    *ret_total = size / sizeof(float);
    is_there = is_there && part.offset <= *ret_total && part.count <= *ret_total - part.offset &&
               checkpoint_read(keeper->reader, name, part.offset * sizeof(float), keeper->piece,
                               part.count * sizeof(float)) == STATUS_OK;
    return is_there ? keeper->piece : NULL;
}

/* Answers a FETCH: without values if there is no such vector. */
static void answer(struct keeper *keeper, struct coordinator *coordinator, uint64_t peer,
                   const struct message *asked)
{
    uint64_t total = 0;
    const char *name = asked->piece->vector;
    const float *values = read_part(keeper, name, asked->span, &total);
    const struct wire_piece piece = {.vector = name, .total = total};
    const struct message message = {.kind = MESSAGE_PIECE,
                                    .rank = asked->rank,
                                    .piece = &piece,
                                    .span = asked->span,
                                    .values = values};
    coordinator->fetched_bytes += values != NULL ? asked->span.count * sizeof(float) : 0;
    coordinator->port.send(coordinator->port.context, peer, &message);
}

/* Members have a few pieces on their way at most, and one checkpoint is collected at a time. */
static void add_news(struct keeper *keeper, struct memory_news news)
{
    assert(keeper->news_count < keeper->news_capacity);
    keeper->news[keeper->news_count++] = news;
}

static struct saver *saver_of(const struct keeper *keeper)
{
    return *keeper->options.saver;
}

/* Whether the one that is collected goes to the disk. */
static bool is_written(const struct keeper *keeper, const struct coordinator *coordinator)
{
    return keeper->writes && coordinator->checkpointing.is_written;
}

static void note_end(struct keeper *keeper, const struct coordinator *coordinator,
                     enum status status)
{
    add_news(keeper, (struct memory_news){.is_end = true,
                                          .step = coordinator->checkpointing.step,
                                          .status = status});
}

/* Into memory goes what a job can go on from, and that is no copy of its end: who loses a worker
 * there goes on from the one before. */
static enum status commit_in_memory(struct vault *vault, const struct checkpointing *of,
                                    json_t *part)
{
    if (of->step < of->plan.total) {
        return vault_commit(vault, json_incref(part));
    }
    vault_abandon(vault);
    return STATUS_OK;
}

/* Takes part, which is NULL if there was no memory for it. */
static void commit_parts(struct keeper *keeper, const struct coordinator *coordinator,
                         const struct checkpoint_vector *vectors, json_t *part)
{
    enum status status = STATUS_OK;
    if (keeper->options.vault != NULL) {
        status = commit_in_memory(keeper->options.vault, &coordinator->checkpointing, part);
    }
    if (!is_written(keeper, coordinator)) {
        json_decref(part);
        note_end(keeper, coordinator, status);
    } else if (part != NULL) {
        saver_commit(saver_of(keeper), vectors, coordinator->checkpointing.vectors.count, part);
    } else {
        saver_abandon(saver_of(keeper));
    }
}

static void commit(struct keeper *keeper, const struct coordinator *coordinator, uint64_t now_ms)
{
    const struct checkpointing *of = &coordinator->checkpointing;
    struct checkpoint_vector *vectors = calloc((size_t)of->vectors.count + 1, sizeof(*vectors));
    uint32_t count = vectors != NULL ? of->vectors.count : 0;
    for (uint32_t i = 0; i < count; i++) {
        vectors[i] = (struct checkpoint_vector){of->vectors.list[i].name,
                                                of->vectors.list[i].total * sizeof(float)};
    }
    json_t *part = count > 0 ? job_part_json(coordinator, now_ms) : NULL;
    commit_parts(keeper, coordinator, vectors, part);
    free(vectors);
}

static void do_in_memory(struct keeper *keeper, const struct coordinator *coordinator,
                         enum checkpoint_task task, uint64_t peer, const struct message *message)
{
    const struct checkpointing *of = &coordinator->checkpointing;
    bool is_alone = !is_written(keeper, coordinator);
    if (task == CHECKPOINT_BEGIN) {
        vault_begin(keeper->options.vault, of->step);
        keeper->news_count = 0; // of one that was given up
    } else if (task == CHECKPOINT_STORE) {
        // Without memory it is not committed, which is said then.
        (void)vault_store(keeper->options.vault, message);
    } else if (task == CHECKPOINT_ABANDON) {
        vault_abandon(keeper->options.vault);
    }
    if (task == CHECKPOINT_STORE && is_alone) {
        add_news(keeper, (struct memory_news){.step = of->step, .peer = peer});
    } else if (task == CHECKPOINT_ABANDON && is_alone) {
        keeper->news_count = 0;
        note_end(keeper, coordinator, STATUS_INTERRUPTED);
    }
}

static void do_on_disk(struct keeper *keeper, const struct coordinator *coordinator,
                       enum checkpoint_task task, uint64_t peer, const struct message *message)
{
    if (task == CHECKPOINT_BEGIN) {
        saver_begin(saver_of(keeper), coordinator->checkpointing.step);
    } else if (task == CHECKPOINT_STORE) {
        saver_store(saver_of(keeper), peer, message);
    } else if (task == CHECKPOINT_ABANDON) {
        saver_abandon(saver_of(keeper));
    }
}

void keeper_do(struct keeper *keeper, struct coordinator *coordinator, enum checkpoint_task task,
               uint64_t peer, const struct message *message, uint64_t now_ms)
{
    if (task == CHECKPOINT_READ) {
        answer(keeper, coordinator, peer, message);
        return;
    }
    if (keeper->options.vault != NULL) {
        do_in_memory(keeper, coordinator, task, peer, message);
    }
    if (is_written(keeper, coordinator)) {
        do_on_disk(keeper, coordinator, task, peer, message);
    }
    if (task == CHECKPOINT_COMMIT) {
        commit(keeper, coordinator, now_ms);
    }
}

static void tell_of_disk(struct coordinator *coordinator, const struct saver_news *news,
                         uint64_t now_ms)
{
    bool is_rest = coordinator->checkpointing.has_rest;
    if (news->is_moved) {
        checkpointing_note_moved(coordinator, news->status);
    } else if (is_rest && news->is_end && news->status == STATUS_OK) {
        checkpointing_note_good(coordinator, news->step);
    } else if (is_rest) {
        return; // nobody waits for it
    } else if (news->is_end) {
        checkpointing_note_written(coordinator, news->step, news->status, news->why, now_ms);
    } else {
        checkpointing_note_stored(coordinator, news->peer, news->step);
    }
}

static void tell_of_memory(struct coordinator *coordinator, struct memory_news news,
                           uint64_t now_ms)
{
    if (news.is_end) {
        checkpointing_note_written(coordinator, news.step, news.status, "there is no memory for it",
                                   now_ms);
    } else {
        checkpointing_note_stored(coordinator, news.peer, news.step);
    }
}

static void take_news_of_disk(struct keeper *keeper, struct coordinator *coordinator,
                              uint64_t now_ms)
{
    struct saver_news news;
    struct saver *saver = saver_of(keeper);
    bool has_moved = false, is_busy = saver_is_busy(saver); // before its news, which are all then
    while (saver_next(saver, &news)) {
        tell_of_disk(coordinator, &news, now_ms);
        has_moved = true;
    }
    if (coordinator->checkpointing.has_rest && !is_busy) {
        checkpointing_note_free(coordinator, now_ms);
    }
    disk_watch_look(keeper->options.watch, coordinator, keeper->folder, has_moved, now_ms);
}

void keeper_take_news(struct keeper *keeper, struct coordinator *coordinator, uint64_t now_ms)
{
    if (keeper->writes) {
        take_news_of_disk(keeper, coordinator, now_ms);
    }
    while (keeper->news_count > 0) {
        const struct memory_news first = keeper->news[0];
        keeper->news_count--;
        memmove(keeper->news, keeper->news + 1, keeper->news_count * sizeof(*keeper->news));
        tell_of_memory(coordinator, first, now_ms); // which may lead to more
    }
}
