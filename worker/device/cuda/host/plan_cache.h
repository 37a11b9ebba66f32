/* Keeps plans, and which of them were chosen, from one job to the next, as files in the user's
 * cache folder: choosing among a library's engines, and what it compiles for some of them, takes
 * seconds.
 *
 * The folder is RINGSIDE_CACHE; without that XDG_CACHE_HOME/ringside, or ~/.cache/ringside. Nothing
 * is kept where RINGSIDE_CACHE is empty, or where another user could write. A file holds its key
 * and a checksum; one that is broken counts as missing, and is written anew. */
#ifndef WORKER_DEVICE_CUDA_HOST_PLAN_CACHE_H
#define WORKER_DEVICE_CUDA_HOST_PLAN_CACHE_H

#include <stdbool.h>

/* The text that was kept under a key (one line), which the caller frees; NULL if there is none.
 * Reports one that is broken. */
char *plan_cache_read(const char *key);

/* Keeps a text. What cannot be written is not kept; nothing depends on it. */
void plan_cache_write(const char *key, const char *text);

/* Whether there is a folder, and it is only the user's. Makes it. */
bool plan_cache_keeps(void);

#endif
