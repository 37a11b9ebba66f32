/* A file that gets its name when it is whole: until then it is FILE.part, which a failure removes.
 */
#ifndef WORKER_DATA_DRAFT_H
#define WORKER_DATA_DRAFT_H

#include "common/base/status.h"

#include <stddef.h>
#include <stdint.h>

struct draft {
    const char *path; // of the file, borrowed
    char *name;       // until then, owned
    int descriptor;
};

/* Opens a new file beside the path; one that is there under the path stays until draft_finish. It
 * must be a regular one. draft_finish follows, also after a failure. Logs. */
enum status draft_open(struct draft *draft, const char *path);

/* Writes in the place that begins `at` so many bytes. Logs. */
enum status draft_write(const struct draft *draft, const void *bytes, size_t size, uint64_t at);

/* What becomes of it: on STATUS_OK its bytes are on the disk, and it has its name, which a power
 * failure may still take; otherwise nothing is left.
 * Returns the status, or what went wrong here, which it logs. */
enum status draft_finish(struct draft *draft, enum status status);

#endif
