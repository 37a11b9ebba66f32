/* Groups of parameters with settings of their own, and settings that change between steps. */
#include "worker/library/groups.h"

#include "common/optimizer/groups.h"
#include "worker/library/handle.h"

#include <stdlib.h>
#include <string.h>

/* What the program has said. */
struct handle_groups {
    struct optimizer_groups start; // as the others hear of them; no groups: one, the job's
    struct optimizer_group *rows;  // (count) of `start`, owned
    uint64_t *run_ends;            // owned
    uint32_t *run_groups;          // owned
    uint32_t count;                // 1 without groups

    struct optimizer_group *said; // (count) since then, for steps to come; owned
    bool has_said, is_said_relative;
    struct optimizer_group *used; // (count) of the step that is made; owned
    struct optimizer_groups step; // the same as pushes say it
    bool uses_said;
};

static bool has_schedule(const struct ringside *ringside)
{
    const struct job *job = &ringside->job;
    const struct schedule schedule = job_schedule(job, job->steps * job->global_batch);
    return !schedule_is_constant(&schedule);
}

void handle_groups_destroy(struct handle_groups *of)
{
    if (of == NULL) {
        return;
    }
    free(of->rows);
    free(of->run_ends);
    free(of->run_groups);
    free(of->said);
    free(of->used);
    free(of);
}

const struct optimizer_groups *handle_groups_start(const struct ringside *ringside)
{
    const struct handle_groups *of = ringside->groups;
    return of != NULL && of->start.group_count > 0 ? &of->start : NULL;
}

static struct optimizer_group group_of(const struct ringside *ringside,
                                       const struct ringside_group *from)
{
    struct optimizer_group group = {
        .rate = from->rate,
        .settings = {.momentum = from->momentum,
                     .beta1 = from->beta1,
                     .beta2 = from->beta2,
                     .decay = from->decay,
                     .epsilon = from->epsilon,
                     .weight_decay = from->weight_decay},
    };
    optimizer_fill_defaults(ringside->job.optimizer, &group.settings);
    return group;
}

static bool is_rate(double rate)
{
    return rate >= 0 && rate <= OPTIMIZER_RATE_MAX;
}

/* Room for `count` groups. NULL: there is none. */
static struct handle_groups *create(uint32_t count)
{
    struct handle_groups *of = calloc(1, sizeof(*of));
    if (of == NULL) {
        return NULL;
    }
    of->count = count;
    of->rows = calloc(count, sizeof(*of->rows));
    of->said = calloc(count, sizeof(*of->said));
    of->used = calloc(count, sizeof(*of->used));
    if (of->rows == NULL || of->said == NULL || of->used == NULL) {
        handle_groups_destroy(of);
        return NULL;
    }
    of->step = (struct optimizer_groups){.groups = of->used, .group_count = count};
    return of;
}

/* Joins neighbouring tensors of one group to runs. */
static enum status make_runs(const struct ringside *ringside, const uint32_t *group_of_tensor,
                             struct handle_groups *of)
{
    uint32_t count = 0;
    of->run_ends = calloc(ringside->tensor_count, sizeof(*of->run_ends));
    of->run_groups = calloc(ringside->tensor_count, sizeof(*of->run_groups));
    if (of->run_ends == NULL || of->run_groups == NULL) {
        return STATUS_NO_MEMORY;
    }
    for (uint32_t i = 0; i < ringside->tensor_count; i++) {
        const struct span *span = &ringside->tensors[i].span;
        count += count == 0 || of->run_groups[count - 1] != group_of_tensor[i];
        of->run_groups[count - 1] = group_of_tensor[i];
        of->run_ends[count - 1] = span->offset + span->count;
    }
    of->start = (struct optimizer_groups){
        .groups = of->rows,
        .group_count = of->count,
        .run_count = count,
        .run_ends = of->run_ends,
        .run_groups = of->run_groups,
        .is_relative = true,
    };
    return STATUS_OK;
}

/* The rate that 1 stands for among those that the others hear of: what the program has said for the
 * job, or the job's; where that has a schedule, the first one of a group that learns. */
