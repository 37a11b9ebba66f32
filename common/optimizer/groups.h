/* Groups of parameters: each has its own rate and settings; the optimizer is one for all. Pure.
 *
 * A run is a span of the flat vector whose values are of one group. Runs lie one behind the other
 * and cover the vector. What a peer says of groups is checked before anybody works with it:
 * numbers, counts and order by the wire, the rest by optimizer_groups_are_valid. */
#ifndef COMMON_OPTIMIZER_GROUPS_H
#define COMMON_OPTIMIZER_GROUPS_H

#include "common/base/status.h"
#include "common/optimizer/optimizer.h"

#include <stdbool.h>
#include <stdint.h>

#define OPTIMIZER_GROUPS_MAX 512
#define OPTIMIZER_RUNS_MAX   4096
#define OPTIMIZER_RATE_MAX   1e6

struct optimizer_run {
    uint64_t end; // where the next one begins
    uint32_t group;
};

/* Borrowed from whoever made it. */
struct optimizer_groups {
    const struct optimizer_group *groups; // (group_count)
    uint32_t group_count;                 // 1 .. OPTIMIZER_GROUPS_MAX
    uint32_t run_count;                   // 0: not said here, or one group; to OPTIMIZER_RUNS_MAX
    const uint64_t *run_ends;             // (run_count) of the flat vector
    const uint32_t *run_groups;           // (run_count)
    bool is_relative;                     // rates are in units of the job's
};

/* Whether an optimizer can have such settings, and such a rate. */
bool optimizer_group_is_valid(const struct optimizer_group *group, enum optimizer_kind kind);

/* Whether the optimizer can have all of them, and the runs, where there are several groups or
 * any runs, cover a vector of value_count. */
bool optimizer_groups_are_valid(const struct optimizer_groups *groups, enum optimizer_kind kind,
                                uint64_t value_count);

/* The runs of spans of the flat vector as of one vector, in which these lie one behind the other.
 * No runs if there are none. *ret_runs is the caller's to free, and may be NULL.
 * STATUS_NO_MEMORY. */
enum status optimizer_groups_cut(const struct optimizer_groups *groups, const struct span *spans,
                                 uint32_t span_count, struct optimizer_run **ret_runs,
                                 uint32_t *ret_count);

/* A copy, in one piece of memory, for free(). STATUS_NO_MEMORY. */
enum status optimizer_groups_copy(const struct optimizer_groups *groups,
                                  struct optimizer_groups **ret_groups);

/* The first setting, of those that the optimizer uses, in which two lists of groups differ. */
struct optimizer_difference {
    uint32_t group;
    const char *name; // as options have it, "lr" of the rate; "groups": their number is another
    double value, other;
};

/* One of two lists that are compared: its groups, and the unit of their rates. */
struct optimizer_side {
    const struct optimizer_groups *groups;
    double unit;
};

/* Compares rates and settings. Numbers that are equal but for `tolerance`, as a share, are the
 * same. */
bool optimizer_groups_differ(struct optimizer_side side, struct optimizer_side other,
                             enum optimizer_kind kind, double tolerance,
                             struct optimizer_difference *ret_difference);

/* The settings of a group that an optimizer uses, by the names of options. How many; the rate
 * comes first. */
#define OPTIMIZER_SETTINGS_MAX 7
struct optimizer_setting {
    const char *name;
    double value;
};
uint32_t optimizer_group_settings(const struct optimizer_group *group, enum optimizer_kind kind,
                                  struct optimizer_setting ret_list[OPTIMIZER_SETTINGS_MAX]);

#endif
