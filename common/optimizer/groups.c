/* Checks, cuts, copies and compares groups of parameters. */
#include "common/optimizer/groups.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

bool optimizer_group_is_valid(const struct optimizer_group *group, enum optimizer_kind kind)
{
    return group->rate >= 0 && isfinite((float)group->rate) &&
           optimizer_settings_are_valid(kind, &group->settings);
}

bool optimizer_groups_are_valid(const struct optimizer_groups *groups, enum optimizer_kind kind,
                                uint64_t value_count)
{
    for (uint32_t i = 0; i < groups->group_count; i++) {
        if (!optimizer_group_is_valid(&groups->groups[i], kind)) {
            return false;
        }
    }
    return groups->run_count > 0 ? groups->run_ends[groups->run_count - 1] == value_count
                                 : groups->group_count == 1;
}

/* Adds a run, or makes the last one longer. */
static void add_run(struct optimizer_run *runs, uint32_t *count, uint64_t length, uint32_t group)
{
    if (*count > 0 && runs[*count - 1].group == group) {
        runs[*count - 1].end += length;
        return;
    }
    uint64_t begin = *count > 0 ? runs[*count - 1].end : 0;
    runs[(*count)++] = (struct optimizer_run){begin + length, group};
}

static void cut_span(const struct optimizer_groups *groups, struct span span,
                     struct optimizer_run *runs, uint32_t *count)
{
    uint64_t begin = 0;
    for (uint32_t i = 0; i < groups->run_count; i++) {
        struct span run = {begin, groups->run_ends[i] - begin};
        uint64_t length = span_intersect(span, run).count;
        if (length > 0) {
            add_run(runs, count, length, groups->run_groups[i]);
        }
        begin = groups->run_ends[i];
    }
}

enum status optimizer_groups_cut(const struct optimizer_groups *groups, const struct span *spans,
                                 uint32_t span_count, struct optimizer_run **ret_runs,
                                 uint32_t *ret_count)
{
    *ret_runs = NULL;
    *ret_count = 0;
    if (groups->run_count == 0) {
        return STATUS_OK;
    }
    // A span that is of several runs has one more than borders: each border is in one span.
    struct optimizer_run *runs = calloc((size_t)groups->run_count + span_count, sizeof(*runs));
    if (runs == NULL) {
        return STATUS_NO_MEMORY;
    }
    for (uint32_t i = 0; i < span_count; i++) {
        cut_span(groups, spans[i], runs, ret_count);
    }
    *ret_runs = runs;
    return STATUS_OK;
}

enum status optimizer_groups_copy(const struct optimizer_groups *groups,
                                  struct optimizer_groups **ret_groups)
{
    const size_t rows_bytes = groups->group_count * sizeof(struct optimizer_group);
    const size_t ends_bytes = groups->run_count * sizeof(uint64_t);
    const size_t members_bytes = groups->run_count * sizeof(uint32_t);
    struct optimizer_groups *copy = malloc(sizeof(*copy) + rows_bytes + ends_bytes + members_bytes);
    if (copy == NULL) {
        return STATUS_NO_MEMORY;
    }
    struct optimizer_group *rows = (struct optimizer_group *)(copy + 1);
    uint64_t *ends = (uint64_t *)(rows + groups->group_count);
    uint32_t *members = (uint32_t *)(ends + groups->run_count);
    memcpy(rows, groups->groups, rows_bytes);
    if (groups->run_count > 0) {
        memcpy(ends, groups->run_ends, ends_bytes);
        memcpy(members, groups->run_groups, members_bytes);
    }
    *copy = *groups;
    copy->groups = rows;
    copy->run_ends = ends;
    copy->run_groups = members;
    *ret_groups = copy;
    return STATUS_OK;
}

uint32_t optimizer_group_settings(const struct optimizer_group *group, enum optimizer_kind kind,
                                  struct optimizer_setting ret_list[OPTIMIZER_SETTINGS_MAX])
{
    const struct optimizer_settings *settings = &group->settings;
    unsigned uses = optimizer_uses_of(kind);
    const struct {
        struct optimizer_setting setting;
        bool is_used;
    } all[OPTIMIZER_SETTINGS_MAX] = {
        {{"lr", group->rate}, true},
        {{"momentum", settings->momentum}, uses & OPTIMIZER_USES_MOMENTUM},
        {{"beta1", settings->beta1}, uses & OPTIMIZER_USES_BETAS},
        {{"beta2", settings->beta2}, uses & OPTIMIZER_USES_BETAS},
        {{"decay", settings->decay}, uses & OPTIMIZER_USES_DECAY},
        {{"epsilon", settings->epsilon}, uses & OPTIMIZER_USES_EPSILON},
        {{"weight-decay", settings->weight_decay}, true},
    };
    uint32_t count = 0;
    for (uint32_t i = 0; i < OPTIMIZER_SETTINGS_MAX; i++) {
        if (all[i].is_used) {
            ret_list[count++] = all[i].setting;
        }
    }
    return count;
}

static bool differs(double value, double other, double tolerance)
{
    return fabs(value - other) > tolerance * fmax(fabs(value), fabs(other));
}

/* The settings of a group whose rate is in a unit of its own. */
static uint32_t list_settings(const struct optimizer_group *group, double unit,
                              enum optimizer_kind kind,
                              struct optimizer_setting ret_list[OPTIMIZER_SETTINGS_MAX])
{
    struct optimizer_group whole = *group;
    whole.rate *= unit;
    return optimizer_group_settings(&whole, kind, ret_list);
}

bool optimizer_groups_differ(struct optimizer_side side, struct optimizer_side other,
                             enum optimizer_kind kind, double tolerance,
                             struct optimizer_difference *ret_difference)
{
    struct optimizer_setting own[OPTIMIZER_SETTINGS_MAX], others[OPTIMIZER_SETTINGS_MAX];
    uint32_t group_count = side.groups->group_count, other_count = other.groups->group_count;
    if (group_count != other_count) {
        *ret_difference = (struct optimizer_difference){
            .name = "groups", .value = group_count, .other = other_count};
        return true;
    }
    for (uint32_t g = 0; g < group_count; g++) {
        uint32_t count = list_settings(&side.groups->groups[g], side.unit, kind, own);
        list_settings(&other.groups->groups[g], other.unit, kind, others);
        for (uint32_t i = 0; i < count; i++) {
            if (differs(own[i].value, others[i].value, tolerance)) {
                *ret_difference =
                    (struct optimizer_difference){g, own[i].name, own[i].value, others[i].value};
                return true;
            }
        }
    }
    return false;
}
