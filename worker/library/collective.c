/* Collectives and messages: in shared memory, or through the coordinator. */
#include "worker/collective/letters.h"
#include "worker/library/together.h"

#include <stdio.h>
#include <string.h>

#define STATES (~(unsigned)HANDLE_BROKEN)

_Static_assert((int)RINGSIDE_UINT8 == (int)FOLD_UINT8 && (int)RINGSIDE_PRODUCT == (int)FOLD_PRODUCT,
               "the header names types and operations as fold.h does");

static const char *find_fault(const struct ringside *ringside, const struct ringside_among *among)
{
    bool has_own = false;
    for (uint32_t i = 0; i < among->count; i++) {
        uint32_t rank = among->ranks[i];
        if (rank >= ringside->job.workers) {
            return "it names a rank that the job does not have";
        }
        if (i > 0 && rank <= among->ranks[i - 1]) {
            return "its ranks have to be in ascending order, each once";
        }
        has_own = has_own || rank == ringside->rank;
    }
    return has_own ? NULL : "this process's rank is not among those of the call";
}

/* Begins a call: which processes make it. When it does not return RINGSIDE_OK the call is over. */
static enum ringside_status begin(struct ringside *ringside, const struct ringside_among *among,
                                  const char *name, struct call_options *ret_call)
{
    enum ringside_status entered = handle_enter(ringside, STATES, name);
    if (entered != RINGSIDE_OK) {
        return entered;
    }
    bool is_named = among != NULL && among->ranks != NULL;
    *ret_call = (struct call_options){
        .label = among != NULL && among->label != NULL ? among->label : name,
    };
    const char *fault = is_named ? find_fault(ringside, among) : NULL;
    if (fault != NULL) {
        return handle_refuse(ringside, RINGSIDE_INVALID, "%s: %s", name, fault);
    }
    if ((ringside->state & (HANDLE_JOINED | HANDLE_DESCRIBED)) != 0) {
        link_set_step(ringside->link, ++ringside->calls); // heartbeats show that it gets on
    }
    enum status status = together_meet(ringside);
    if (status != STATUS_OK) {
        return handle_exit(ringside, together_fail(ringside, ret_call, 0, status, NULL));
    }
    ret_call->ranks = is_named ? among->ranks : ringside->all_ranks;
    ret_call->count = is_named ? among->count : ringside->job.workers;
    if (ringside->team == NULL && ret_call->count < ringside->job.workers) {
        return handle_refuse(ringside, RINGSIDE_UNSUPPORTED,
                             "%s: %u of %u processes can make a call by themselves only where all "
                             "share memory: on one host, and with --transport auto or shm",
                             name, ret_call->count, ringside->job.workers);
    }
    return RINGSIDE_OK;
}

/* Ends a call that began. */
static enum ringside_status end(struct ringside *ringside, const struct call_options *call,
                                uint64_t bytes, enum status status, const struct team_fault *fault)
{
    return handle_exit(ringside, status == STATUS_OK
                                     ? STATUS_OK
                                     : together_fail(ringside, call, bytes, status, fault));
}

static enum status reduce(struct ringside *ringside, const struct call_options *call,
                          const struct call_values *values, struct team_fault *ret_fault)
{
    if (ringside->team != NULL) {
        return call_all_reduce(ringside->team, call, values, ret_fault);
    }
    uint64_t bytes = values->count * fold_size(values->type);
    enum status status = sums_check(ringside, call, bytes, ret_fault);
    return status == STATUS_OK ? sums_all_reduce(ringside, values) : status;
}

enum ringside_status ringside_all_reduce_among(struct ringside *ringside,
                                               const struct ringside_among *among, void *values,
                                               uint64_t count, enum ringside_type type,
                                               enum ringside_operation operation)
{
    struct call_options call;
    struct team_fault fault = {0};
    enum ringside_status begun = begin(ringside, among, "ringside_all_reduce", &call);
    if (begun != RINGSIDE_OK) {
        return begun;
    }
    if ((unsigned)type >= FOLD_TYPE_COUNT || (unsigned)operation >= FOLD_OPERATION_COUNT ||
        count > SIZE_MAX / sizeof(double) / ringside->job.workers) {
        return handle_refuse(ringside, RINGSIDE_INVALID,
                             "ringside_all_reduce: there is no such type, operation or count");
    }
    const struct call_values of = {values, count, (enum fold_type)type,
                                   (enum fold_operation)operation};
    enum status status = reduce(ringside, &call, &of, &fault);
    return end(ringside, &call, count * fold_size(of.type), status, &fault);
}

enum ringside_status ringside_all_reduce(struct ringside *ringside, float *values, uint64_t count)
{
    return ringside_all_reduce_among(ringside, NULL, values, count, RINGSIDE_FLOAT32, RINGSIDE_SUM);
}

static enum status spread(struct ringside *ringside, const struct call_options *call, void *bytes,
                          uint64_t size, uint32_t root, struct team_fault *ret_fault)
{
    if (ringside->team != NULL) {
        return call_broadcast(ringside->team, call, bytes, size, root, ret_fault);
    }
    enum status status = sums_check(ringside, call, size, ret_fault);
    return status == STATUS_OK ? sums_broadcast(ringside, bytes, size, root) : status;
}

