/* Compares the rate of each setting of a design with that of its smallest number of workers. */
#include "deploy/report/scaling.h"

#include <math.h>
#include <string.h>

static void add_point(struct scaling_design *design, unsigned workers, size_t input)
{
    size_t at = design->count;
    for (size_t i = 0; i < design->count; i++) {
        if (design->points[i].workers == workers) {
            return; // two settings with the same words: the first one counts
        }
    }
    if (design->count == SCALING_POINTS_MAX) {
        return;
    }
    for (; at > 0 && design->points[at - 1].workers > workers; at--) {
        design->points[at] = design->points[at - 1];
    }
    design->points[at] = (struct scaling_point){.workers = workers, .input = input};
    design->count++;
}

/* (a / b) * factor, to first order in the errors, which are those of different runs. */
static struct statistics ratio_of(const struct statistics *a, const struct statistics *b,
                                  double factor)
{
    struct statistics ratio = {.count = a->count < b->count ? a->count : b->count};
    double x = a->half_width / a->mean, y = b->half_width / b->mean;
    ratio.mean = factor * a->mean / b->mean;
    ratio.half_width = a == b ? 0 : ratio.mean * sqrt(x * x + y * y);
    return ratio;
}

static void compare_with_base(struct scaling_design *design, const struct scaling_input *inputs)
{
    const struct scaling_point *base = &design->points[0];
    design->base_workers = base->workers;
    design->is_base_local = inputs[base->input].is_local;
    const struct statistics *base_rate = &inputs[base->input].rate;
    for (size_t i = 0; i < design->count; i++) {
        struct scaling_point *point = &design->points[i];
        const struct statistics *rate = &inputs[point->input].rate;
        point->speed_up = ratio_of(rate, base_rate, base->workers);
        point->efficiency = ratio_of(rate, base_rate, (double)base->workers / point->workers);
    }
}

static bool is_usable(const struct scaling_input *input)
{
    return input->rate.count > 0 && input->rate.mean > 0 && input->workers > 0;
}

static bool is_known(const struct scaling_design *designs, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(designs[i].name, name) == 0) {
            return true;
        }
    }
    return false;
}

/* All settings of a design; without one that has one worker, the local job stands for it. */
static void gather(const struct scaling_input *inputs, size_t count, struct scaling_design *design)
{
    size_t local = count, locals = 0;
    for (size_t i = 0; i < count; i++) {
        if (!is_usable(&inputs[i])) {
            continue;
        }
        if (inputs[i].is_local) {
            local = i;
            locals++;
        } else if (strcmp(inputs[i].design, design->name) == 0) {
            add_point(design, inputs[i].workers, i);
        }
    }
    // Of several local jobs, which differ in something else, none is the right one.
    if (locals == 1 && design->count > 0 && design->points[0].workers > 1) {
        add_point(design, 1, local);
    }
}

size_t scaling_of(const struct scaling_input *inputs, size_t count,
                  struct scaling_design ret_designs[SCALING_DESIGNS_MAX])
{
    size_t designs = 0;
    for (size_t i = 0; i < count && designs < SCALING_DESIGNS_MAX; i++) {
        struct scaling_design *design = &ret_designs[designs];
        if (inputs[i].is_local || is_known(ret_designs, designs, inputs[i].design)) {
            continue;
        }
        *design = (struct scaling_design){.name = inputs[i].design};
        gather(inputs, count, design);
        if (design->count > 1) {
            compare_with_base(design, inputs);
            designs++;
        }
    }
    return designs;
}
