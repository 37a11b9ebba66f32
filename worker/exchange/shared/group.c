/* All-reduces in shared memory: gives each bucket its algorithm, and waits for all workers. */
#include "worker/exchange/shared/group.h"

#include "common/base/cores.h"
#include "worker/exchange/shared/group_state.h"
#include "worker/exchange/shared/spread.h"

#include <assert.h>
#include <stdlib.h>
#include <unistd.h>

static size_t counters_bytes(const struct layout *layout)
{
    size_t bytes = sizeof(struct board) + layout->bucket_count * sizeof(struct counters);
    return (bytes + POSTS_ALIGNMENT - 1) / POSTS_ALIGNMENT * POSTS_ALIGNMENT;
}

static size_t all_posts_bytes(const struct layout *layout, uint32_t world)
{
    size_t bytes = 0;
    for (uint32_t i = 0; i < layout->bucket_count; i++) {
        uint64_t count = layout->buckets[i].count;
        bytes += posts_serve(count) ? posts_bytes(count, world) : 0;
    }
    return bytes;
}

/* The bytes of a board before the devices' part. */
static size_t host_bytes(const struct layout *layout, uint32_t world, bool has_bounce)
{
    size_t bytes = counters_bytes(layout) + all_posts_bytes(layout, world) +
                   (has_bounce ? bounce_bytes(world) : 0);
    return (bytes + DEVICES_PAGE - 1) / DEVICES_PAGE * DEVICES_PAGE;
}

size_t group_board_bytes(const struct layout *layout, uint32_t world, bool has_bounce)
{
    return host_bytes(layout, world, has_bounce) + devices_bytes(layout, world);
}

/* Posts: every worker adds up the values of all ranks. */
static bool posts_complete(const struct group *group, uint32_t bucket)
{
    const struct bucket_state *state = &group->buckets[bucket];
    return posts_are_complete(&state->posts, state->round);
}

static enum status posts_arrive(struct group *group, uint32_t bucket)
{
    const struct bucket_state *state = &group->buckets[bucket];
    struct span span = group->options.layout->buckets[bucket];
    for (uint32_t i = 0; i < group->ranks.count; i++) {
        struct posts posts = state->posts;
        posts.rank += i;
        posts_put(&posts, state->round, group->options.vectors[i] + span.offset);
    }
    if (posts_complete(group, bucket)) {
        bell_ring(&group->board->bell);
    }
    return STATUS_OK;
}

static void posts_take_mean(struct group *group, uint32_t bucket)
{
    const struct bucket_state *state = &group->buckets[bucket];
    struct span span = group->options.layout->buckets[bucket];
    posts_mean(&state->posts, state->round, group->options.own + span.offset);
}

static const struct group_algorithm group_posts = {posts_arrive, posts_complete, posts_take_mean};

/* Bounce buffers: gradients are not mapped. */
static enum status bounce_arrive_at(struct group *group, uint32_t bucket)
{
    bounce_arrive(group->bounce, bucket);
    return STATUS_OK;
}

static bool bounce_complete(const struct group *group, uint32_t bucket)
{
    return bounce_is_complete(group->bounce, bucket);
}

static const struct group_algorithm group_bounce = {bounce_arrive_at, bounce_complete, NULL};

/* Devices have queued the sum behind backward, and queue behind it what comes later. */
static enum status devices_arrive(struct group *group, uint32_t bucket)
{
    (void)group;
    (void)bucket;
    return STATUS_OK;
}

static bool devices_complete(const struct group *group, uint32_t bucket)
{
    (void)group;
    (void)bucket;
    return true;
}

static const struct group_algorithm group_devices = {devices_arrive, devices_complete, NULL};

static void plan_buckets(struct group *group)
{
    const struct layout *layout = group->options.layout;
    unsigned char *posts = (unsigned char *)group->board + counters_bytes(layout);
    for (uint32_t i = 0; i < layout->bucket_count; i++) {
        struct bucket_state *state = &group->buckets[i];
        uint64_t count = layout->buckets[i].count;
        if (posts_serve(count)) {
            state->algorithm = &group_posts;
            state->posts = (struct posts){posts, group->options.rank, group->options.world, count};
            posts += posts_bytes(count, group->options.world);
        } else if (group->bounce != NULL) {
            state->algorithm = &group_bounce;
        } else {
            blocks_plan(state, count);
            group->has_blocks = true;
        }
    }
}

static enum status create_bounce(struct group *group)
{
    const struct group_options *options = &group->options;
    const struct bounce_options bounce = {
        .rank = options->rank,
        .world = options->world,
        .layout = options->layout,
        .vector = options->own,
        .start = (unsigned char *)options->board + counters_bytes(options->layout) +
                 all_posts_bytes(options->layout, options->world),
    };
    return bounce_create(&bounce, &group->bounce);
}

