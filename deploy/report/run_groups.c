/* Gathers runs, and computes their means. */
#include "deploy/report/run_groups.h"

#include "common/base/printable.h"
#include "common/job/mode.h"
#include "deploy/report/run_labels.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// The rank of a mode that is not known.
#define MODES ((size_t)MODE_PS_ASYNC + 1)

/* Images per second of all epochs but the first, where there are several. */
static double steady_rate_of(const struct run_folder *run)
{
    const json_t *epochs = json_object_get(run->summary, "epochs"), *epoch;
    double images = 0, seconds = 0;
    size_t i;
    json_array_foreach(epochs, i, epoch)
    {
        double took = json_number_value(json_object_get(epoch, "seconds"));
        if (i > 0 && took > 0) {
            images += took * json_number_value(json_object_get(epoch, "images_per_second"));
            seconds += took;
        }
    }
    return images > 0 ? images / seconds : run_folder_number(run, "images_per_second");
}

static struct statistics gather(const struct run_group *group, const char *key, double factor)
{
    double values[RUN_GROUP_RUNS_MAX];
    char text[64];
    size_t count = 0;
    for (size_t i = 0; i < group->count; i++) {
        run_folder_value(group->runs[i], key, text, sizeof(text));
        if (run_folder_is_completed(group->runs[i]) && text[0] != '\0') {
            values[count++] = factor * run_folder_number(group->runs[i], key);
        }
    }
    return statistics_of(values, count);
}

static void count_ending(const struct run_folder *run, struct run_group *group)
{
    unsigned long long step;
    if (run_folder_is_completed(run)) {
        unsigned long long images, all;
        group->part_tested += run_folder_tests_part(run, "test_accuracy", &images, &all);
        group->completed++;
    } else if (run_folder_has_diverged(run, &step)) {
        group->diverged++;
    } else {
        group->failed++;
    }
}

static void take_means(struct run_group *group)
{
    double rates[RUN_GROUP_RUNS_MAX], waits[RUN_GROUP_RUNS_MAX], loaders[RUN_GROUP_RUNS_MAX];
    size_t count = 0, wait_count = 0, loader_count = 0;
    for (size_t i = 0; i < group->count; i++) {
        count_ending(group->runs[i], group);
        double rate = steady_rate_of(group->runs[i]);
        if (run_folder_is_completed(group->runs[i]) &&
            run_folder_input_wait(group->runs[i], &waits[wait_count])) {
            wait_count++;
        }
        unsigned fewest, most;
        if (run_folder_is_completed(group->runs[i]) &&
            run_folder_loaders(group->runs[i], &fewest, &most)) {
            loaders[loader_count++] = most;
        }
        if (run_folder_is_completed(group->runs[i]) && rate > 0) {
            rates[count++] = rate;
        }
    }
    group->steady_rate = statistics_of(rates, count);
    group->input_wait = statistics_of(waits, wait_count);
    group->loaders = statistics_of(loaders, loader_count);
    group->rate = gather(group, "images_per_second", 1);
    group->accuracy = gather(group, "test_accuracy", 100);
    group->best = gather(group, "best_accuracy", 100);
    group->compute_ms = gather(group, "ms_per_step.compute", 1);
    group->exchange_ms = gather(group, "ms_per_step.exchange_wait", 1);
    group->input_ms = gather(group, "ms_per_step.input_wait", 1);
    group->staleness = gather(group, "staleness.mean", 1);
    group->predicted = gather(group, "prediction.images_per_second", 1);
    group->prediction_error = gather(group, "prediction.error_percent", 1);
}

static void read_identity(const struct run_folder *run, struct run_group *group)
{
    struct mode mode;
    double workers = run_folder_number(run, "workers");
    run_folder_value(run, "mode", group->mode, sizeof(group->mode));
    run_words_cut(group->mode, sizeof(group->mode));
    printable_make_utf8(group->mode);
    group->workers = workers >= 1 && workers < 1e6 ? (unsigned)workers : 0;
    group->mode_rank = mode_parse(group->mode, &mode) == STATUS_OK ? (size_t)mode.kind : MODES;
}

/* By mode, in the order in which they were given. */
static void sort_by_mode(struct run_groups *groups)
{
    for (size_t i = 1; i < groups->count; i++) {
        const struct run_group moved = groups->list[i];
        size_t at = i;
        for (; at > 0 && groups->list[at - 1].mode_rank > moved.mode_rank; at--) {
            groups->list[at] = groups->list[at - 1];
        }
        groups->list[at] = moved;
    }
}

static enum status choose_strokes(struct run_groups *groups)
{
    size_t *ranks = calloc(groups->count + 1, sizeof(*ranks));
    struct run_stroke *strokes = calloc(groups->count + 1, sizeof(*strokes));
    bool is_done = ranks != NULL && strokes != NULL;
    for (size_t i = 0; is_done && i < groups->count; i++) {
        ranks[i] = groups->list[i].mode_rank;
    }
    groups->has_mode_colours = is_done && run_strokes_choose(ranks, groups->count, strokes);
    for (size_t i = 0; is_done && i < groups->count; i++) {
        groups->list[i].stroke = strokes[i];
    }
    free(ranks);
    free(strokes);
    return is_done ? STATUS_OK : STATUS_NO_MEMORY;
}