static double unit_of(const struct ringside *ringside, const struct ringside_group *groups,
                      uint32_t count)
{
    if (ringside->said_rate > 0 || !has_schedule(ringside)) {
        return ringside->said_rate > 0 ? ringside->said_rate : ringside->job.lr;
    }
    for (uint32_t i = 0; i < count; i++) {
        if (groups[i].rate > 0) {
            return groups[i].rate;
        }
    }
    return ringside->job.lr;
}

/* NULL, or what is wrong with what the program says. */
static const char *find_fault(const struct ringside *ringside, const struct ringside_group *groups,
                              uint32_t count, const uint32_t *group_of_tensor)
{
    if (groups == NULL || group_of_tensor == NULL || count == 0 || count > OPTIMIZER_GROUPS_MAX) {
        return "there are 1 to 512 groups, and each tensor is of one";
    }
    if (ringside->job.optimizer == OPTIMIZER_AUTO) {
        return "say the optimizer by ringside_set_optimizer before";
    }
    for (uint32_t i = 0; i < count; i++) {
        struct optimizer_group group = group_of(ringside, &groups[i]);
        if (!is_rate(group.rate) || !optimizer_group_is_valid(&group, ringside->job.optimizer)) {
            return "the optimizer cannot have such settings, or a rate is not 0 to 1e6";
        }
    }
    for (uint32_t i = 0; i < ringside->tensor_count; i++) {
        if (group_of_tensor[i] >= count) {
            return "a tensor is of a group that is not there";
        }
    }
    return NULL;
}

enum ringside_status ringside_set_groups(struct ringside *ringside,
                                         const struct ringside_group *groups, uint32_t group_count,
                                         const uint32_t *group_of_tensor)
{
    enum ringside_status entered = handle_enter(ringside, HANDLE_DESCRIBED, "ringside_set_groups");
    if (entered != RINGSIDE_OK) {
        return entered;
    }
    if (ringside->makes_updates) {
        return handle_refuse(ringside, RINGSIDE_UNSUPPORTED,
                             "ringside_set_groups: the program makes the updates itself");
    }
    const char *fault = find_fault(ringside, groups, group_count, group_of_tensor);
    if (fault != NULL) {
        return handle_refuse(ringside, RINGSIDE_INVALID, "ringside_set_groups: %s", fault);
    }
    struct handle_groups *of = create(group_count);
    if (of == NULL || make_runs(ringside, group_of_tensor, of) != STATUS_OK) {
        handle_groups_destroy(of);
        return handle_refuse(ringside, RINGSIDE_NO_MEMORY, "ringside_set_groups: no memory");
    }
    if (of->start.run_count > OPTIMIZER_RUNS_MAX) {
        uint32_t runs = of->start.run_count;
        handle_groups_destroy(of);
        return handle_refuse(ringside, RINGSIDE_UNSUPPORTED,
                             "ringside_set_groups: neighbouring tensors are of different groups "
                             "%u times, and may be %d times",
                             runs, OPTIMIZER_RUNS_MAX);
    }
    double unit = unit_of(ringside, groups, group_count);
    for (uint32_t i = 0; i < group_count; i++) {
        of->rows[i] = group_of(ringside, &groups[i]);
        of->rows[i].rate /= unit;
    }
    handle_groups_destroy(ringside->groups);
    ringside->groups = of;
    return handle_exit(ringside, STATUS_OK);
}

enum status handle_groups_begin(struct ringside *ringside)
{
    const struct optimizer_groups *start = handle_groups_start(ringside);
    const struct span all = {0, ringside->layout.value_count};
    struct optimizer_group only = {1, ringside->job.settings};
    if (ringside->makes_updates) {
        return STATUS_OK;
    }
    if (ringside->groups == NULL) {
        ringside->groups = create(1);
        if (ringside->groups == NULL) {
            return STATUS_NO_MEMORY;
        }
        optimizer_fill_defaults(ringside->job.optimizer, &only.settings);
        ringside->groups->rows[0] = only;
    }
    return start != NULL && ringside->optimizer != NULL
               ? optimizer_set_groups(ringside->optimizer, start, &all, 1)
               : STATUS_OK;
}

