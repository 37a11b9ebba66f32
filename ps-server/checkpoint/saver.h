/* Writes checkpoints on a thread of its own, so that a slow disk holds up nobody.
 *
 * A bounded queue of what to do goes in, in order; news of what was done come out. Neither is ever
 * full: members have a few pieces on their way at most, and no checkpoint begins before the one
 * before it has ended, or while the thread is busy with one that was given up. */
#ifndef PS_SERVER_CHECKPOINT_SAVER_H
#define PS_SERVER_CHECKPOINT_SAVER_H

#include "common/base/status.h"
#include "common/channel/wire.h"
#include "common/checkpoint/checkpoint_writer.h"
#include "common/thread/slow_disk.h"

#include <jansson.h>

#include <stdbool.h>
#include <stdint.h>

#define SAVER_WHY_BYTES 512

struct saver;

struct saver_options {
    const char *folder;         // of the checkpoints; copied
    struct slow_disk_wait wait; // for the disk, until the folder is open
    uint32_t keep;
    uint32_t member_count;       // that may send pieces
    void (*wake)(void *context); // there are news; called on the saver's thread
    void *context;
};

/* What was done. */
struct saver_news {
    bool is_end;   // of a checkpoint: it is whole, or `status` and `why` not; otherwise a piece
    bool is_moved; // it is no piece: somebody has moved or removed the folder, which was made again
                   // if `status` is STATUS_OK
    uint64_t step; // of the checkpoint
    uint64_t peer; // whose piece it was
    enum status status;
    char why[SAVER_WHY_BYTES];
};

/* STATUS_IO, too: the disk hangs; STATUS_INTERRUPTED: a turn has said so. Logs. */
enum status saver_create(const struct saver_options *options, struct saver **ret_saver);

/* What is queued is done first, for which it gets so many milliseconds. False: the disk has not
 * taken it by then, and the thread stays with it until the process ends. NULL is fine. */
bool saver_destroy(struct saver *saver, uint64_t patience_ms);

/* Whether something is queued or being done. If not, all news of what was are there. */
bool saver_is_busy(struct saver *saver);

/* Waits until that is not so, for so many milliseconds at most. */
void saver_await_idle(struct saver *saver, uint64_t patience_ms);

/* Queue what is to be done. Copy what they are given; saver_commit takes job_part. */
void saver_begin(struct saver *saver, uint64_t step);
void saver_store(struct saver *saver, uint64_t peer, const struct message *piece);
void saver_commit(struct saver *saver, const struct checkpoint_vector *vectors, uint32_t count,
                  json_t *job_part);
void saver_abandon(struct saver *saver);

/* The next news, if there are any. */
bool saver_next(struct saver *saver, struct saver_news *ret_news);

#endif
