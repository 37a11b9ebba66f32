/* Pairs runs on real data with runs on synthetic, and compares their rates. */
#include "deploy/report/input_gap.h"

#include "common/options/names.h"
#include "deploy/system/folder.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

const char *const input_gap_headings[INPUT_GAP_COLUMNS] = {"run", "rounds", "images/s",
                                                           "synthetic images/s", "input gap"};

/* What is compared of a run. */
struct candidate {
    const struct run_folder *run; // borrowed
    const char *data;             // as its job has it; borrowed
    bool is_synthetic, is_taken;
    double rate;
    char *job;     // all options but those of the input, owned; NULL: it does not count
    char *setting; // all options but the seed, owned
};

static char *text_without(const struct run_folder *run, const char *const *left_out)
{
    json_t *options = json_copy(json_object_get(run->job, "options"));
    for (; *left_out != NULL; left_out++) {
        json_object_del(options, *left_out);
    }
    char *text = options != NULL ? json_dumps(options, JSON_COMPACT | JSON_SORT_KEYS) : NULL;
    json_decref(options);
    return text;
}

/* STATUS_NO_MEMORY, or OK, also of a run that does not count. */
static enum status read_candidate(const struct run_folder *run, struct candidate *ret_candidate)
{
    static const char *const of_input[] = {"data", "augment", "normalize", NULL};
    static const char *const of_round[] = {"seed", NULL};
    const json_t *options = json_object_get(run->job, "options");
    const char *data = json_string_value(json_object_get(options, "data"));
    double rate = run_folder_number(run, "images_per_second");
    if (data == NULL || rate <= 0 || !run_folder_is_completed(run)) {
        return STATUS_OK;
    }
    *ret_candidate = (struct candidate){.run = run,
                                        .data = names_behind_synthetic(data),
                                        .is_synthetic = names_is_synthetic(data),
                                        .rate = rate,
                                        .job = text_without(run, of_input),
                                        .setting = text_without(run, of_round)};
    return ret_candidate->job != NULL && ret_candidate->setting != NULL ? STATUS_OK
                                                                        : STATUS_NO_MEMORY;
}

/* The synthetic run of the same job and seed; NULL: there is none, or none is left. */
static struct candidate *find_partner(struct candidate *candidates, size_t count,
                                      const struct candidate *real)
{
    for (size_t i = 0; i < count; i++) {
        struct candidate *other = &candidates[i];
        if (other->job != NULL && other->is_synthetic && !other->is_taken &&
            strcmp(other->data, real->data) == 0 && strcmp(other->job, real->job) == 0) {
            return other;
        }
    }
    return NULL;
}

double input_gap_percent(double real_rate, double synthetic_rate)
{
    return 100 * (1 - real_rate / synthetic_rate);
}

static void summarise(struct input_gap *gap)
{
    double percents[INPUT_GAP_ROUNDS_MAX], reals[INPUT_GAP_ROUNDS_MAX];
    double synthetics[INPUT_GAP_ROUNDS_MAX];
    for (size_t i = 0; i < gap->count; i++) {
        percents[i] = gap->pairs[i].percent;
        reals[i] = gap->pairs[i].real_rate;
        synthetics[i] = gap->pairs[i].synthetic_rate;
    }
    gap->percent = statistics_of(percents, gap->count);
    gap->real_rate = statistics_of(reals, gap->count);
    gap->synthetic_rate = statistics_of(synthetics, gap->count);
}

/* Adds the pair of `real`, if it has a partner, to the gap of its setting. `settings` has that of
 * each gap. */
static void add_pair(struct input_gaps *gaps, const char **settings, const struct candidate *real,
                     struct candidate *partner)
{
    size_t at = 0;
    while (at < gaps->count && (strcmp(settings[at], real->setting) != 0 ||
                                gaps->list[at].count == INPUT_GAP_ROUNDS_MAX)) {
        at++;
    }
    struct input_gap *gap = &gaps->list[at];
    if (at == gaps->count) {
        settings[gaps->count++] = real->setting;
    }
    partner->is_taken = true;
    gap->pairs[gap->count++] =
        (struct input_gap_pair){.real = real->run,
                                .synthetic = partner->run,
                                .real_rate = real->rate,
                                .synthetic_rate = partner->rate,
                                .percent = input_gap_percent(real->rate, partner->rate)};
}

enum status input_gaps_of(const struct run_folder *runs, size_t count, struct input_gaps *ret_gaps)
{
    struct input_gaps gaps = {.list = calloc(count + 1, sizeof(*gaps.list))};
    struct candidate *candidates = calloc(count + 1, sizeof(*candidates));
    const char **settings = calloc(count + 1, sizeof(*settings));
    enum status status =
        gaps.list != NULL && candidates != NULL && settings != NULL ? STATUS_OK : STATUS_NO_MEMORY;
    for (size_t i = 0; status == STATUS_OK && i < count; i++) {
        status = read_candidate(&runs[i], &candidates[i]);
    }
    for (size_t i = 0; status == STATUS_OK && i < count; i++) {
        const struct candidate *real = &candidates[i];
        struct candidate *partner =
            real->job != NULL && !real->is_synthetic ? find_partner(candidates, count, real) : NULL;
        if (partner != NULL) {
            add_pair(&gaps, settings, real, partner);
        }
    }
    for (size_t i = 0; candidates != NULL && i < count; i++) {
        free(candidates[i].job);
        free(candidates[i].setting);
    }
    free(candidates);
    free(settings);
    if (status != STATUS_OK) {
        input_gaps_finish(&gaps);
        return status;
    }
    for (size_t i = 0; i < gaps.count; i++) {
        summarise(&gaps.list[i]);
    }
    *ret_gaps = gaps;
    return STATUS_OK;
}

