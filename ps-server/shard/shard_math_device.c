/* The arithmetic of a shard in memory of a device: see common/vector/vector_device.h. Gradients are
 * in memory that the device reaches. */
#include "common/optimizer/optimizer_formulas.h"
#include "common/vector/vector_device.h"
#include "ps-server/shard/shard_math.h"

#include <assert.h>

static struct vector_device *device_of(const struct shard *shard)
{
    return shard->config.device;
}

/* Whether the next operation is to be queued: the last one was. */
static bool goes_on(struct shard *shard, enum status status)
{
    if (shard->fault == STATUS_OK) {
        shard->fault = status;
    }
    return shard->fault == STATUS_OK;
}

static enum status begin(struct shard *shard)
{
    struct vector_device *device = device_of(shard);
    // It keeps no states, and says what an update is.
    enum status status =
        optimizer_create(shard->config.optimizer, &shard->config.settings, 0, &shard->optimizer);
    if (status != STATUS_OK) {
        return status;
    }
    for (uint32_t i = 0; i < optimizer_state_count(shard->optimizer); i++) {
        status = device->ops->create(device, shard->value_count, &shard->device_states[i]);
        if (status != STATUS_OK) {
            return status;
        }
    }
    return device->ops->create(device, shard->value_count, &shard->device_mean);
}

static void end(struct shard *shard)
{
    struct vector_device *device = device_of(shard);
    for (uint32_t i = 0; i < OPTIMIZER_STATES_MAX; i++) {
        device->ops->destroy(device, shard->device_states[i]);
    }
    device->ops->destroy(device, shard->device_mean);
    optimizer_destroy(shard->optimizer);
}

static enum status create(const struct shard *shard, uint64_t count, float **ret_vector)
{
    return device_of(shard)->ops->create(device_of(shard), count, ret_vector);
}

static void destroy(const struct shard *shard, float *vector, uint64_t count)
{
    (void)count;
    device_of(shard)->ops->destroy(device_of(shard), vector);
}

static void copy(struct shard *shard, float *to, const float *from, uint64_t count)
{
    struct vector_device *device = device_of(shard);
    if (goes_on(shard, STATUS_OK)) {
        (void)goes_on(shard, device->ops->copy(device, to, from, count));
    }
}

/* An update of the values from `at` on. */
static void update_values(struct shard *shard, uint64_t at, const float *gradient, uint64_t count,
                          uint64_t update, double rate)
{
    struct vector_device *device = device_of(shard);
    float *const *states = shard->device_states;
    for (uint64_t end = at + count; at < end;) {
        struct optimizer_update plan;
        const struct optimizer_vectors vectors = {
            .params = shard->params + at,
            .grads = gradient,
            .first = states[0] != NULL ? states[0] + at : NULL,
            .second = states[1] != NULL ? states[1] + at : NULL,
        };
        uint64_t length = optimizer_plan_update(shard->optimizer, (struct span){at, end - at},
                                                update, rate, &plan);
        if (goes_on(shard, STATUS_OK)) {
            (void)goes_on(shard, device->ops->update(device, &plan, &vectors, length));
        }
        at += length;
        gradient += length;
    }
}

/* The mean of a part, and the update from it. */
static void apply_part(struct shard *shard, const struct part *part, struct span bucket,
                       uint32_t contributor_count, uint64_t update, double rate)
{
    struct vector_device *device = device_of(shard);
    struct vector_mean mean = {
        .count = contributor_count,
        .world = shard->config.workers,
        .length = part->span.count,
    };
    float *target = shard->device_mean + part->offset;
    for (uint32_t k = 0; k < contributor_count; k++) {
        mean.ranks[k] = shard->contributors[k];
        mean.vectors[k] = part->values[shard->contributors[k]];
    }
    for (uint32_t c = 0; c < mean.world; c++) {
        struct span chunk = span_part(bucket, mean.world, c);
        uint64_t chunk_end = chunk.offset + chunk.count;
        mean.chunk_ends[c] = chunk_end > part->span.offset ? chunk_end - part->span.offset : 0;
    }
    if (goes_on(shard, STATUS_OK) && goes_on(shard, device->ops->mean(device, &mean, target))) {
        update_values(shard, part->offset, target, part->span.count, update, rate);
    }
}

static void apply_mean(struct shard *shard, const struct unit *unit, uint64_t update, double rate)
{
    uint32_t contributor_count = shard_list_contributors(shard, unit, 0);
    assert(shard->config.workers <= VECTOR_DEVICE_RANKS);
    for (uint32_t i = unit->first; i < unit->end; i++) {
        if (shard->parts[i].span.count > 0) {
            apply_part(shard, &shard->parts[i], shard->config.layout.buckets[i], contributor_count,
                       update, rate);
        }
    }
}

static void take_part(struct shard *shard, const struct part *part, uint32_t rank, uint64_t update,
                      double rate)
{
    struct vector_device *device = device_of(shard);
    const float *gradient = part->values[rank];
    if (part->span.count == 0) {
        return;
    }
    if (shard->sum == NULL) {
        update_values(shard, part->offset, gradient, part->span.count, update, rate);
    } else if (goes_on(shard, STATUS_OK)) {
        (void)goes_on(
            shard, device->ops->add(device, shard->sum + part->offset, gradient, part->span.count));
    }
}

static void apply_sum(struct shard *shard, uint32_t count, uint64_t update, double rate)
{
    struct vector_device *device = device_of(shard);
    uint64_t length = shard->value_count;
    if (goes_on(shard, STATUS_OK) &&
        goes_on(shard, device->ops->scale(device, shard->sum, 1.0f / (float)count, length))) {
        update_values(shard, 0, shard->sum, length, update, rate);
        (void)goes_on(shard, device->ops->clear(device, shard->sum, length));
    }
}

static float *state(const struct shard *shard, uint32_t index)
{
    return shard->device_states[index];
}

static void finish(struct shard *shard)
{
    (void)goes_on(shard, device_of(shard)->ops->wait(device_of(shard)));
}

const struct shard_math shard_math_device = {
    .begin = begin,
    .end = end,
    .create = create,
    .destroy = destroy,
    .copy = copy,
    .apply_mean = apply_mean,
    .take_part = take_part,
    .apply_sum = apply_sum,
    .state = state,
    .finish = finish,
};
