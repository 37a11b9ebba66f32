/* Takes the designs of a report's groups, and gives each a stroke. */
#include "deploy/report/group_scaling.h"

#include <stdlib.h>
#include <string.h>

static size_t colour_of(const struct run_groups *groups, const struct scaling_design *design)
{
    return groups->list[design->points[design->count - 1].input].stroke.colour;
}

/* Designs have the colours of their modes; those of one mode differ in their dashes. */
static struct run_stroke choose_stroke(const struct run_groups *groups,
                                       const struct scaling_design *designs, size_t index)
{
    if (!groups->has_mode_colours) {
        return (struct run_stroke){index % RUN_COLOURS, index / RUN_COLOURS % RUN_DASHES};
    }
    struct run_stroke stroke = {colour_of(groups, &designs[index]), 0};
    for (size_t i = 0; i < index; i++) {
        stroke.dash += colour_of(groups, &designs[i]) == stroke.colour;
    }
    stroke.dash %= RUN_DASHES;
    return stroke;
}

enum status group_scaling_of(const struct run_groups *groups, struct group_scaling *ret_scaling)
{
    struct scaling_input *inputs = calloc(groups->count + 1, sizeof(*inputs));
    struct group_scaling scaling = {
        .designs = calloc(SCALING_DESIGNS_MAX, sizeof(*scaling.designs)),
        .strokes = calloc(SCALING_DESIGNS_MAX, sizeof(*scaling.strokes)),
        .workers_max = 1};
    if (inputs == NULL || scaling.designs == NULL || scaling.strokes == NULL) {
        free(inputs);
        group_scaling_finish(&scaling);
        return STATUS_NO_MEMORY;
    }
    for (size_t i = 0; i < groups->count; i++) {
        const struct run_group *group = &groups->list[i];
        inputs[i] = (struct scaling_input){.design = group->design,
                                           .is_local = strcmp(group->mode, "local") == 0,
                                           .workers = group->workers,
                                           .rate = group->steady_rate};
    }
    scaling.count = scaling_of(inputs, groups->count, scaling.designs);
    for (size_t i = 0; i < scaling.count; i++) {
        const struct scaling_design *design = &scaling.designs[i];
        unsigned most = design->points[design->count - 1].workers;
        scaling.strokes[i] = choose_stroke(groups, scaling.designs, i);
        scaling.workers_max = most > scaling.workers_max ? most : scaling.workers_max;
    }
    free(inputs);
    *ret_scaling = scaling;
    return STATUS_OK;
}

void group_scaling_finish(struct group_scaling *scaling)
{
    free(scaling->designs);
    free(scaling->strokes);
    *scaling = (struct group_scaling){.workers_max = 1};
}