static enum status make(struct run_groups *groups, size_t count)
{
    *groups = (struct run_groups){.list = calloc(count + 1, sizeof(*groups->list))};
    return groups->list != NULL ? STATUS_OK : STATUS_NO_MEMORY;
}

static bool has_seed(const struct run_group *group, double seed)
{
    for (size_t i = 0; i < group->count; i++) {
        if (run_folder_number(group->runs[i], "seed") == seed) { // whole numbers
            return true;
        }
    }
    return false;
}

/* Adds a run to the group with its key that does not have its seed yet. */
static void add_run(struct run_groups *groups, char **keys, const struct run_folder *run, char *key)
{
    double seed = run_folder_number(run, "seed");
    size_t at = 0;
    while (at < groups->count &&
           (strcmp(keys[at], key) != 0 || groups->list[at].count == RUN_GROUP_RUNS_MAX ||
            has_seed(&groups->list[at], seed))) {
        at++;
    }
    struct run_group *group = &groups->list[at];
    if (at == groups->count) {
        read_identity(run, group);
        keys[at] = key;
        groups->count++;
    } else {
        free(key);
    }
    group->runs[group->count++] = run;
    group->planned++;
    groups->run_count++;
}

static enum status finish_groups(struct run_groups *groups, struct run_groups *ret_groups)
{
    enum status status = choose_strokes(groups);
    if (status != STATUS_OK) {
        run_groups_finish(groups);
        return status;
    }
    *ret_groups = *groups;
    return STATUS_OK;
}

enum status run_groups_of(const struct run_folder *runs, size_t count,
                          struct run_groups *ret_groups)
{
    struct run_groups groups;
    char **keys = calloc(count + 1, sizeof(char *));
    enum status status = make(&groups, count);
    for (size_t i = 0; i < count && status == STATUS_OK; i++) {
        char *key = keys != NULL ? run_labels_key(&runs[i]) : NULL;
        if (key == NULL) {
            status = STATUS_NO_MEMORY;
        } else {
            add_run(&groups, keys, &runs[i], key);
        }
    }
    for (size_t i = 0; keys != NULL && i < count; i++) {
        free(keys[i]);
    }
    free(keys);
    if (status != STATUS_OK) {
        run_groups_finish(&groups);
        return status;
    }
    sort_by_mode(&groups);
    status = run_labels_fill(groups.list, groups.count);
    if (status != STATUS_OK) {
        run_groups_finish(&groups);
        return status;
    }
    for (size_t i = 0; i < groups.count; i++) {
        take_means(&groups.list[i]);
    }
    return finish_groups(&groups, ret_groups);
}

enum status run_groups_of_sweep(const struct sweep_results *results, struct run_groups *ret_groups)
{
    const struct sweep_plan *plan = results->plan;
    struct run_groups groups;
    enum status status = make(&groups, plan->group_count);
    if (status != STATUS_OK) {
        return status;
    }
    groups.count = plan->group_count;
    for (size_t i = 0; i < plan->count; i++) {
        struct run_group *group = &groups.list[plan->runs[i].group];
        const struct run_folder *run = results->summaries[i];
        if (group->planned++ == 0) {
            const struct job *job = &plan->runs[i].job;
            run_words_of_label(plan->runs[i].label, NULL, group->label);
            run_words_of_label(plan->runs[i].label, "workers", group->design);
            snprintf(group->mode, sizeof(group->mode), "%s", mode_text(job->mode).text);
            group->workers = job->workers;
            group->mode_rank = (size_t)job->mode.kind;
        }
        if (run != NULL && group->count < RUN_GROUP_RUNS_MAX) {
            group->runs[group->count++] = run;
            groups.run_count++;
        }
    }
    sort_by_mode(&groups);
    for (size_t i = 0; i < groups.count; i++) {
        struct run_group *group = &groups.list[i];
        if (group->label[0] == '\0') {
            snprintf(group->label, sizeof(group->label), "%s", group->mode);
        }
        if (group->design[0] == '\0') {
            snprintf(group->design, sizeof(group->design), "%s", group->mode);
        }
        take_means(group);
    }
    return finish_groups(&groups, ret_groups);
}

void run_groups_finish(struct run_groups *groups)
{
    free(groups->list);
    *groups = (struct run_groups){0};
}

struct run_folder *run_groups_copy_runs(const struct run_groups *groups, size_t *ret_count)
{
    struct run_folder *runs = calloc(groups->run_count + 1, sizeof(*runs));
    size_t count = 0;
    for (size_t i = 0; runs != NULL && i < groups->count; i++) {
        for (size_t k = 0; k < groups->list[i].count && count < groups->run_count; k++) {
            runs[count] = *groups->list[i].runs[k];
            snprintf(runs[count++].label, sizeof(runs[0].label), "%.127s", groups->list[i].label);
        }
    }
    *ret_count = count;
    return runs;
}
