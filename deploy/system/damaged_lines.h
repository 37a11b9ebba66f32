/* Lines of a file that cannot be read, and are left out. */
#ifndef DEPLOY_SYSTEM_DAMAGED_LINES_H
#define DEPLOY_SYSTEM_DAMAGED_LINES_H

#include <stdint.h>

/* Zeroed: none. */
struct damaged_lines {
    uint64_t count, first; // from 1
};

void damaged_lines_note(struct damaged_lines *damaged, uint64_t line);

/* Logs them, if there are any. */
void damaged_lines_warn(const struct damaged_lines *damaged, const char *path);

#endif
