/* The figure of faults: how fast the runs were over time. */
#include "deploy/page/figure_parts.h"
#include "deploy/page/figures.h"
#include "deploy/report/fault_costs.h"
#include "deploy/report/fault_lines.h"

#include <stdbool.h>

#define SERIES_MAX 24 // with more, none is seen

static bool has_faults(const struct run_groups *groups)
{
    struct fault_cost cost;
    for (size_t i = 0; i < groups->count; i++) {
        if (groups->list[i].count > 0 && fault_cost_find(groups->list[i].runs[0], 1, 0, &cost)) {
            return true;
        }
    }
    return false;
}

static void add_group(json_t *figure, const struct run_group *group)
{
    struct fault_lines lines;
    if (group->count == 0 || !fault_lines_read(group->runs[0], &lines)) {
        return;
    }
    json_t *series = figure_add_series(figure, group->label, group->stroke);
    for (size_t k = 0; k < lines.count; k++) {
        double rate =
            run_folder_number(group->runs[0], "global_batch") * fault_lines_rate(&lines, k);
        json_array_append_new(json_object_get(series, "points"),
                              figure_point(lines.list[k].seconds, rate));
    }
    fault_lines_finish(&lines);
}

void figure_faults(const struct run_groups *groups, json_t **ret_figure,
                   char ret_sentence[FIGURE_TEXT_BYTES])
{
    ret_sentence[0] = '\0';
    *ret_figure = NULL;
    if (!has_faults(groups)) {
        return;
    }
    json_t *figure = figure_lines(
        "faults", "Throughput over time", "seconds since training began", "images per second",
        "Of the first run of each setting. After a loss, the steps are made again that "
        "no copy has.");
    for (size_t i = 0; i < groups->count && i < SERIES_MAX; i++) {
        add_group(figure, &groups->list[i]);
    }
    if (figure_longest(figure) > 1) {
        figure_set_limits(figure, 1e12);
        *ret_figure = figure;
    } else {
        json_decref(figure);
    }
}
