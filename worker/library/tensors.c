/* Describes tensors, and starts the job with them. */
#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/printable.h"
#include "common/job/phases.h"
#include "common/vector/digest.h"
#include "worker/library/committed.h"
#include "worker/library/groups.h"
#include "worker/library/together.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TENSOR_LINE_BYTES 128

/* NULL, or what is wrong. */
static const char *find_fault(const struct ringside_tensor *tensors, uint32_t count,
                              uint32_t *ret_index)
{
    uint64_t room = LAYOUT_VALUES_MAX;
    for (uint32_t i = 0; i < count; i++) {
        *ret_index = i;
        if (tensors[i].name == NULL || tensors[i].name[0] == '\0') {
            return "has no name";
        }
        if (tensors[i].count == 0) {
            return "has no values";
        }
        if (tensors[i].count > room) {
            return "is too large";
        }
        room -= tensors[i].count;
    }
    return NULL;
}

/* Names and counts: what processes must have alike. */
static uint64_t digest_tensors(const struct ringside_tensor *tensors, uint32_t count)
{
    uint64_t digest = LAYOUT_DIGEST_SEED;
    for (uint32_t i = 0; i < count; i++) {
        digest = layout_digest_add(digest, tensors[i].name, strlen(tensors[i].name) + 1);
        digest = layout_digest_add(digest, &tensors[i].count, sizeof(tensors[i].count));
    }
    return digest;
}

static uint32_t bucket_at(const struct layout *layout, struct span span)
{
    uint32_t bucket = 0;
    while (span_intersect(layout->buckets[bucket], span).count == 0) {
        bucket++;
    }
    return bucket;
}

/* A bucket has whole tensors. */
static enum status cut(struct ringside *ringside, const struct ringside_tensor *tensors,
                       uint32_t count)
{
    struct span *spans = ringside->spans = calloc(count, sizeof(*spans));
    unsigned char *may_close = malloc(count);
    ringside->tensors = calloc(count, sizeof(*ringside->tensors));
    enum status status = spans != NULL && may_close != NULL && ringside->tensors != NULL
                             ? STATUS_OK
                             : STATUS_NO_MEMORY;
    if (status == STATUS_OK) {
        uint64_t offset = 0;
        for (uint32_t i = 0; i < count; i++) {
            spans[i] = (struct span){offset, tensors[i].count};
            offset += tensors[i].count;
        }
        memset(may_close, 1, count);
        status = layout_make_buckets(spans, may_close, count, phases_bucket_bytes(&ringside->job),
                                     &ringside->layout);
    }
    for (uint32_t i = 0; i < count && status == STATUS_OK; i++) {
        struct handle_tensor *tensor = &ringside->tensors[i];
        *tensor = (struct handle_tensor){
            .name = strdup(tensors[i].name),
            .span = spans[i],
            .bucket = bucket_at(&ringside->layout, spans[i]),
        };
        ringside->tensor_count = i + 1;
        status = tensor->name != NULL ? STATUS_OK : STATUS_NO_MEMORY;
    }
    free(may_close);
    return status;
}

enum ringside_status ringside_describe(struct ringside *ringside,
                                       const struct ringside_tensor *tensors, uint32_t tensor_count)
{
    enum ringside_status entered = handle_enter(ringside, HANDLE_JOINED, "ringside_describe");
    if (entered != RINGSIDE_OK) {
        return entered;
    }
    static const struct ringside_tensor nothing = {"nothing", 1}; // what a program has to exchange
    uint32_t index = 0;
    ringside->has_no_model = tensor_count == 0;
    if (ringside->has_no_model) {
        tensors = &nothing;
        tensor_count = 1;
    }
    if (tensors == NULL || tensor_count > HANDLE_TENSORS_MAX) {
        return handle_refuse(ringside, RINGSIDE_INVALID,
                             "ringside_describe: there are 0 to %d tensors", HANDLE_TENSORS_MAX);
    }
    const char *fault = find_fault(tensors, tensor_count, &index);
    if (fault != NULL) {
        return handle_refuse(ringside, RINGSIDE_INVALID, "ringside_describe: tensor %u (%.200s) %s",
                             index, tensors[index].name != NULL ? tensors[index].name : "", fault);
    }
    enum status status = cut(ringside, tensors, tensor_count);
    if (status == STATUS_OK) {
        ringside->layout.digest = digest_tensors(tensors, tensor_count);
        status = flat_vectors_init(&ringside->vectors, &ringside->job, ringside->layout.value_count,
                                   false);
    }
    if (status == STATUS_OK) {
        ringside->state = HANDLE_DESCRIBED;
    } else {
        log_error("cannot prepare vectors for %u tensors: %s", tensor_count, status_text(status));
        link_leave(ringside->link, status, "it has no memory for its tensors");
    }
    return handle_exit(ringside, status);
}

