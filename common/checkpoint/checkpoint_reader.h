/* Reads checkpoints. Everything in a folder is taken for whatever bytes it may have: a checkpoint
 * is open only once each of its files has the size and the checksum that its manifest says. */
#ifndef COMMON_CHECKPOINT_CHECKPOINT_READER_H
#define COMMON_CHECKPOINT_CHECKPOINT_READER_H

#include "common/base/status.h"

#include <jansson.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct checkpoint_reader;

/* Opens the newest whole checkpoint in `folder`: a run folder, its folder of checkpoints, or that
 * of one step. What is newer and was passed over, and why, is in ret_notes, a line each without a
 * newline at the end; it is "" if there is nothing to say. STATUS_... with ret_error, which names
 * the folder or file, what was expected and what to do, if there is none. */
enum status checkpoint_open(const char *folder, struct checkpoint_reader **ret_reader,
                            char *ret_error, size_t error_size, char *ret_notes, size_t notes_size);

/* Where to look for the newest whole checkpoint. */
struct checkpoint_place {
    const char *folder; // as above
    uint64_t before;    // of steps below this one; UINT64_MAX: any
    // Grows while files are read, for another thread, to which a disk that hangs is one where this
    // stands still; NULL: nobody asks. Borrowed for the call.
    _Atomic uint64_t *read_bytes;
};

/* The same for steps below a bound, which the folder of one step does not mind. STATUS_END_OF_DATA
 * if there is no such checkpoint. */
enum status checkpoint_open_before(const struct checkpoint_place *place,
                                   struct checkpoint_reader **ret_reader, char *ret_error,
                                   size_t error_size, char *ret_notes, size_t notes_size);

void checkpoint_reader_close(struct checkpoint_reader *reader); // NULL is fine

uint64_t checkpoint_step(const struct checkpoint_reader *reader);

/* The folder of the checkpoint. Valid while the reader is open. */
const char *checkpoint_path(const struct checkpoint_reader *reader);

/* What the coordinator wrote of the job, an object. Valid while the reader is open. */
const json_t *checkpoint_job_part(const struct checkpoint_reader *reader);

/* Whether there is a vector of that name, and its size in bytes. */
bool checkpoint_has(const struct checkpoint_reader *reader, const char *vector, uint64_t *ret_size);

/* Reads bytes of a vector. STATUS_INVALID if it has fewer or is not there; STATUS_IO and errno. */
enum status checkpoint_read(struct checkpoint_reader *reader, const char *vector, uint64_t offset,
                            void *ret_bytes, uint64_t size);

#endif