void input_gaps_finish(struct input_gaps *gaps)
{
    free(gaps->list);
    *gaps = (struct input_gaps){0};
}

static void format_rate(double rate, char ret_cell[INPUT_GAP_CELL_BYTES])
{
    snprintf(ret_cell, INPUT_GAP_CELL_BYTES, "%.*f", run_folder_rate_digits(rate), rate);
}

void input_gap_format(const struct input_gap *gap,
                      char ret_cells[INPUT_GAP_COLUMNS][INPUT_GAP_CELL_BYTES])
{
    snprintf(ret_cells[0], INPUT_GAP_CELL_BYTES, "%.63s", gap->pairs[0].real->label);
    snprintf(ret_cells[1], INPUT_GAP_CELL_BYTES, "%zu", gap->count);
    format_rate(gap->real_rate.mean, ret_cells[2]);
    format_rate(gap->synthetic_rate.mean, ret_cells[3]);
    if (gap->count > 1) {
        snprintf(ret_cells[4], INPUT_GAP_CELL_BYTES, "%.1f ± %.1f %%", gap->percent.mean,
                 gap->percent.half_width);
    } else {
        snprintf(ret_cells[4], INPUT_GAP_CELL_BYTES, "%.1f %%", gap->percent.mean);
    }
}

static void print_row(FILE *stream, const char *first, const char *const *others)
{
    fprintf(stream, "%-24s", first);
    for (size_t k = 0; k + 1 < INPUT_GAP_COLUMNS; k++) {
        fprintf(stream, "  %-*s", (int)strlen(input_gap_headings[k + 1]), others[k]);
    }
    fprintf(stream, "\n");
}

void input_gaps_print(FILE *stream, const struct input_gaps *gaps)
{
    char cells[INPUT_GAP_COLUMNS][INPUT_GAP_CELL_BYTES];
    const char *others[INPUT_GAP_COLUMNS - 1];
    if (gaps->count == 0) {
        return;
    }
    fprintf(stream, "input gap, by which real input falls behind synthetic:\n");
    print_row(stream, input_gap_headings[0], &input_gap_headings[1]);
    for (size_t i = 0; i < gaps->count; i++) {
        input_gap_format(&gaps->list[i], cells);
        for (size_t k = 1; k < INPUT_GAP_COLUMNS; k++) {
            others[k - 1] = cells[k];
        }
        print_row(stream, cells[0], others);
    }
    fprintf(stream, "\n");
}

void input_gaps_print_markdown(FILE *stream, const struct input_gaps *gaps)
{
    char cells[INPUT_GAP_COLUMNS][INPUT_GAP_CELL_BYTES];
    for (size_t k = 0; gaps->count > 0 && k < INPUT_GAP_COLUMNS; k++) {
        fprintf(stream, "| %s ", input_gap_headings[k]);
    }
    fprintf(stream, "%s", gaps->count > 0 ? "|\n|---|---|---|---|---|\n" : "");
    for (size_t i = 0; i < gaps->count; i++) {
        input_gap_format(&gaps->list[i], cells);
        for (size_t k = 0; k < INPUT_GAP_COLUMNS; k++) {
            fprintf(stream, "| %s ", cells[k]);
        }
        fprintf(stream, "|\n");
    }
    fprintf(stream, "%s", gaps->count > 0 ? "\n" : "");
}

static json_t *pair_json(const struct input_gap_pair *pair)
{
    return json_pack("{s:O?, s:s, s:s, s:f, s:f, s:f}", "seed",
                     json_object_get(pair->real->summary, "seed"), "real", pair->real->path,
                     "synthetic", pair->synthetic->path, "real_images_per_second", pair->real_rate,
                     "synthetic_images_per_second", pair->synthetic_rate, "percent", pair->percent);
}

/* Null as the half width of one round, which has no interval. */
static json_t *gap_json(const struct input_gap *gap)
{
    const json_t *summary = gap->pairs[0].real->summary;
    json_t *rounds = json_array();
    for (size_t i = 0; i < gap->count; i++) {
        json_array_append_new(rounds, pair_json(&gap->pairs[i]));
    }
    return json_pack(
        "{s:s, s:O?, s:O?, s:O?, s:O?, s:f, s:o, s:o}", "run", gap->pairs[0].real->label, "mode",
        json_object_get(summary, "mode"), "workers", json_object_get(summary, "workers"), "servers",
        json_object_get(summary, "servers"), "dataset", json_object_get(summary, "dataset"),
        "percent", gap->percent.mean, "half_width",
        gap->count > 1 ? json_real(gap->percent.half_width) : json_null(), "rounds", rounds);
}

static void write_json(FILE *file, const void *context)
{
    const struct input_gaps *gaps = context;
    json_t *list = json_array();
    for (size_t i = 0; i < gaps->count; i++) {
        json_array_append_new(list, gap_json(&gaps->list[i]));
    }
    json_dumpf(list, file, JSON_INDENT(2));
    fprintf(file, "\n");
    json_decref(list);
}

enum status input_gaps_write(const struct input_gaps *gaps, const char *folder)
{
    return gaps->count > 0 ? folder_write(folder, "input_gap.json", write_json, gaps) : STATUS_OK;
}

enum status input_gaps_report(const struct run_folder *runs, size_t count, const char *folder)
{
    struct input_gaps gaps;
    enum status status = input_gaps_of(runs, count, &gaps);
    if (status != STATUS_OK) {
        return status;
    }
    input_gaps_print(stdout, &gaps);
    status = input_gaps_write(&gaps, folder);
    input_gaps_finish(&gaps);
    return status;
}