float *ringside_params(struct ringside *ringside)
{
    return ringside != NULL ? ringside->vectors.params : NULL;
}

float *ringside_grads(struct ringside *ringside)
{
    return ringside != NULL ? ringside->vectors.grads : NULL;
}

uint64_t ringside_offset(struct ringside *ringside, uint32_t tensor)
{
    bool is_known = ringside != NULL && tensor < ringside->tensor_count;
    return is_known ? ringside->tensors[tensor].span.offset : UINT64_MAX;
}

enum ringside_status ringside_keep_gradients(struct ringside *ringside)
{
    enum ringside_status entered =
        handle_enter(ringside, HANDLE_DESCRIBED, "ringside_keep_gradients");
    if (entered != RINGSIDE_OK) {
        return entered;
    }
    if (handle_servers_update(ringside)) {
        return handle_refuse(ringside, RINGSIDE_UNSUPPORTED,
                             "ringside_keep_gradients: in mode %s servers make the updates, as the "
                             "job's --optimizer and its options say%s",
                             ringside->mode,
                             ringside->job.mode.kind == MODE_PS_SYNC
                                 ? "; with --server-optimizer none the program makes them"
                                 : "");
    }
    if (ringside->told[0] != '\0') {
        return handle_refuse(ringside, RINGSIDE_UNSUPPORTED,
                             "ringside_keep_gradients: the program has said by "
                             "ringside_set_optimizer who makes the updates");
    }
    ringside->makes_updates = true;
    return handle_exit(ringside, STATUS_OK);
}

/* By which the coordinator says what differs: the first tensors, as far as there is room. */
static void list_tensors(struct ringside *ringside)
{
    size_t used = 0;
    for (uint32_t i = 0; i < ringside->tensor_count; i++) {
        char line[TENSOR_LINE_BYTES];
        const struct handle_tensor *tensor = &ringside->tensors[i];
        snprintf(line, sizeof(line) - 1, "%llu %.100s", (unsigned long long)tensor->span.count,
                 tensor->name);
        printable_make_utf8(line);
        size_t size = strlen(line);
        if (used + size + 2 > sizeof(ringside->tensor_list)) {
            break;
        }
        used += (size_t)snprintf(ringside->tensor_list + used, sizeof(ringside->tensor_list) - used,
                                 "%s\n", line);
    }
}

static void name_buckets(struct ringside *ringside)
{
    for (uint32_t i = 0; i < ringside->tensor_count;) {
        uint32_t bucket = ringside->tensors[i].bucket, first = i;
        while (i < ringside->tensor_count && ringside->tensors[i].bucket == bucket) {
            i++;
        }
        timeline_name(&ringside->timeline, bucket, ringside->tensors[first].name,
                      ringside->tensors[i - 1].name);
    }
}

/* Where this process makes the job's updates: an optimizer that begins, or goes on. */
static enum status make_optimizer(struct ringside *ringside)
{
    const struct job *job = &ringside->job;
    enum status status = STATUS_OK;
    optimizer_destroy(ringside->optimizer); // of the generation before
    ringside->optimizer = NULL;
    if (!ringside->makes_updates && !handle_servers_update(ringside)) {
        status = optimizer_create(job->optimizer, &job->settings, ringside->layout.value_count,
                                  &ringside->optimizer);
    }
    status = status == STATUS_OK ? committed_restore(ringside) : status;
    if (status != STATUS_OK) {
        link_leave(ringside->link, status, "it has no memory for its optimizer");
    }
    return status;
}

