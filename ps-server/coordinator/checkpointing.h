/* The coordinator's part in checkpoints: who has a snapshot of which step, what is collected, and
 * when it is whole. Pure; time is an argument.
 *
 * Each member offers a snapshot when it has made the steps of a checkpoint (SNAPSHOT), or says that
 * it has none, because the last one has not left it yet. Once all have offered the same one, all
 * send their pieces (COLLECT gives each some credits, and one more for every piece that is on the
 * disk). One checkpoint is collected at a time; what others have offered meanwhile waits with them.
 * A step of which anybody has no snapshot gets no checkpoint, and those who have one drop it.
 *
 *     IDLE ──all have offered──► COLLECTING ──all pieces came──► COMMITTING ──written──► IDLE
 *
 * Each goes into memory where the job may lose workers, and to the disk where it is one of those
 * that --checkpoint-every asks for. While the disk hangs (ps-server/checkpoint/disk_watch.h) memory
 * alone has them.
 *
 * Steps follow from the job (common/job/checkpoints.h). With --checkpoint-every MINUTESm the
 * coordinator names one, ahead of everybody; whoever was faster says so, and it names another one,
 * further ahead. So it does for those that only memory has, as often as they cost a hundredth of
 * the time at most. Workers whose steps nobody counts (races) are asked once the servers have
 * theirs. */
#ifndef PS_SERVER_COORDINATOR_CHECKPOINTING_H
#define PS_SERVER_COORDINATOR_CHECKPOINTING_H

#include "common/base/status.h"
#include "common/channel/wire.h"
#include "common/job/carriers.h"
#include "common/job/checkpoints.h"
#include "ps-server/coordinator/checkpoint_ranks.h"
#include "ps-server/coordinator/checkpoint_vectors.h"
#include "ps-server/results/staleness.h"

#include <stdbool.h>
#include <stdint.h>

struct coordinator;
struct sender;

/* What the coordinator's owner is asked to do, in this order; and to read for a member. */
enum checkpoint_task {
    CHECKPOINT_BEGIN,
    CHECKPOINT_STORE,   // a PIECE; answer by checkpointing_note_stored
    CHECKPOINT_COMMIT,  // answer by checkpointing_note_written
    CHECKPOINT_ABANDON, // answer by checkpointing_note_written
    CHECKPOINT_READ,    // a FETCH; answer the peer
};

enum checkpointing_state { CHECKPOINTING_IDLE, CHECKPOINTING_COLLECTING, CHECKPOINTING_COMMITTING };

/* A member's. */
struct checkpoint_share {
    uint64_t last;    // the newest step that it has offered, or has none of
    uint64_t offered; // 0: nothing that it still has
    bool is_over;     // all pieces have come
    uint64_t pieces;  // that have come
    uint64_t stored;  // of those, that are on the disk
};

/* What servers had counted at a step: see results.h. */
struct checkpoint_counts {
    struct staleness staleness;
    uint64_t late_count;
};

struct checkpointing {
    enum checkpointing_state state;
    struct checkpoints plan; // zeroed before training
    struct phases phases;
    struct checkpoint_share *shares; // (worker processes, then servers), owned
    uint32_t share_count, worker_count;
    struct checkpoint_rank *ranks;     // (ranks of the job) as they were offered last, owned
    struct checkpoint_rank *collected; // (ranks of the job) of the step that is collected, owned
    struct checkpoint_counts *counts;  // (servers) as they were offered last, owned
    struct checkpoint_counts counted;  // until the step that is collected, in the whole job
    uint64_t step;                     // that is collected or written
    uint64_t began_ms;                 // when its values began to come
    uint64_t took_ms;                  // how long those of the last one for memory alone came
    bool is_written;                   // it goes to the disk, too
    struct checkpoint_vectors vectors; // of that
    uint64_t copied;                   // steps of the last one that a job can go on from; 0: none
    uint64_t written;                  // of the last one on the disk, likewise
    uint64_t left_out;                 // the newest step of which somebody had no snapshot
    bool is_given_up;                  // what is collected is not committed
    bool has_failed;                   // the last one could not be written: it was said
    bool has_rest;                     // the disk still has what nobody waits for, such as what a
                                       // generation before gave it: nothing else is given to it
    bool is_slow;                      // it takes nothing now: it was said
    bool hangs;                        // nor has it for so long that nobody waits for it
    uint64_t announced;                // a step that follows from no rule; 0: none is awaited
    uint64_t margin;                   // how far ahead of everybody the next one is named
    uint64_t due_ms;                   // when that is for the disk; 0: never
    uint64_t spare_due_ms;             // when that is for memory alone; 0: never
    bool is_announced_spare;           // for memory alone
    bool is_mirroring;                 // the last one in memory is being written to a mirror
    uint64_t done_ms;                  // since when all workers are done, and wait; 0: they are not
    bool is_overdue;                   // they do not wait for the last checkpoint any longer
};

enum status checkpointing_init(struct checkpointing *checkpointing, struct carriers carriers,
                               uint32_t server_count);
void checkpointing_finish(struct checkpointing *checkpointing);

/* A phase of the job begins. */
void checkpointing_begin_phase(struct coordinator *coordinator, uint64_t now_ms);

/* SNAPSHOT, PIECE and FETCH of a member. */
void checkpointing_handle(struct coordinator *coordinator, const struct sender *from,
                          const struct message *message, uint64_t now_ms);

/* A piece of a member is on the disk. */
void checkpointing_note_stored(struct coordinator *coordinator, uint64_t peer, uint64_t step);

/* Somebody has moved or removed the folder with the checkpoints; it was made again if the status is
 * STATUS_OK. */
void checkpointing_note_moved(struct coordinator *coordinator, enum status status);

/* The checkpoint is whole, or `why` not. What fails ends no job. */
void checkpointing_note_written(struct coordinator *coordinator, uint64_t step, enum status status,
                                const char *why, uint64_t now_ms);

/* Asks members for a snapshot of a step; of races, workers later. */
void checkpointing_ask(struct coordinator *coordinator, uint64_t step);

/* The disk hangs: gives up the checkpoint that goes to it, and gives it nothing more until it has
 * done what it has. */
void checkpointing_set_aside(struct coordinator *coordinator, uint64_t now_ms);

/* The disk has done what it still had when has_rest was set. */
void checkpointing_note_free(struct coordinator *coordinator, uint64_t now_ms);

/* The checkpoint of a step is whole on the disk, though it may have been given up. */
void checkpointing_note_good(struct coordinator *coordinator, uint64_t step);

/* "the last good one is of step 20" */
#define CHECKPOINTING_LAST_BYTES 64
void checkpointing_describe_last(const struct checkpointing *of,
                                 char ret_text[CHECKPOINTING_LAST_BYTES]);

/* Several times a second. */
void checkpointing_tick(struct coordinator *coordinator, uint64_t now_ms);

/* The index of a member's share. */
uint32_t checkpointing_share_of(const struct coordinator *coordinator, const struct sender *from);

#endif
