/* Gathers the runs of each setting, and computes their means. */
#include "deploy/report/sweep_settings.h"

#include "deploy/report/sweep_curves.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct sweep_measure_row sweep_measures[MEASURE_COUNT] = {
    [MEASURE_ACCURACY] = {"test accuracy %", "test_accuracy", 100, 2},
    [MEASURE_TEST_LOSS] = {"test loss", "test_loss", 1, 4},
    [MEASURE_TRAIN_LOSS] = {"train loss", "train_loss", 1, 4},
    [MEASURE_STALENESS] = {"mean staleness", "staleness.mean", 1, 2},
    [MEASURE_LATE] = {"late gradients", "late_gradients", 1, 0},
    [MEASURE_TARGET_STEPS] = {"steps to target", "target.steps", 1, 0},
    [MEASURE_TARGET_SECONDS] = {"seconds to target", "target.seconds", 1, 2},
    [MEASURE_RATE] = {"images/s", "images_per_second", 1, 0},
    [MEASURE_SECONDS] = {"seconds", "seconds", 1, 1},
};

/* ==========================================================================================
 * Series
 * ========================================================================================== */

static bool makes_staleness(const char *name, size_t size)
{
    static const char *const names[] = {"mode", "order", "workers", "servers",
                                        "gradients-per-update"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (strlen(names[i]) == size && strncmp(names[i], name, size) == 0) {
            return true;
        }
    }
    return false;
}

static void append(char text[256], const char *word, size_t size)
{
    size_t used = strlen(text);
    snprintf(text + used, 256 - used, "%s%.*s", used > 0 ? " " : "", (int)size, word);
}

/* "mode=ps-async lr=0.1" -> axis "mode=ps-async", series "lr=0.1" */
static void split_label(struct sweep_setting *setting)
{
    for (const char *at = setting->label; *at != '\0';) {
        size_t size = strcspn(at, " ");
        bool is_axis = makes_staleness(at, strcspn(at, "= "));
        append(is_axis ? setting->axis : setting->series, at, size);
        at += size + (at[size] == ' ');
    }
}

/* By series in the order of their first setting, then by staleness, then as planned. */
static int compare_settings(const void *a, const void *b)
{
    const struct sweep_setting *left = a, *right = b;
    double x = left->measures[MEASURE_STALENESS].mean, y = right->measures[MEASURE_STALENESS].mean;
    if (left->series_index != right->series_index) {
        return left->series_index < right->series_index ? -1 : 1;
    }
    return x < y ? -1 : x > y ? 1 : left->place < right->place ? -1 : left->place > right->place;
}

/* Modes have one order in all reports; settings of a mode stay as they are. */
static void order_rows(struct sweep_settings *settings)
{
    for (size_t i = 0; i < settings->count; i++) {
        size_t at = i, rank = settings->list[i].mode_rank;
        for (; at > 0 && settings->list[settings->rows[at - 1]].mode_rank > rank; at--) {
            settings->rows[at] = settings->rows[at - 1];
        }
        settings->rows[at] = i;
    }
}

/* As the settings of a page have them: by mode, then as planned. */
static enum status choose_strokes(struct sweep_settings *settings)
{
    size_t *ranks = calloc(settings->count, sizeof(*ranks));
    size_t *order = calloc(settings->count, sizeof(*order));
    struct run_stroke *strokes = calloc(settings->count, sizeof(*strokes));
    bool is_done = ranks != NULL && order != NULL && strokes != NULL;
    for (size_t i = 0; is_done && i < settings->count; i++) {
        const struct sweep_setting *setting = &settings->list[i];
        size_t at = i;
        for (; at > 0; at--) {
            const struct sweep_setting *before = &settings->list[order[at - 1]];
            if (before->mode_rank < setting->mode_rank ||
                (before->mode_rank == setting->mode_rank && before->place < setting->place)) {
                break;
            }
            order[at] = order[at - 1];
        }
        order[at] = i;
    }
    for (size_t i = 0; is_done && i < settings->count; i++) {
        ranks[i] = settings->list[order[i]].mode_rank;
    }
    if (is_done) {
        run_strokes_choose(ranks, settings->count, strokes);
    }
    for (size_t i = 0; is_done && i < settings->count; i++) {
        settings->list[order[i]].stroke = strokes[i];
    }
    free(ranks);
    free(order);
    free(strokes);
    return is_done ? STATUS_OK : STATUS_NO_MEMORY;
}