static enum status start(struct ringside *ringside)
{
    const struct job *job = &ringside->job;
    const uint64_t samples = job->steps * job->global_batch; // the job is one epoch
    const uint64_t count = ringside->layout.value_count;
    char digest[DIGEST_TEXT_BYTES];
    straggling_init(&ringside->straggling, job, ringside->rank);
    faulting_init(&ringside->faulting, job, (struct rank_block){ringside->rank, 1});
    if (ringside->faulting.faults.count > 0) {
        log_raise_level(LOG_WARN); // its launcher reads there which of them has ended it
    }
    list_tensors(ringside);
    name_buckets(ringside);
    snprintf(ringside->told_all, sizeof(ringside->told_all), "%s", ringside->told);
    if (ringside->codec.kind != CODEC_NONE) {
        job_encode_codec(&ringside->codec, ringside->told_all);
    }
    ringside->schedule = job_schedule(job, samples);
    enum status status = make_optimizer(ringside);
    if (status != STATUS_OK) {
        return status;
    }
    status = handle_groups_begin(ringside);
    if (status != STATUS_OK) {
        link_leave(ringside->link, status, "it has no memory for its groups of parameters");
        return status;
    }
    digest_floats(ringside->vectors.params, count, digest);
    const struct link_prepared prepared = {
        .layout = &ringside->layout,
        .params = ringside->vectors.params,
        .grads = ringside->vectors.grads,
        .region = flat_vectors_region(&ringside->vectors),
        .params_digest = digest,
        .trace = ringside->timeline.trace,
        .device = "external",
        .optimizer = ringside->told_all,
        .codec = ringside->codec,
        .groups = handle_groups_start(ringside),
        .tensor_count = ringside->tensor_count,
        .tensors = ringside->tensor_list,
        .train_samples = samples,
        .test_samples = 1,
        .watched = ringside->spans,
        .watched_count = handle_servers_update(ringside) ? ringside->tensor_count : 0,
        .parameters = ringside->has_no_model ? 0 : count,
        .begin_step = ringside->begin_step,
        .states = ringside->kept,
        .state_count = handle_servers_update(ringside) ? committed_count(ringside) : 0,
    };
    status = link_prepare(ringside->link, &prepared);
    if (status != STATUS_OK) {
        return status;
    }
    ringside->exchange = link_exchange(ringside->link);
    ringside->began_ns = clock_now_ns();
    link_traffic(ringside->link, &ringside->sent_before, &ringside->received_before);
    // Unsynchronised processes pull the first parameters, too.
    return ringside->exchange->options.is_unsynchronised ? exchange_settle(ringside->exchange)
                                                         : STATUS_OK;
}

enum ringside_status ringside_start(struct ringside *ringside)
{
    enum ringside_status entered = handle_enter(ringside, HANDLE_DESCRIBED, "ringside_start");
    if (entered != RINGSIDE_OK) {
        return entered;
    }
    entered = handle_exit(ringside, handle_choose_optimizer(ringside));
    if (entered != RINGSIDE_OK) {
        return entered;
    }
    entered = committed_share(ringside);
    if (entered != RINGSIDE_OK) {
        return entered;
    }
    entered = handle_enter(ringside, HANDLE_DESCRIBED, "ringside_start");
    if (entered != RINGSIDE_OK) {
        return entered;
    }
    together_say(ringside, ringside->has_no_model ? TEAM_LEFT : TEAM_STARTING);
    link_set_step(ringside->link, ringside->begin_step);
    enum status status = start(ringside);
    if (status == STATUS_OK) {
        together_say(ringside, TEAM_STARTED);
        ringside->state = HANDLE_BETWEEN;
    }
    return handle_exit(ringside, status);
}
