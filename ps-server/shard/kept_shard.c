/* Copies a shard's vectors out of it, and into the one that comes after it. */
#include "ps-server/shard/kept_shard.h"

#include "common/channel/fetch.h"
#include "ps-server/shard/shard_checkpoint.h"

#include <string.h>

enum status kept_shard_take(struct kept_shard *kept, struct shard *shard)
{
    const struct shard_config *config = shard_config(shard);
    kept_shard_finish(kept);
    enum status status = shard_checkpoint_prepare(shard, &kept->values);
    if (status != STATUS_OK) {
        kept_shard_finish(kept);
        return status;
    }
    uint64_t gradients = shard_checkpoint_copy_to(shard, &kept->values);
    bool has_values = gradients != UINT64_MAX;
    kept->gradients = has_values ? config->marks.first * config->workers + gradients : UINT64_MAX;
    return STATUS_OK;
}

void kept_shard_finish(struct kept_shard *kept)
{
    snapshot_finish(&kept->values);
    *kept = (struct kept_shard){.gradients = 0};
}

enum status kept_shard_ahead(const struct kept_shard *kept, uint64_t steps, uint32_t workers,
                             uint64_t *ret_ahead)
{
    if (kept->gradients == 0 || kept->gradients / workers < steps) {
        return STATUS_INVALID;
    }
    *ret_ahead = kept->gradients == UINT64_MAX ? 0 : kept->gradients - steps * workers;
    return STATUS_OK;
}

/* Where the span that is wanted lies; NULL: it was not kept. */
static const float *find(struct kept_shard *kept, const struct fetch *wanted)
{
    for (uint32_t i = 0; i < kept->values.entry_count; i++) {
        const struct snapshot_entry *entry = &kept->values.entries[i];
        if (strcmp(entry->vector, wanted->vector) == 0 && entry->total == wanted->total &&
            entry->span.offset == wanted->span.offset && entry->span.count == wanted->span.count) {
            return snapshot_values(&kept->values, i);
        }
    }
    return NULL;
}

enum status kept_shard_restore(struct kept_shard *kept, struct shard *shard)
{
    struct fetch wanted;
    enum status status = shard_checkpoint_begin_restore(shard);
    for (uint32_t i = 0; status == STATUS_OK && shard_checkpoint_restore(shard, i, &wanted); i++) {
        const float *values = find(kept, &wanted);
        if (values == NULL) {
            return STATUS_INVALID;
        }
        memcpy(wanted.target, values, wanted.span.count * sizeof(float));
        status = shard_checkpoint_take(shard, &wanted);
    }
    if (status == STATUS_OK) {
        shard_checkpoint_restored(shard);
    }
    return status;
}
