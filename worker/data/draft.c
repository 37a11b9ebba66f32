/* Writes to FILE.part, syncs, renames. */
#include "worker/data/draft.h"

#include "common/base/log.h"
#include "common/base/new_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum status draft_open(struct draft *draft, const char *path)
{
    struct stat facts;
    *draft = (struct draft){.path = path, .descriptor = -1};
    if (stat(path, &facts) == 0 && !S_ISREG(facts.st_mode)) {
        log_error("%s is there, and is no file: choose another name", path);
        return STATUS_INVALID;
    }
    if (asprintf(&draft->name, "%s.part", path) < 0) {
        draft->name = NULL;
        return STATUS_NO_MEMORY;
    }
    draft->descriptor = new_file_open(draft->name, true);
    // What comes first in a file may be written last, in its place.
    if (draft->descriptor < 0 || fcntl(draft->descriptor, F_SETFL, 0) != 0) {
        log_error("cannot write %s: %m", draft->name);
        return STATUS_IO;
    }
    return STATUS_OK;
}

enum status draft_write(const struct draft *draft, const void *bytes, size_t size, uint64_t at)
{
    size_t used = 0;
    while (used < size) {
        ssize_t put =
            pwrite(draft->descriptor, (const char *)bytes + used, size - used, (off_t)(at + used));
        if (put < 0 && errno != EINTR) {
            log_error("cannot write %s: %m", draft->name);
            return STATUS_IO;
        }
        used += put > 0 ? (size_t)put : 0;
    }
    return STATUS_OK;
}

/* On the disk, before anything can be under its path. */
static enum status close_synced(const struct draft *draft, enum status status)
{
    if (status == STATUS_OK && fsync(draft->descriptor) != 0) {
        log_error("cannot write %s: %m", draft->name);
        status = STATUS_IO;
    }
    if (close(draft->descriptor) != 0 && status == STATUS_OK) {
        log_error("cannot write %s: %m", draft->name);
        status = STATUS_IO;
    }
    return status;
}

enum status draft_finish(struct draft *draft, enum status status)
{
    if (draft->descriptor >= 0) {
        status = close_synced(draft, status);
        if (status == STATUS_OK && rename(draft->name, draft->path) != 0) {
            log_error("cannot move %s to %s: %m", draft->name, draft->path);
            status = STATUS_IO;
        }
        if (status != STATUS_OK) {
            unlink(draft->name);
        }
    }
    free(draft->name);
    *draft = (struct draft){.descriptor = -1};
    return status;
}
