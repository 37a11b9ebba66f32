/* Memory that other processes of this host can read, and write where both sides mean it.
 *
 * A region is an anonymous file in memory (memfd_create(2)): it has no name that a crash could
 * leave behind. A peer that is told the region's key opens it through /proc, which the kernel
 * allows to processes of the same user; a process in another container may have the same number, so
 * the key holds a nonce that must lie in the region's first page. Its size is sealed: no peer can
 * shrink it under a reader. */
#ifndef COMMON_BASE_REGION_H
#define COMMON_BASE_REGION_H

#include "common/base/status.h"

#include <stddef.h>
#include <stdint.h>

/* What a peer needs to find the region. */
struct region_key {
    uint64_t process_id;
    uint32_t descriptor;
    uint64_t size; // bytes
    uint64_t nonce;
};

/* Memory of this process's own. Zeroed is empty. */
struct region {
    struct region_key key;
    void *bytes; // (key.size), page aligned, zeroed at first
};

enum region_access { REGION_READ, REGION_WRITE };

/* Another process's. Zeroed is empty. */
struct region_view {
    unsigned char *bytes; // (size)
    size_t size;
};

/* Logs. The memory is touched, as memory_create_large does. */
enum status region_create(size_t size, struct region *ret_region);
void region_destroy(struct region *region); // empty is fine

/* STATUS_UNREACHABLE if there is no such region that this process may access so. Does not log: it
 * is the peer that has to go another way. */
enum status region_open(const struct region_key *key, enum region_access access,
                        struct region_view *ret_view);
void region_close(struct region_view *view); // empty is fine

#endif