enum ringside_status ringside_broadcast_among(struct ringside *ringside,
                                              const struct ringside_among *among, void *bytes,
                                              uint64_t size, uint32_t root)
{
    struct call_options call;
    struct team_fault fault = {0};
    char label[64];
    struct ringside_among named = among != NULL ? *among : (struct ringside_among){0};
    snprintf(label, sizeof(label), "ringside_broadcast of rank %u", root);
    named.label = named.label != NULL ? named.label : label;
    enum ringside_status begun = begin(ringside, &named, "ringside_broadcast", &call);
    if (begun != RINGSIDE_OK) {
        return begun;
    }
    bool is_there = false;
    for (uint32_t i = 0; i < call.count; i++) {
        is_there = is_there || call.ranks[i] == root;
    }
    if (!is_there) {
        return handle_refuse(ringside, RINGSIDE_INVALID,
                             "ringside_broadcast: there is no rank %u among %u", root, call.count);
    }
    enum status status = spread(ringside, &call, bytes, size, root, &fault);
    return end(ringside, &call, size, status, &fault);
}

enum ringside_status ringside_broadcast(struct ringside *ringside, void *bytes, uint64_t size,
                                        uint32_t root)
{
    return ringside_broadcast_among(ringside, NULL, bytes, size, root);
}

static enum status gather(struct ringside *ringside, const struct call_options *call,
                          const void *own, uint64_t own_bytes, void *all,
                          struct team_fault *ret_fault)
{
    if (ringside->team != NULL) {
        return call_all_gather(ringside->team, call, own, own_bytes, all, ret_fault);
    }
    enum status status = sums_check(ringside, call, own_bytes, ret_fault);
    if (status != STATUS_OK) {
        return status;
    }
    if (own_bytes > 0) {
        memmove((unsigned char *)all + ringside->rank * own_bytes, own, own_bytes);
    }
    return sums_gather(ringside, all, own_bytes);
}

enum ringside_status ringside_all_gather_among(struct ringside *ringside,
                                               const struct ringside_among *among, const void *own,
                                               uint64_t own_bytes, void *ret_all)
{
    struct call_options call;
    struct team_fault fault = {0};
    enum ringside_status begun = begin(ringside, among, "ringside_all_gather", &call);
    if (begun != RINGSIDE_OK) {
        return begun;
    }
    if (own_bytes > 0 && call.count > SIZE_MAX / own_bytes) {
        return handle_refuse(ringside, RINGSIDE_INVALID,
                             "ringside_all_gather: %llu bytes of each of %u processes are too many",
                             (unsigned long long)own_bytes, call.count);
    }
    enum status status = gather(ringside, &call, own, own_bytes, ret_all, &fault);
    return end(ringside, &call, own_bytes, status, &fault);
}

enum ringside_status ringside_all_gather(struct ringside *ringside, const void *own,
                                         uint64_t own_bytes, void *ret_all)
{
    return ringside_all_gather_among(ringside, NULL, own, own_bytes, ret_all);
}

enum ringside_status ringside_barrier_among(struct ringside *ringside,
                                            const struct ringside_among *among)
{
    struct call_options call;
    struct team_fault fault = {0};
    enum ringside_status begun = begin(ringside, among, "ringside_barrier", &call);
    if (begun != RINGSIDE_OK) {
        return begun;
    }
    enum status status = ringside->team != NULL ? call_barrier(ringside->team, &call, &fault)
                                                : sums_check(ringside, &call, 0, &fault);
    return end(ringside, &call, 0, status, &fault);
}

enum ringside_status ringside_barrier(struct ringside *ringside)
{
    return ringside_barrier_among(ringside, NULL);
}

/* Begins a message to or from another process. */
static enum ringside_status begin_message(struct ringside *ringside, const char *name,
                                          uint32_t other, const char *label, uint32_t ranks[2],
                                          struct call_options *ret_call)
{
    const struct ringside_among all = {.label = label != NULL ? label : "a message"};
    enum ringside_status begun = begin(ringside, &all, name, ret_call);
    if (begun != RINGSIDE_OK) {
        return begun;
    }
    if (other >= ringside->job.workers || other == ringside->rank) {
        return handle_refuse(ringside, RINGSIDE_INVALID,
                             "%s: messages go between two processes of %u, and not from rank %u to "
                             "rank %u",
                             name, ringside->job.workers, ringside->rank, other);
    }
    if (ringside->team == NULL) {
        return handle_refuse(ringside, RINGSIDE_UNSUPPORTED,
                             "%s: messages go where all processes share memory: on one host, and "
                             "with --transport auto or shm; a broadcast goes everywhere",
                             name);
    }
    ranks[0] = other < ringside->rank ? other : ringside->rank;
    ranks[1] = other < ringside->rank ? ringside->rank : other;
    ret_call->ranks = ranks;
    ret_call->count = 2;
    return RINGSIDE_OK;
}

enum ringside_status ringside_send(struct ringside *ringside, const void *bytes, uint64_t size,
                                   uint32_t to, const char *label)
{
    struct call_options call;
    struct team_header header;
    struct team_fault fault = {0};
    uint32_t ranks[2];
    enum ringside_status begun = begin_message(ringside, "ringside_send", to, label, ranks, &call);
    if (begun != RINGSIDE_OK) {
        return begun;
    }
    call_header(&call, size, &header);
    enum status status = letters_send(ringside->team, to, &header, bytes, size, &fault);
    return end(ringside, &call, size, status, &fault);
}

enum ringside_status ringside_receive(struct ringside *ringside, void *bytes, uint64_t size,
                                      uint32_t from, const char *label)
{
    struct call_options call;
    struct team_header header;
    struct team_fault fault = {0};
    uint32_t ranks[2];
    enum ringside_status begun =
        begin_message(ringside, "ringside_receive", from, label, ranks, &call);
    if (begun != RINGSIDE_OK) {
        return begun;
    }
    call_header(&call, size, &header);
    enum status status = letters_receive(ringside->team, from, &header, bytes, size, &fault);
    return end(ringside, &call, size, status, &fault);
}
