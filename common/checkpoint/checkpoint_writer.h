/* Writes checkpoints, each a folder with a file for each vector and a manifest.
 *
 * What is written lies in a folder of another name until it is whole and on the disk; then it gets
 * its name by one rename, and only then older ones go. So a crash at any point, and a disk that
 * fails or is full, leave the last good checkpoint as it was (see step_folders.h for the names).
 *
 * A writer belongs to one thread. Apart from checkpoint_writer_open, nothing logs: the owner asks
 * for checkpoint_writer_error, since only it knows what a lost checkpoint means to the job. */
#ifndef COMMON_CHECKPOINT_CHECKPOINT_WRITER_H
#define COMMON_CHECKPOINT_CHECKPOINT_WRITER_H

#include "common/base/status.h"

#include <jansson.h>

#include <stdbool.h>
#include <stdint.h>

struct checkpoint_writer;

/* A vector as it must be: its name (manifest_is_name) and its size in bytes. */
struct checkpoint_vector {
    const char *name;
    uint64_t size;
};

/* Checkpoints go into `folder` (RUN/checkpoint), which is made if it is not there; what an earlier
 * process began there and did not end is removed. `keep` (at least 1) checkpoints stay. Logs. */
enum status checkpoint_writer_open(const char *folder, uint32_t keep,
                                   struct checkpoint_writer **ret_writer);

/* Abandons what was begun. NULL is fine. */
void checkpoint_writer_close(struct checkpoint_writer *writer);

/* A sentence about what failed last, with the name of the file and what to do. Valid until the next
 * call. */
const char *checkpoint_writer_error(const struct checkpoint_writer *writer);

/* Whether news have come since the last call: the folder was found to be moved or removed, and the
 * checkpoints with it, or it was made again after that; or the last one was removed, which is
 * looked for when another one has failed. */
bool checkpoint_writer_take_news(struct checkpoint_writer *writer);

/* Begins the checkpoint of a step; abandons one that was begun. Makes the folder again if it is not
 * in its place. */
enum status checkpoint_begin(struct checkpoint_writer *writer, uint64_t step);

/* Writes `size` bytes that a vector has from `offset` on. Pieces of one vector may come in any
 * order and must not overlap: STATUS_MALFORMED, and the checkpoint is as it was. STATUS_IO if the
 * disk fails: then the checkpoint is abandoned, to make room, and all that is left to do is to
 * begin another one. */
enum status checkpoint_write(struct checkpoint_writer *writer, const char *vector, uint64_t offset,
                             const void *bytes, uint64_t size);

/* Makes the checkpoint whole: it has all of these vectors and no other, each without a gap and of
 * the given size. Otherwise STATUS_MALFORMED, and more may be written. STATUS_IO as above.
 * `job_part` is an object (borrowed). Older checkpoints are removed but for the newest that are
 * kept. So are those of later steps: the job has gone back behind them, and they belong to a past
 * that it left.
 */
enum status checkpoint_commit(struct checkpoint_writer *writer,
                              const struct checkpoint_vector *vectors, uint32_t count,
                              const json_t *job_part);

/* Removes what was begun. Nothing begun is fine. */
void checkpoint_abandon(struct checkpoint_writer *writer);

#endif
