/* A file for what processes of a host keep together, in memory (/dev/shm) or in the user's folder
 * of caches, of which a process that was killed leaves nothing in the way. Everybody who has it
 * open holds a shared lock on it, which the kernel takes back. */
#ifndef WORKER_DATA_CACHE_FILE_H
#define WORKER_DATA_CACHE_FILE_H

#include "common/base/status.h"

#include <stdbool.h>
#include <stdint.h>

struct cache_file;

struct cache_file_options {
    uint64_t key;       // of what lies in it: its name
    bool is_in_memory;  // it goes with its last user
    const char *folder; // where it lies, borrowed; NULL: the usual place
    uint64_t budget;    // bytes that it and others like it may take; 0: half of what is free
    bool is_rest;       // the budget is its own: others were seen to
    bool tells;         // a budget that is not there is logged
};

/* Opens or makes it. Others like it, which nobody has open, are removed: in memory all, on disk
 * where they leave no room. *ret_budget: bytes that it may have, with those that it has.
 * STATUS_UNSUPPORTED, with a warning: there is no place for it. */
enum status cache_file_open(const struct cache_file_options *options, struct cache_file **ret_file,
                            uint64_t *ret_budget);
void cache_file_close(struct cache_file *file); // NULL is fine

int cache_file_descriptor(const struct cache_file *file);
const char *cache_file_path(const struct cache_file *file);

#endif