struct statistics sweep_ratio(const struct statistics *a, const struct statistics *b)
{
    struct statistics ratio = {.count = a->count < b->count ? a->count : b->count};
    if (ratio.count == 0 || b->mean <= 0 || a->mean <= 0) {
        return (struct statistics){.count = 0};
    }
    double x = a->half_width / a->mean, y = b->half_width / b->mean;
    ratio.mean = a->mean / b->mean;
    ratio.half_width = a == b ? 0 : ratio.mean * sqrt(x * x + y * y);
    return ratio;
}

/* Numbers series in the order of their first settings. */
static void number_series(struct sweep_settings *settings)
{
    for (size_t i = 0; i < settings->count; i++) {
        struct sweep_setting *setting = &settings->list[i];
        setting->series_index = settings->series_count;
        for (size_t k = 0; k < i; k++) {
            if (strcmp(settings->list[k].series, setting->series) == 0) {
                setting->series_index = settings->list[k].series_index;
                break;
            }
        }
        settings->series_count += setting->series_index == settings->series_count;
    }
}

static void compare_with_first(struct sweep_settings *settings)
{
    const struct sweep_setting *first = NULL;
    for (size_t i = 0; i < settings->count; i++) {
        struct sweep_setting *setting = &settings->list[i];
        if (first == NULL || first->series_index != setting->series_index) {
            first = setting;
        }
        setting->relative_steps = sweep_ratio(&setting->measures[MEASURE_TARGET_STEPS],
                                              &first->measures[MEASURE_TARGET_STEPS]);
        setting->relative_seconds = sweep_ratio(&setting->measures[MEASURE_TARGET_SECONDS],
                                                &first->measures[MEASURE_TARGET_SECONDS]);
    }
}

/* ==========================================================================================
 * Runs
 * ========================================================================================== */

static void add_shares(const struct run_folder *run, struct sweep_setting *setting)
{
    const json_t *histogram =
        json_object_get(json_object_get(run->summary, "staleness"), "histogram");
    const json_t *count;
    size_t i;
    double total = 0;
    json_array_foreach(histogram, i, count)
    {
        total += json_number_value(count);
    }
    double oldest = run_folder_number(run, "staleness.max");
    size_t bins = json_array_size(histogram);
    if (bins > 0 && oldest >= (double)bins) {
        setting->capped_bin = bins - 1;
    }
    json_array_foreach(histogram, i, count)
    {
        size_t bin = i < SWEEP_STALENESS_BINS ? i : SWEEP_STALENESS_BINS - 1;
        setting->shares[bin] += total > 0 ? json_number_value(count) / total : 0;
    }
}

/* Counts a run that was not completed: it has diverged, which is a result, or failed. */
static void count_ending(const struct run_folder *run, struct sweep_setting *setting)
{
    unsigned long long step;
    if (!run_folder_has_diverged(run, &step)) {
        setting->failed++;
    } else if (setting->diverged < SWEEP_REPEAT_MAX) {
        setting->diverged_steps[setting->diverged++] = (double)step;
    }
}

/* What the job of its runs has. */
static void describe(const struct sweep_run *run, struct sweep_setting *setting)
{
    setting->label = run->label;
    setting->mode = run->job.mode;
    setting->mode_rank = (size_t)run->job.mode.kind;
    setting->workers = run->job.workers;
    setting->global_batch = run->job.global_batch;
    setting->gradients_per_update = run->job.gradients_per_update;
    setting->has_target = run->job.target_accuracy > 0;
}