enum status group_create(const struct group_options *options, struct group **ret_group)
{
    assert(options->world >= 1 && options->world <= ALL_REDUCE_SHARED_MAX);
    const struct carriers carriers = {
        .ranks = options->world,
        .processes =
            options->processes > 0 ? options->processes : options->world - options->left_out.count,
        .left_out = options->left_out,
    };
    bool is_one_each = carriers.processes == carriers.ranks;
    if (options->grads == NULL && !is_one_each) {
        return STATUS_UNSUPPORTED;
    }
    const struct layout *layout = options->layout;
    struct group *group = calloc(1, sizeof(*group) + options->world * sizeof(group->grads[0]));
    if (group == NULL) {
        return STATUS_NO_MEMORY;
    }
    group->options = *options;
    group->options.processes = carriers.processes;
    if (options->vectors == NULL) {
        group->options.vectors = &group->options.own;
    }
    group->process = carriers_process(carriers, options->rank);
    group->ranks = carriers_block(carriers, group->process);
    group->board = options->board;
    group->spins = (long)carriers.processes <= sysconf(_SC_NPROCESSORS_ONLN);
    group->core_share = spread_share(carriers.processes, cores_available());
    group->buckets = calloc(layout->bucket_count, sizeof(*group->buckets));
    enum status status = group->buckets != NULL ? STATUS_OK : STATUS_NO_MEMORY;
    if (status == STATUS_OK && options->grads == NULL) {
        status = create_bounce(group);
    }
    if (status != STATUS_OK) {
        group_destroy(group);
        return status;
    }
    for (uint32_t i = 0; options->grads != NULL && i < options->world; i++) {
        group->grads[i] = options->grads[i];
    }
    plan_buckets(group);
    devices_init(&group->devices, group->board,
                 (unsigned char *)options->board +
                     host_bytes(layout, options->world, options->grads == NULL),
                 options->rank, options->world, layout);
    *ret_group = group;
    return STATUS_OK;
}

void group_destroy(struct group *group)
{
    if (group != NULL) {
        devices_part(&group->devices);
        bounce_destroy(group->bounce);
        free(group->buckets);
        free(group);
    }
}

enum status group_meet(struct group *group, const struct exchange_device *device,
                       bool (*is_stopped)(void *context), void *context, bool *ret_has_met)
{
    *ret_has_met = false;
    if (group->options.processes < group->options.world) {
        return STATUS_OK;
    }
    enum status status = devices_meet(&group->devices, device, is_stopped, context);
    *ret_has_met = group->devices.has_met;
    for (uint32_t i = 0; *ret_has_met && i < group->options.layout->bucket_count; i++) {
        group->buckets[i].algorithm = &group_devices;
    }
    group->has_blocks = group->has_blocks && !*ret_has_met;
    return status;
}

void group_release(struct group *group)
{
    devices_release(&group->devices);
}

static bool is_complete(const struct group *group, uint32_t bucket)
{
    return group->buckets[bucket].algorithm->is_complete(group, bucket);
}

bool news_are_there(const struct group *group, uint32_t bucket)
{
    return is_complete(group, bucket) ||
           (group->bounce != NULL ? bounce_has_work(group->bounce) : blocks_have_work(group));
}

static void work_on_bounce(struct group *group)
{
    enum bounce_did did;
    while ((did = bounce_work(group->bounce)) != BOUNCE_NOTHING) {
        if (did == BOUNCE_NEWS) {
            bell_ring(&group->board->bell);
        }
    }
}

/* Does what can be done of this worker's ready buckets. They become ready in order. */
static enum status help(struct group *group)
{
    if (group->bounce != NULL) {
        work_on_bounce(group);
        return STATUS_OK;
    }
    return group->has_blocks ? blocks_work(group) : STATUS_OK;
}

enum status group_arrive(struct group *group, uint32_t bucket)
{
    struct bucket_state *state = &group->buckets[bucket];
    assert(!state->is_unfinished);
    news_note_core(group);
    state->round++;
    state->is_unfinished = true;
    enum status status = state->algorithm->arrive(group, bucket);
    return status == STATUS_OK ? help(group) : status;
}

/* Does what is left for this worker to do of a complete bucket. */
static void finish(struct group *group, uint32_t bucket)
{
    struct bucket_state *state = &group->buckets[bucket];
    if (state->algorithm->take_mean != NULL) {
        state->algorithm->take_mean(group, bucket);
    }
    state->is_unfinished = false;
}

enum status group_wait(struct group *group, uint32_t bucket, bool (*is_stopped)(void *context),
                       void *context)
{
    while (!is_complete(group, bucket)) {
        enum status status = help(group);
        if (status != STATUS_OK) {
            return status;
        }
        if (is_complete(group, bucket)) {
            break;
        }
        if (is_stopped(context)) {
            return STATUS_INTERRUPTED;
        }
        news_wait(group, bucket);
    }
    finish(group, bucket);
    return STATUS_OK;
}
