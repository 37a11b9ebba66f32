/* Lets processes find each other's memory, and says why a call of theirs failed. */
#include "worker/library/together.h"

#include "common/base/log.h"
#include "common/base/printable.h"
#include "common/transport/endpoints.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WHY_BYTES 448 // link_leave's text

static bool is_over(void *context)
{
    return link_is_over(((struct ringside *)context)->link);
}

/* Tells all where this process's memory is, if all have some. */
static enum status swap_places(struct ringside *ringside, struct team_place *places)
{
    const struct team_options options = {
        .rank = ringside->rank,
        .world = ringside->job.workers,
        .is_over = is_over,
        .context = ringside,
    };
    if (ringside->job.workers > TEAM_SIZE_MAX || !endpoints_may_share(ringside->job.transport)) {
        return STATUS_OK; // alike in all processes
    }
    enum status status = team_create(&options, &places[ringside->rank], &ringside->team);
    if (status != STATUS_OK || ringside->job.workers == 1) {
        return status;
    }
    return sums_gather(ringside, places, sizeof(*places));
}

/* Whether all processes could map the memory of all. */
static enum status agree(struct ringside *ringside, bool is_mapped)
{
    double refusals = is_mapped ? 0 : 1;
    enum status status =
        ringside->job.workers > 1 ? link_sum(ringside->link, &refusals, 1) : STATUS_OK;
    if (status == STATUS_OK && refusals > 0) {
        team_destroy(ringside->team);
        ringside->team = NULL;
    }
    return status;
}

enum status together_meet(struct ringside *ringside)
{
    if (ringside->has_met) {
        return STATUS_OK;
    }
    ringside->has_met = true;
    uint32_t workers = ringside->job.workers;
    ringside->all_ranks = calloc(workers, sizeof(*ringside->all_ranks));
    struct team_place *places = calloc(workers, sizeof(*places));
    enum status status =
        ringside->all_ranks != NULL && places != NULL ? STATUS_OK : STATUS_NO_MEMORY;
    for (uint32_t i = 0; status == STATUS_OK && i < workers; i++) {
        ringside->all_ranks[i] = i;
    }
    status = status == STATUS_OK ? swap_places(ringside, places) : status;
    if (status == STATUS_OK && ringside->team != NULL) {
        status = agree(ringside, team_map(ringside->team, places) == STATUS_OK);
    }
    free(places);
    return status;
}

void together_say(struct ringside *ringside, enum team_presence presence)
{
    if (ringside->team != NULL) {
        team_say_presence(ringside->team, presence);
    }
}

void together_say_steps(struct ringside *ringside, uint64_t given, uint64_t needed)
{
    const struct job *job = &ringside->job;
    bool is_bound = job->mode.kind != MODE_PS_ASYNC && job->backup == 0;
    if (ringside->team != NULL) {
        team_say_steps(ringside->team, given, is_bound ? needed : 0);
    }
}

/* What a process calls, beside what another one does. */
static void describe(const struct team_header *header, const struct team_header *beside,
                     char ret_text[TEAM_LABEL_BYTES + 64])
{
    bool is_alike = strcmp(header->label, beside->label) == 0;
    char bytes[32] = "";
    if (is_alike && header->bytes != beside->bytes) {
        snprintf(bytes, sizeof(bytes), " of %llu bytes", (unsigned long long)header->bytes);
    }
    snprintf(ret_text, TEAM_LABEL_BYTES + 64, "%s%s%s", header->label, bytes,
             header->ranks_digest != beside->ranks_digest ? " in another group" : "");
    printable_make_utf8(ret_text);
}

static void describe_mismatch(const struct call_options *call, uint64_t bytes,
                              const struct team_fault *fault, char ret_why[WHY_BYTES])
{
    struct team_header own;
    char own_text[TEAM_LABEL_BYTES + 64], other_text[TEAM_LABEL_BYTES + 64];
    call_header(call, bytes, &own);
    describe(&own, &fault->other, own_text);
    describe(&fault->other, &own, other_text);
    snprintf(ret_why, WHY_BYTES,
             "the processes call different collectives: it calls %.130s, and worker %u %.130s; all "
             "have to call the same ones in the same order, with values of the same shape and type",
             own_text, fault->rank, other_text);
}

static void describe_desertion(const struct ringside *ringside, const struct call_options *call,
                               const struct team_fault *fault, char ret_why[WHY_BYTES])
{
    if (fault->presence == TEAM_LEFT || fault->presence == TEAM_STARTING) {
        snprintf(ret_why, WHY_BYTES, "it waits in %s, and worker %u has %s without it", call->label,
                 fault->rank, fault->presence == TEAM_LEFT ? "left" : "gone on to train");
        return;
    }
    char rule[64] = "must be the same";
    if (ringside->job.mode.kind == MODE_PS_SSP) {
        snprintf(rule, sizeof(rule), "may differ by at most %u", ringside->job.mode.slack_steps);
    }
    snprintf(ret_why, WHY_BYTES,
             "it waits in %s after %llu step%s, but worker %u needs its gradient of step %llu: in "
             "%s the numbers of steps of all processes %s",
             call->label, (unsigned long long)ringside->step, ringside->step == 1 ? "" : "s",
             fault->rank, (unsigned long long)fault->needs_step, ringside->mode, rule);
}

/* What a process waits for, of another one. */
static void describe_wait(enum team_pipe pipe, const char *label, uint32_t rank,
                          char ret_text[TEAM_LABEL_BYTES + 64])
{
    bool is_message = pipe == TEAM_MESSAGES;
    snprintf(ret_text, TEAM_LABEL_BYTES + 64, "%s %s %s worker %u", is_message ? "for" : "in",
             label, is_message ? "from" : "for", rank);
    printable_make_utf8(ret_text);
}

static void describe_circle(const struct call_options *call, const struct team_fault *fault,
                            char ret_why[WHY_BYTES])
{
    char own[TEAM_LABEL_BYTES + 64], other[TEAM_LABEL_BYTES + 64];
    describe_wait(fault->own_pipe, call->label, fault->rank, own);
    describe_wait(fault->other_pipe, fault->other.label, fault->after, other);
    if (fault->needs_step > 0) {
        snprintf(other, sizeof(other), "for worker %u's gradient of step %llu", fault->after,
                 (unsigned long long)fault->needs_step);
    }
    snprintf(ret_why, WHY_BYTES,
             "it waits %.150s, which waits %.150s: they wait for each other, and none can go on; "
             "one has to make first the call that another one waits for",
             own, other);
}

enum status together_fail(struct ringside *ringside, const struct call_options *call,
                          uint64_t bytes, enum status status, const struct team_fault *fault)
{
    char why[WHY_BYTES];
    if (link_is_over(ringside->link)) { // which says more than what the call met
        enum status verdict = link_verdict(ringside->link);
        return verdict != STATUS_OK ? verdict : STATUS_UNREACHABLE;
    }
    if (status == STATUS_MISMATCH) {
        describe_mismatch(call, bytes, fault, why);
    } else if (status == STATUS_UNREACHABLE && fault->kind == TEAM_CIRCLE) {
        describe_circle(call, fault, why);
    } else if (status == STATUS_UNREACHABLE) {
        describe_desertion(ringside, call, fault, why);
    } else {
        snprintf(why, sizeof(why), "%s: %s", call->label, status_text(status));
    }
    log_error("%s", why);
    link_leave(ringside->link, status, why);
    return status;
}