/* The completed runs of a setting, and what they say. */
static void gather(const struct sweep_results *results, size_t group, struct sweep_setting *setting,
                   const struct run_folder **runs)
{
    double values[MEASURE_COUNT][SWEEP_REPEAT_MAX];
    size_t counts[MEASURE_COUNT] = {0};
    for (size_t i = 0; i < results->plan->count; i++) {
        const struct run_folder *run = results->summaries[i];
        if (results->plan->runs[i].group != group) {
            continue;
        }
        describe(&results->plan->runs[i], setting);
        setting->place = group;
        setting->planned++;
        if (run != NULL && !run_folder_is_completed(run)) {
            count_ending(run, setting);
        }
        if (run == NULL || !run_folder_is_completed(run)) {
            continue;
        }
        if (setting->completed == SWEEP_REPEAT_MAX) {
            continue; // no sweep of ours has as many
        }
        unsigned long long images, all;
        setting->part_tested += run_folder_tests_part(run, "test_accuracy", &images, &all);
        runs[setting->completed++] = run;
        add_shares(run, setting);
        for (size_t m = 0; m < MEASURE_COUNT; m++) {
            char text[64];
            run_folder_value(run, sweep_measures[m].key, text, sizeof(text));
            if (text[0] != '\0') {
                values[m][counts[m]++] =
                    sweep_measures[m].factor * run_folder_number(run, sweep_measures[m].key);
            }
        }
    }
    for (size_t m = 0; m < MEASURE_COUNT; m++) {
        setting->measures[m] = statistics_of(values[m], counts[m]);
    }
    memcpy(setting->rates, values[MEASURE_RATE], sizeof(setting->rates));
    setting->reached = counts[MEASURE_TARGET_STEPS];
    for (size_t bin = 0; setting->completed > 0 && bin < SWEEP_STALENESS_BINS; bin++) {
        setting->shares[bin] /= (double)setting->completed;
    }
}

enum status sweep_settings_of(const struct sweep_results *results,
                              struct sweep_settings *ret_settings)
{
    const struct run_folder *runs[SWEEP_REPEAT_MAX];
    struct sweep_settings settings = {.count = results->plan->group_count};
    settings.list = calloc(settings.count, sizeof(*settings.list));
    settings.rows = calloc(settings.count, sizeof(*settings.rows));
    if (settings.list == NULL || settings.rows == NULL) {
        sweep_settings_free(&settings);
        return STATUS_NO_MEMORY;
    }
    for (size_t i = 0; i < settings.count; i++) {
        struct sweep_setting *setting = &settings.list[i];
        gather(results, i, setting, runs);
        split_label(setting);
        setting->has_straggler =
            setting->completed > 0 && straggler_find(runs[0], &setting->straggler);
        enum status status =
            sweep_curve_of(runs, setting->completed, &setting->points, &setting->point_count);
        if (status != STATUS_OK) {
            sweep_settings_free(&settings);
            return status;
        }
    }
    number_series(&settings);
    qsort(settings.list, settings.count, sizeof(*settings.list), compare_settings);
    compare_with_first(&settings);
    order_rows(&settings);
    if (choose_strokes(&settings) != STATUS_OK) {
        sweep_settings_free(&settings);
        return STATUS_NO_MEMORY;
    }
    *ret_settings = settings;
    return STATUS_OK;
}

void sweep_settings_free(struct sweep_settings *settings)
{
    for (size_t i = 0; settings->list != NULL && i < settings->count; i++) {
        free(settings->list[i].points);
    }
    free(settings->list);
    free(settings->rows);
    *settings = (struct sweep_settings){0};
}

bool sweep_settings_have(const struct sweep_settings *settings, enum sweep_measure measure)
{
    for (size_t i = 0; i < settings->count; i++) {
        const struct statistics *value = &settings->list[i].measures[measure];
        if (value->count > 0 && value->mean > 0) {
            return true;
        }
    }
    return false;
}
