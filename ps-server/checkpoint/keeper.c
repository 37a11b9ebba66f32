/* Gives members what a job goes on from, and has checkpoints written. */
#include "ps-server/checkpoint/keeper.h"

#include "common/base/log.h"
#include "common/channel/snapshot.h"
#include "common/checkpoint/manifest.h"
#include "common/checkpoint/step_folders.h"
#include "common/thread/slow_disk.h"
#include "ps-server/checkpoint/beginning.h"
#include "ps-server/checkpoint/supplier.h"
#include "ps-server/coordinator/coordinator_port.h"
#include "ps-server/coordinator/generation.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PATH_BYTES  4200
#define ERROR_BYTES 1024

/* What was done in memory alone. */
struct memory_news {
    bool is_end; // of the checkpoint; false: a piece of `peer` was stored
    enum status status;
    uint64_t step, peer;
};

struct keeper {
    struct keeper_options options;
    struct origin origin;      // what the job goes on from; without a reader from memory
    bool has_part;             // it does
    struct supplier *supplier; // of what members fetch; NULL: nothing is on the disk
    bool is_slow;              // that disk: it was said
    bool writes;               // checkpoints, by the saver
    char folder[PATH_BYTES];   // of checkpoints, in the run folder

    // Which nobody was told yet.
    struct memory_news *news; // (news_capacity), owned; the oldest first
    uint32_t news_count, news_capacity;
};

static bool is_in_memory(const struct keeper *keeper)
{
    return keeper->options.vault != NULL && vault_step(keeper->options.vault) > 0;
}

/* The job's part of what to go on from, where that is in memory: with its servers, or in the vault.
 */
static const json_t *part_in_memory(const struct keeper *keeper)
{
    const struct keeper_options *options = &keeper->options;
    return options->in_place_part != NULL ? options->in_place_part : vault_job_part(options->vault);
}

static enum status take_memory(struct keeper *keeper)
{
    const struct keeper_options *options = &keeper->options;
    uint64_t step =
        options->in_place_part != NULL ? options->in_place_step : vault_step(options->vault);
    char error[ERROR_BYTES] = "";
    enum status status = job_part_read(part_in_memory(keeper), options->origin.job, step,
                                       &keeper->origin.part, error, sizeof(error));
    if (status != STATUS_OK) {
        log_error("cannot go on from step %llu: %s", (unsigned long long)step, error);
    }
    keeper->has_part = status == STATUS_OK;
    return status;
}

/* What to go on from is on the disk, if there is something. */
static enum status take_disk(struct keeper *keeper)
{
    const struct keeper_options *options = &keeper->options;
    enum status status = origin_find(&options->origin, &keeper->origin);
    keeper->has_part = keeper->origin.reader != NULL;
    if (status != STATUS_OK || !keeper->has_part) {
        return status;
    }
    const struct supplier_options supplier = {.reader = keeper->origin.reader,
                                              .member_count = options->member_count,
                                              .wake = options->wake,
                                              .context = options->context};
    return supplier_create(&supplier, &keeper->supplier);
}

enum status keeper_create(const struct keeper_options *options, struct keeper **ret_keeper)
{
    struct keeper *keeper = calloc(1, sizeof(*keeper));
    if (keeper == NULL) {
        return STATUS_NO_MEMORY;
    }
    keeper->options = *options;
    snprintf(keeper->folder, sizeof(keeper->folder), "%.4096s/" STEP_FOLDERS_OF_RUN,
             options->origin.folder);
    keeper->news_capacity = options->member_count * SNAPSHOT_CREDITS + 2;
    keeper->news = calloc(keeper->news_capacity, sizeof(*keeper->news));
    enum status status = STATUS_NO_MEMORY;
    if (keeper->news != NULL) {
        bool has_some = options->in_place_part != NULL || is_in_memory(keeper);
        status = has_some ? take_memory(keeper) : take_disk(keeper);
    }
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
    if (!supplier_destroy(keeper->supplier)) {
        keeper->origin.reader = NULL; // its thread has that, until the process ends
    }
    origin_finish(&keeper->origin);
    free(keeper->news);
    free(keeper);
}

bool keeper_lacks_mirror(const struct keeper *keeper)
{
    return keeper->origin.lacks_mirror;
}

uint64_t keeper_begin_step(const struct keeper *keeper)
{
    return keeper->has_part ? keeper->origin.part.resume.step : 0;
}