void handle_groups_begin_step(struct ringside *ringside)
{
    struct handle_groups *of = ringside->groups;
    if (of == NULL || !of->has_said) {
        return;
    }
    memcpy(of->used, of->said, of->count * sizeof(*of->used));
    of->step.is_relative = of->is_said_relative;
    of->uses_said = true;
    if (handle_servers_update(ringside)) {
        exchange_say(ringside->exchange, &of->step);
    }
}

double handle_groups_end_step(struct ringside *ringside, double schedule_rate, double *ret_first)
{
    const struct handle_groups *of = ringside->groups;
    *ret_first = schedule_rate;
    if (of == NULL) {
        return schedule_rate;
    }
    double rate = of->uses_said && !of->step.is_relative ? 1 : schedule_rate;
    *ret_first = rate * (of->uses_said ? of->used : of->rows)[0].rate;
    if (of->uses_said && ringside->optimizer != NULL) {
        optimizer_change_groups(ringside->optimizer, of->used);
    }
    return rate;
}

/* Whether settings may be changed now. */
static enum ringside_status enter_change(struct ringside *ringside, const char *call)
{
    enum ringside_status entered =
        handle_enter(ringside, HANDLE_BETWEEN | HANDLE_FORWARD | HANDLE_ENDED, call);
    if (entered != RINGSIDE_OK || !ringside->makes_updates) {
        return entered;
    }
    return handle_refuse(ringside, RINGSIDE_UNSUPPORTED,
                         "%s: the program makes the updates itself, at any rate that it likes",
                         call);
}

enum ringside_status ringside_change_groups(struct ringside *ringside,
                                            const struct ringside_group *groups,
                                            uint32_t group_count)
{
    enum ringside_status entered = enter_change(ringside, "ringside_change_groups");
    if (entered != RINGSIDE_OK) {
        return entered;
    }
    struct handle_groups *of = ringside->groups;
    if (groups == NULL || group_count != of->count) {
        return handle_refuse(ringside, RINGSIDE_INVALID,
                             "ringside_change_groups: there are %u groups", of->count);
    }
    bool is_relative = groups[0].rate == -1, is_sound = true;
    for (uint32_t i = 0; i < group_count; i++) {
        struct optimizer_group group = group_of(ringside, &groups[i]);
        is_sound = is_sound && (is_relative ? group.rate == -1 : is_rate(group.rate));
        group.rate = is_relative ? of->rows[i].rate : group.rate;
        is_sound = is_sound && optimizer_group_is_valid(&group, ringside->job.optimizer);
    }
    if (!is_sound) {
        return handle_refuse(ringside, RINGSIDE_INVALID,
                             "ringside_change_groups: the optimizer cannot have such settings, or "
                             "a rate is not 0 to 1e6, or not -1 in all groups");
    }
    for (uint32_t i = 0; i < group_count; i++) {
        of->said[i] = group_of(ringside, &groups[i]);
        of->said[i].rate = is_relative ? of->rows[i].rate : groups[i].rate;
    }
    of->has_said = true;
    of->is_said_relative = is_relative;
    return handle_exit(ringside, STATUS_OK);
}

enum ringside_status ringside_set_rate(struct ringside *ringside, double rate)
{
    enum ringside_status entered = enter_change(ringside, "ringside_set_rate");
    if (entered != RINGSIDE_OK) {
        return entered;
    }
    if (!is_rate(rate)) {
        return handle_refuse(ringside, RINGSIDE_INVALID, "ringside_set_rate: a rate is 0 to 1e6");
    }
    struct handle_groups *of = ringside->groups;
    if (!of->has_said) {
        memcpy(of->said, of->rows, of->count * sizeof(*of->said));
    }
    for (uint32_t i = 0; i < of->count; i++) {
        of->said[i].rate = rate;
    }
    of->has_said = true;
    of->is_said_relative = false;
    return handle_exit(ringside, STATUS_OK);
}
