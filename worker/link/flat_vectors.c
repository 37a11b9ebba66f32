/* Allocates the two vectors. */
#include "worker/link/flat_vectors.h"

#include "common/base/memory.h"
#include "common/transport/endpoints.h"

enum status flat_vectors_init(struct flat_vectors *vectors, const struct job *job, uint64_t count,
                              bool is_ordinary)
{
    size_t bytes = count * sizeof(float);
    bool has_peers = job->servers > 0 || job->workers > 1;
    *vectors = (struct flat_vectors){.count = count, .params = memory_create_large(bytes)};
    if (!has_peers || is_ordinary || !endpoints_may_share(job->transport)) {
        vectors->grads = memory_create_large(bytes);
    } else if (region_create(bytes, &vectors->region) == STATUS_OK) {
        vectors->grads = vectors->region.bytes;
    }
    return vectors->params != NULL && vectors->grads != NULL ? STATUS_OK : STATUS_NO_MEMORY;
}

void flat_vectors_finish(struct flat_vectors *vectors)
{
    size_t bytes = vectors->count * sizeof(float);
    memory_destroy_large(vectors->params, bytes);
    if (vectors->region.bytes == NULL) {
        memory_destroy_large(vectors->grads, bytes);
    }
    region_destroy(&vectors->region);
    *vectors = (struct flat_vectors){0};
}

const struct region *flat_vectors_region(const struct flat_vectors *vectors)
{
    return vectors->region.bytes != NULL ? &vectors->region : NULL;
}