struct beginning *keeper_beginning(const struct keeper *keeper)
{
    const struct keeper_options *options = &keeper->options;
    if (!keeper->has_part || options->origin.folder[0] == '\0') {
        return NULL;
    }
    const json_t *part = keeper->origin.reader != NULL ? checkpoint_job_part(keeper->origin.reader)
                                                       : part_in_memory(keeper);
    return beginning_create(options->origin.folder, keeper->origin.part.resume.step, part);
}

void keeper_hand_over(struct keeper *keeper, struct coordinator *coordinator)
{
    if (!keeper->has_part) {
        return;
    }
    coordinator->resume = &keeper->origin.part.resume;
    coordinator->checkpointing.written = keeper->origin.written; // a copy in memory is none
    results_go_on(&coordinator->results, &keeper->origin.part.results);
}

enum status keeper_begin_writing(struct keeper *keeper, struct coordinator *coordinator)
{
    const struct keeper_options *options = &keeper->options;
    if (options->origin.job->checkpoint_every.kind == CHECKPOINT_NEVER) {
        return STATUS_OK;
    }
    keeper->writes = true;
    if (*options->saver != NULL) { // of a generation before, which may have left it something
        coordinator->checkpointing.has_rest = true;
        return STATUS_OK;
    }
    const struct saver_options saver = {
        .folder = keeper->folder,
        .wait = options->origin.wait,
        .keep = options->origin.job->keep,
        .member_count = options->member_count,
        .wake = options->wake,
        .context = options->context,
    };
    enum status status = saver_create(&saver, options->saver);
    keeper->writes = status == STATUS_OK;
    return status;
}

/* Gives a part of a vector; without values if there is no such part. */
static void give(struct coordinator *coordinator, const struct supply *supply, const float *values)
{
    const struct wire_piece piece = {.vector = supply->vector, .total = supply->total};
    const struct message message = {.kind = MESSAGE_PIECE,
                                    .rank = supply->rank,
                                    .piece = &piece,
                                    .span = supply->span,
                                    .values = values};
    coordinator->fetched_bytes += values != NULL ? supply->span.count * sizeof(float) : 0;
    coordinator->port.send(coordinator->port.context, supply->peer, &message);
}

/* Of the copy in memory. */
static void give_from_memory(const struct keeper *keeper, struct coordinator *coordinator,
                             uint64_t peer, const struct message *asked)
{
    struct supply supply = {.peer = peer, .rank = asked->rank, .span = asked->span};
    snprintf(supply.vector, sizeof(supply.vector), "%s", asked->piece->vector);
    const float *values = is_in_memory(keeper)
                              ? vault_find(keeper->options.vault, supply.vector, &supply.total)
                              : NULL;
    bool is_part = values != NULL && supply.span.offset <= supply.total &&
                   supply.span.count <= supply.total - supply.span.offset;
    give(coordinator, &supply, is_part ? values + supply.span.offset : NULL);
}

