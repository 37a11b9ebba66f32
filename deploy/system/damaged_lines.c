/* Counts and names damaged lines. */
#include "deploy/system/damaged_lines.h"

#include "common/base/log.h"

#include <inttypes.h>

void damaged_lines_note(struct damaged_lines *damaged, uint64_t line)
{
    damaged->first = damaged->count == 0 ? line : damaged->first;
    damaged->count++;
}

void damaged_lines_warn(const struct damaged_lines *damaged, const char *path)
{
    if (damaged->count == 1) {
        log_warn("%s: line %" PRIu64 " is damaged, and left out", path, damaged->first);
    } else if (damaged->count > 1) {
        log_warn("%s: %" PRIu64 " lines are damaged, from line %" PRIu64 " on, and left out", path,
                 damaged->count, damaged->first);
    }
}
