/* Packs groups of parameters, and checks those that a peer says. */
#include "common/channel/wire_packing.h"

#include <assert.h>
#include <math.h>

#define GROUP_SETTINGS(X) \
    X(momentum)           \
    X(beta1)              \
    X(beta2)              \
    X(decay)              \
    X(epsilon)            \
    X(weight_decay)

#define PACK_SETTING(field) to->field = from->settings.field;
#define TAKE_SETTING(field) to->settings.field = from->field;
#define CHECK_FINITE(field) is_sound = is_sound && isfinite(from->field);

static void pack_group(const struct optimizer_group *from, Wire__Group *to)
{
    wire__group__init(to);
    to->rate = from->rate;
    GROUP_SETTINGS(PACK_SETTING)
}

void wire_pack_groups(const struct optimizer_groups *from, struct wire_packed *packed)
{
    Wire__Groups *to = &packed->groups;
    union {
        const void *in;
        void *out;
    } ends = {.in = from->run_ends}, members = {.in = from->run_groups};
    assert(from->group_count <= OPTIMIZER_GROUPS_MAX && from->run_count <= OPTIMIZER_RUNS_MAX);
    for (uint32_t i = 0; i < from->group_count; i++) {
        pack_group(&from->groups[i], &packed->group_rows[i]);
        packed->group_list[i] = &packed->group_rows[i];
    }
    to->n_groups = from->group_count;
    to->groups = packed->group_list;
    to->is_relative = from->is_relative;
    to->n_run_ends = to->n_run_groups = from->run_count;
    to->run_ends = ends.out;
    to->run_groups = members.out;
}

static bool unpack_group(const Wire__Group *from, struct optimizer_group *to)
{
    bool is_sound = isfinite(from->rate);
    to->rate = from->rate;
    GROUP_SETTINGS(TAKE_SETTING)
    GROUP_SETTINGS(CHECK_FINITE)
    return is_sound;
}

/* Whether runs ascend and are of groups that there are. */
static bool runs_are_sound(const Wire__Groups *from)
{
    uint64_t end = 0;
    if (from->n_run_ends != from->n_run_groups || from->n_run_ends > OPTIMIZER_RUNS_MAX) {
        return false;
    }
    for (size_t i = 0; i < from->n_run_ends; i++) {
        if (from->run_ends[i] <= end || from->run_groups[i] >= from->n_groups) {
            return false;
        }
        end = from->run_ends[i];
    }
    return end <= LAYOUT_VALUES_MAX;
}

bool wire_unpack_groups(const Wire__Groups *from, struct optimizer_groups *to)
{
    union {
        const struct optimizer_group *in;
        struct optimizer_group *out;
    } rows = {.in = to->groups};
    if (from->n_groups == 0 || from->n_groups > OPTIMIZER_GROUPS_MAX || !runs_are_sound(from)) {
        return false;
    }
    for (size_t i = 0; i < from->n_groups; i++) {
        if (!unpack_group(from->groups[i], &rows.out[i])) {
            return false;
        }
    }
    *to = (struct optimizer_groups){
        .groups = rows.in,
        .group_count = (uint32_t)from->n_groups,
        .run_count = (uint32_t)from->n_run_ends,
        .run_ends = from->run_ends,
        .run_groups = from->run_groups,
        .is_relative = from->is_relative,
    };
    return true;
}