/* Answers a FETCH, at once or when the disk has given what it asks for. */
static void answer(struct keeper *keeper, struct coordinator *coordinator, uint64_t peer,
                   const struct message *asked)
{
    if (keeper->supplier != NULL) {
        supplier_ask(keeper->supplier, peer, asked);
    } else {
        give_from_memory(keeper, coordinator, peer, asked);
    }
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
 * there goes on from the one before. The part stays the caller's: if the saver's thread gets it, no
 * other may count references to it. */
static enum status commit_in_memory(const struct keeper *keeper,
                                    const struct coordinator *coordinator, json_t *part)
{
    const struct keeper_options *options = &keeper->options;
    const struct checkpointing *of = &coordinator->checkpointing;
    if (of->step < of->plan.total) {
        json_t *kept = is_written(keeper, coordinator) ? json_deep_copy(part) : json_incref(part);
        enum status status = vault_commit(options->vault, kept);
        if (status == STATUS_OK && options->mirror != NULL) {
            mirror_take(options->mirror, options->vault);
        }
        return status;
    }
    vault_abandon(options->vault);
    return STATUS_OK;
}

/* Takes part, which is NULL if there was no memory for it. */
static void commit_parts(struct keeper *keeper, const struct coordinator *coordinator,
                         const struct checkpoint_vector *vectors, json_t *part)
{
    enum status status = STATUS_OK;
    if (keeper->options.vault != NULL) {
        status = commit_in_memory(keeper, coordinator, part);
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

/* Whether what the job goes on from is of a mirror that it can do without. */
static bool may_leave_mirror(const struct keeper *keeper)
{
    return keeper->origin.is_of_mirror && keeper->options.origin.may_lack_mirror;
}

/* What members fetch cannot be had. If it is of the mirror, they join the next generation, which
 * goes on without that; otherwise the job ends. */
static void give_up_origin(struct keeper *keeper, struct coordinator *coordinator,
                           enum status status, const char *reason, uint64_t now_ms)
{
    if (!may_leave_mirror(keeper)) {
        coordinator_stop(coordinator, status, reason, now_ms);
    } else if (!keeper->origin.lacks_mirror) {
        keeper->origin.lacks_mirror = true;
        generation_renew(coordinator, reason, now_ms, now_ms);
    }
}

/* Says that the disk takes long to give what members fetch, and gives up where it hangs. */
static void watch_supplier(struct keeper *keeper, struct coordinator *coordinator, uint64_t now_ms)
{
    const struct job *job = coordinator->job;
    const char *path = checkpoint_path(keeper->origin.reader);
    char text[COORDINATOR_REASON_BYTES];
    uint64_t idle_ms = supplier_idle_ms(keeper->supplier, now_ms);
    if (idle_ms == 0 || coordinator->state >= COORDINATOR_TRAINING) {
        keeper->is_slow = false;
        return;
    }
    coordinator->membership.arrived_ms = now_ms; // nobody can help it that they wait
    if (!keeper->is_slow && (double)idle_ms >= 1000 * job->stall_warn) {
        keeper->is_slow = true;
        slow_disk_describe("given nothing of", path, idle_ms, text, sizeof(text));
        coordinator_port_say(&coordinator->port, true, "%s; members wait for it", text);
    }
    if ((double)idle_ms >= 1000 * job_disk_fail_s(job)) {
        slow_disk_describe_hanging("given nothing of", path, idle_ms, text, sizeof(text));
        give_up_origin(keeper, coordinator, STATUS_IO, text, now_ms);
    }
}

/* What a member needs cannot be read: no member can help it, so none is told that the checkpoint
 * does not have it. */
static void fail_to_supply(struct keeper *keeper, struct coordinator *coordinator,
                           const struct supply *supply, uint64_t now_ms)
{
    char reason[COORDINATOR_REASON_BYTES], file[MANIFEST_NAME_BYTES];
    if (coordinator->state >= COORDINATOR_TRAINING) {
        return; // whoever has asked is not of this generation any more
    }
    manifest_file_name(supply->vector, file);
    if (supply->error == ENOMEM) {
        snprintf(reason, sizeof(reason),
                 "there is no memory to read %.300s/%.60s: give the coordinator's host more",
                 checkpoint_path(keeper->origin.reader), file);
    } else {
        snprintf(reason, sizeof(reason), "cannot read %.250s/%.60s: %s: %s%s",
                 checkpoint_path(keeper->origin.reader), file, strerrordesc_np(supply->error),
                 step_folder_advice(supply->error),
                 may_leave_mirror(keeper) ? "" : "; then resume again, or from another checkpoint");
    }
    if (supply->error == ENOMEM) {
        coordinator_stop(coordinator, STATUS_NO_MEMORY, reason, now_ms);
    } else {
        give_up_origin(keeper, coordinator, STATUS_IO, reason, now_ms);
    }
}

static void take_supplies(struct keeper *keeper, struct coordinator *coordinator, uint64_t now_ms)
{
    struct supply supply;
    while (supplier_next(keeper->supplier, &supply)) {
        if (supply.error == 0) {
            give(coordinator, &supply, supply.values);
        } else {
            fail_to_supply(keeper, coordinator, &supply, now_ms);
        }
        free(supply.values);
    }
    watch_supplier(keeper, coordinator, now_ms);
}

void keeper_take_news(struct keeper *keeper, struct coordinator *coordinator, uint64_t now_ms)
{
    if (keeper->supplier != NULL) {
        take_supplies(keeper, coordinator, now_ms);
    }
    if (keeper->writes) {
        take_news_of_disk(keeper, coordinator, now_ms);
    }
    while (keeper->news_count > 0) {
        const struct memory_news first = keeper->news[0];
        keeper->news_count--;
        memmove(keeper->news, keeper->news + 1, keeper->news_count * sizeof(*keeper->news));
        tell_of_memory(coordinator, first, now_ms); // which may lead to more
    }
    if (keeper->options.mirror != NULL) {
        mirror_look(keeper->options.mirror, keeper->options.vault, coordinator, now_ms);
    }
}
