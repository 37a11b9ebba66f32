/* Reads the checkpoint that a job goes on from, and has others written. */
#include "ps-server/checkpoint/keeper.h"

#include "common/base/log.h"
#include "common/channel/snapshot.h"
#include "common/checkpoint/checkpoint_reader.h"
#include "ps-server/checkpoint/saver.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PATH_BYTES  4200
#define NOTES_BYTES 4096
#define ERROR_BYTES 1024

struct keeper {
    struct keeper_options options;
    struct checkpoint_reader *reader; // NULL: the job begins
    struct job_part part;             // of the reader
    struct saver *saver;              // NULL: nothing is written
    float *piece;                     // (SNAPSHOT_PIECE_FLOATS) to answer with, owned
};

static void log_lines(const char *notes)
{
    while (*notes != '\0') {
        size_t size = strcspn(notes, "\n");
        log_warn("%.*s", (int)size, notes);
        notes += size + (notes[size] == '\n');
    }
}

static enum status open_checkpoint(struct keeper *keeper)
{
    const struct keeper_options *options = &keeper->options;
    char error[ERROR_BYTES] = "", notes[NOTES_BYTES] = "";
    enum status status = checkpoint_open(options->resume, &keeper->reader, error, sizeof(error),
                                         notes, sizeof(notes));
    log_lines(notes);
    if (status != STATUS_OK) {
        log_error("cannot resume: %s", error);
        return STATUS_INVALID;
    }
    status = job_part_read(checkpoint_job_part(keeper->reader), options->job,
                           checkpoint_step(keeper->reader), &keeper->part, error, sizeof(error));
    if (status != STATUS_OK) {
        log_error("cannot resume from %s: %s", checkpoint_path(keeper->reader), error);
        return STATUS_INVALID;
    }
    keeper->piece = malloc(SNAPSHOT_PIECE_FLOATS * sizeof(float));
    return keeper->piece != NULL ? STATUS_OK : STATUS_NO_MEMORY;
}

enum status keeper_create(const struct keeper_options *options, struct keeper **ret_keeper)
{
    struct keeper *keeper = calloc(1, sizeof(*keeper));
    if (keeper == NULL) {
        return STATUS_NO_MEMORY;
    }
    keeper->options = *options;
    enum status status = options->resume[0] != '\0' ? open_checkpoint(keeper) : STATUS_OK;
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
    saver_destroy(keeper->saver);
    checkpoint_reader_close(keeper->reader);
    job_part_finish(&keeper->part);
    free(keeper->piece);
    free(keeper);
}

void keeper_hand_over(struct keeper *keeper, struct coordinator *coordinator)
{
    if (keeper->reader == NULL) {
        return;
    }
    coordinator->resume = &keeper->part.resume;
    results_go_on(&coordinator->results, &keeper->part.results);
}

enum status keeper_begin_writing(struct keeper *keeper)
{
    const struct keeper_options *options = &keeper->options;
    char folder[PATH_BYTES];
    if (options->job->checkpoint_every.kind == CHECKPOINT_NEVER || keeper->saver != NULL) {
        return STATUS_OK;
    }
    snprintf(folder, sizeof(folder), "%.4096s/checkpoint", options->folder);
    const struct saver_options saver = {
        .folder = folder,
        .keep = options->job->keep,
        .member_count = options->member_count,
        .wake = options->wake,
        .context = options->context,
    };
    return saver_create(&saver, &keeper->saver);
}

/* Answers a FETCH: without values if there is no such vector. */
static void answer(struct keeper *keeper, const struct coordinator *coordinator, uint64_t peer,
                   const struct message *asked)
{
    uint64_t size = 0, offset = asked->span.offset, count = asked->span.count;
    const char *name = asked->piece->vector;
    bool is_there = keeper->reader != NULL && checkpoint_has(keeper->reader, name, &size) &&
                    offset <= size / sizeof(float) && count <= size / sizeof(float) - offset &&
                    checkpoint_read(keeper->reader, name, offset * sizeof(float), keeper->piece,
                                    count * sizeof(float)) == STATUS_OK;
    const struct wire_piece piece = {.vector = name, .total = size / sizeof(float)};
    const struct message message = {.kind = MESSAGE_PIECE,
                                    .rank = asked->rank,
                                    .piece = &piece,
                                    .span = asked->span,
                                    .values = is_there ? keeper->piece : NULL};
    coordinator->port.send(coordinator->port.context, peer, &message);
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
    if (part != NULL) {
        saver_commit(keeper->saver, vectors, count, part);
    } else {
        saver_abandon(keeper->saver); // there is no memory
    }
    free(vectors);
}

void keeper_do(struct keeper *keeper, struct coordinator *coordinator, enum checkpoint_task task,
               uint64_t peer, const struct message *message, uint64_t now_ms)
{
    if (task == CHECKPOINT_READ) {
        answer(keeper, coordinator, peer, message);
        return;
    }
    if (keeper->saver == NULL) {
        return; // it could not be opened, which was said
    }
    switch (task) {
    case CHECKPOINT_BEGIN:
        saver_begin(keeper->saver, coordinator->checkpointing.step);
        break;
    case CHECKPOINT_STORE:
        saver_store(keeper->saver, peer, message);
        break;
    case CHECKPOINT_COMMIT:
        commit(keeper, coordinator, now_ms);
        break;
    case CHECKPOINT_ABANDON:
        saver_abandon(keeper->saver);
        break;
    case CHECKPOINT_READ:
        break;
    }
}

void keeper_take_news(struct keeper *keeper, struct coordinator *coordinator, uint64_t now_ms)
{
    struct saver_news news;
    while (keeper->saver != NULL && saver_next(keeper->saver, &news)) {
        if (news.is_end) {
            checkpointing_note_written(coordinator, news.step, news.status, news.why, now_ms);
        } else {
            checkpointing_note_stored(coordinator, news.peer, news.step);
        }
    }
}
