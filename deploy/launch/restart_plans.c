/* Counts restarts, and the pauses between them. */
#include "deploy/launch/restart_plans.h"

#include "common/base/clock.h"

#include <stddef.h>

// The coordinator and the whole job are started again at once. If more is lost before this time is
// over, there is this pause, and after each further loss twice that, but no more than the last.
// Workers, which the others do without, have a pause more: the coordinator is to know of a loss
// before the next process asks for the place.
#define CALM_MS         60000
#define PAUSE_MS        500
#define PAUSE_DOUBLINGS 6

static bool is_counted(const struct member *member)
{
    return restart_plan_is_made(member) && !member->is_replacement;
}

uint32_t restart_plans_count(const struct launch *launch)
{
    uint32_t count = 0;
    for (size_t i = 0; i < launch->members.count; i++) {
        count += is_counted(&launch->members.list[i]);
    }
    return count;
}

bool restart_plans_have_room(const struct launch *launch, const struct member *member)
{
    uint32_t taken = launch->restarts;
    for (size_t i = 0; i < launch->members.count; i++) {
        const struct member *other = &launch->members.list[i];
        taken += other != member && (is_counted(other) || other->is_offered);
    }
    return taken < launch->options->restarts;
}

void restart_plans_end_offers(struct launch *launch)
{
    for (size_t i = 0; i < launch->members.count; i++) {
        launch->members.list[i].is_offered = false;
    }
}

void restart_plans_forget(struct launch *launch)
{
    launch->is_ending = true;
    for (size_t i = 1; i < launch->members.count; i++) {
        struct member *member = &launch->members.list[i];
        launch->replacements -= restart_plan_is_made(member) && member->is_replacement;
        member->restart_ms = 0;
    }
}

void restart_plans_drop(struct launch *launch)
{
    for (size_t i = launch->members.count; i-- > 1;) {
        struct member *member = &launch->members.list[i];
        bool is_too_many =
            launch->restarts + restart_plans_count(launch) > launch->options->restarts;
        if (is_too_many && is_counted(member)) {
            member->restart_ms = 0;
        }
    }
}

uint32_t restart_plans_recent(const struct launch *launch)
{
    return clock_now_ms() - launch->restarted_ms < CALM_MS ? launch->recent_restarts : 0;
}

void restart_plans_note(struct launch *launch)
{
    launch->recent_restarts = restart_plans_recent(launch) + 1;
    launch->restarted_ms = clock_now_ms();
}

void restart_plans_note_member(struct launch *launch, const struct member *member)
{
    if (!member->is_same_loss) { // or the coordinator's restart was noted
        restart_plans_note(launch);
    }
}

bool restart_plans_are_one_loss(const struct launch *launch, const struct member *member)
{
    bool comes_back = launch->returns > 0 && (launch->is_returning || !launch->has_begun);
    return comes_back && member->launch < launch->members.list[0].launch;
}

uint32_t restart_plans_before(const struct launch *launch, const struct member *member)
{
    uint32_t recent = restart_plans_recent(launch);
    if (restart_plans_are_one_loss(launch, member)) {
        return recent > 0 ? recent - 1 : 0; // without the coordinator's
    }
    return recent + restart_plans_count(launch) - is_counted(member);
}

void restart_plans_make(const struct launch *launch, struct member *member, uint32_t recent)
{
    uint64_t restart_ms = clock_now_ms() + restart_plans_pause_ms(recent);
    member->is_same_loss = restart_plans_are_one_loss(launch, member);
    if (!restart_plan_is_made(member) || restart_ms < member->restart_ms) {
        member->restart_ms = restart_ms;
    }
}

uint64_t restart_plans_pause_ms(uint32_t recent)
{
    uint32_t doublings = recent <= PAUSE_DOUBLINGS ? recent - 1 : PAUSE_DOUBLINGS;
    return recent > 0 ? (uint64_t)PAUSE_MS << doublings : 0;
}
