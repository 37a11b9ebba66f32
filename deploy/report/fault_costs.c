/* Finds and writes what faults have cost. */
#include "deploy/report/fault_costs.h"

#include "common/base/number.h"
#include "deploy/report/fault_lines.h"

#include <string.h>

#define STEP "step="

const char *const fault_cost_headings[FAULT_COLUMNS] = {
    "run",    "losses", "joined",       "on loss",   "s to go on", "images/s before",
    "during", "after",  "steps redone", "MiB moved", "s more",     "bits",
};

static const char *option_of(const struct run_folder *run, const char *name)
{
    const char *value =
        json_string_value(json_object_get(json_object_get(run->job, "options"), name));
    return value != NULL ? value : "";
}

static bool has_faults(const struct run_folder *run)
{
    const char *faults = option_of(run, "fault");
    return faults[0] != '\0' && strcmp(faults, "none") != 0;
}

/* A count; 0 for what is none. */
static uint64_t whole_of(const json_t *object, const char *key)
{
    json_int_t value = json_integer_value(json_object_get(object, key));
    return value > 0 ? (uint64_t)value : 0;
}

/* Whether it has faults (--fault), or has lost somebody without them. */
static bool is_disturbed(const struct run_folder *run)
{
    return has_faults(run) || whole_of(run->summary, "workers_lost") > 0 ||
           json_array_size(json_object_get(run->details, "recoveries")) > 0;
}

/* The worker processes that the job began with. */
static uint64_t processes_of(const struct run_folder *run)
{
    uint64_t asked = whole_of(json_object_get(run->job, "options"), "processes");
    return asked > 0 ? asked : whole_of(run->summary, "workers");
}

/* Whether the two have the same job, but for faults. A job whose coordinator was started again says
 * how many processes it had, if nobody has asked for a number. */
static bool is_same_job(const struct run_folder *a, const struct run_folder *b)
{
    const char *name;
    json_t *value, *options = json_object_get(a->job, "options");
    json_t *others = json_object_get(b->job, "options");
    json_object_foreach(options, name, value)
    {
        bool is_same = strcmp(name, "processes") == 0
                           ? processes_of(a) == processes_of(b)
                           : json_equal(value, json_object_get(others, name));
        if (strcmp(name, "fault") != 0 && !is_same) {
            return false;
        }
    }
    return options != NULL && json_object_size(options) == json_object_size(others);
}

/* The run without faults and losses; NULL: there is none. */
static const struct run_folder *find_undisturbed(const struct run_folder *runs, size_t count,
                                                 const struct run_folder *run)
{
    for (size_t i = 0; i < count; i++) {
        if (!is_disturbed(&runs[i]) && run_folder_is_completed(&runs[i]) &&
            is_same_job(run, &runs[i])) {
            return &runs[i];
        }
    }
    return NULL;
}

static double number_of(const json_t *object, const char *key)
{
    return json_number_value(json_object_get(object, key));
}

/* Whether training went on. The job may have ended before. */
static bool has_gone_on(const json_t *recovery)
{
    return !json_is_null(json_object_get(recovery, "begin_step"));
}

/* The first step that a fault strikes, or that is made again after a loss, from 1, and the last one
 * that is disturbed. */
static struct fault_window find_window(const struct run_folder *run)
{
    const json_t *recoveries = json_object_get(run->details, "recoveries"), *recovery;
    struct fault_window window = {0, 0};
    const char *faults = option_of(run, "fault");
    for (const char *at = faults; (at = strstr(at, STEP)) != NULL;) {
        uint64_t step = 0;
        at += strlen(STEP);
        if (number_whole(at, strspn(at, "0123456789"), UINT64_MAX, &step)) {
            window.first = window.first == 0 || step < window.first ? step : window.first;
            window.last = step > window.last ? step : window.last;
        }
    }
    size_t i;
    json_array_foreach(recoveries, i, recovery)
    {
        uint64_t lost = whole_of(recovery, "lost_step") + 1;
        uint64_t begin = has_gone_on(recovery) ? whole_of(recovery, "begin_step") + 1 : lost;
        window.first = window.first == 0 || begin < window.first ? begin : window.first;
        window.last = lost > window.last ? lost : window.last;
    }
    return window;
}

/* Whether there were steps before the next recovery: one that was overtaken has no ranks. */
static bool has_trained(const json_t *recovery)
{
    const json_t *ranks = json_object_get(recovery, "ranks");
    return ranks == NULL || json_integer_value(ranks) > 0;
}

/* Processes as recoveries say it. */
struct crowd {
    uint64_t processes; // that the job had before the recovery
    uint64_t untried;   // of them, those that have come and not trained yet
    uint64_t joined;    // that have come and trained
};

/* Whether the job has lost somebody who took part in it. Otherwise somebody has come, or as many
 * have gone as had come to no training. A worker that was lost at the same time instead of one of
 * these is among the workers_lost of the summary. */
static bool is_loss(const json_t *recovery, struct crowd *crowd)
{
    uint64_t processes = whole_of(recovery, "processes"), before = crowd->processes;
    uint64_t gone = processes > 0 && processes < before ? before - processes : 0;
    bool has_come = processes > before, was_untried = gone > 0 && gone <= crowd->untried;
    if (has_come) {
        crowd->untried += processes - before;
    } else if (was_untried) {
        crowd->untried -= gone;
    }
    if (has_trained(recovery)) {
        crowd->joined += crowd->untried;
        crowd->untried = 0;
    }
    crowd->processes = processes > 0 ? processes : before;
    return !has_come && !was_untried;
}

/* What the coordinator has counted around a loss. */
static void add_rates(const json_t *recovery, struct fault_cost *cost)
{
    double before = number_of(recovery, "images_per_second_before");
    double after = number_of(recovery, "images_per_second_after");
    double seconds = number_of(recovery, "seconds_behind");
    cost->before = cost->before > 0 ? cost->before : before;
    cost->after = after > 0 ? after : cost->after;
    if (json_is_number(json_object_get(recovery, "seconds_behind"))) {
        double images = cost->during * cost->behind;
        images += number_of(recovery, "images_per_second_during") * seconds;
        cost->behind += seconds;
        cost->during = cost->behind > 0 ? images / cost->behind : 0;
        cost->has_during = true;
    }
}

/* Joins of --fault for which no worker came in time. */
static uint32_t count_unmet_joins(const struct run_folder *run)
{
    uint32_t unmet = 0;
    const char *sentence;
    for (size_t i = 0; (sentence = run_folder_unmet_fault(run, i)) != NULL; i++) {
        unmet += strstr(sentence, ",join did not strike") != NULL;
    }
    return unmet;
}

static void add_recoveries(const struct run_folder *run, struct fault_cost *cost)
{
    const json_t *recoveries = json_object_get(run->details, "recoveries"), *recovery;
    struct crowd crowd = {.processes = processes_of(run)};
    size_t i;
    json_array_foreach(recoveries, i, recovery)
    {
        // Where training went on meanwhile, nothing was held up.
        bool trained_on = json_is_true(json_object_get(recovery, "trained_on"));
        cost->has_gone_on = cost->has_gone_on || has_gone_on(recovery);
        cost->losses += is_loss(recovery, &crowd);
        cost->seconds += trained_on ? 0 : number_of(recovery, "seconds");
        cost->steps_redone += whole_of(recovery, "steps_redone");
        cost->bytes += whole_of(recovery, "bytes");
        add_rates(recovery, cost);
    }
    cost->joins = (uint32_t)crowd.joined;
    cost->joins_unmet = count_unmet_joins(run);
}

/* What is not known from recoveries. */
static void add_lines(const struct run_folder *run, struct fault_cost *cost)
{
    struct fault_lines lines;
    if (!fault_lines_read(run, &lines)) {
        return;
    }
    const struct fault_rates rates = fault_lines_rates(&lines, find_window(run));
    double batch = run_folder_number(run, "global_batch");
    cost->before = cost->before > 0 ? cost->before : batch * rates.before;
    cost->after = cost->after > 0 ? cost->after : batch * rates.after;
    if (!cost->has_during && rates.during > 0) {
        cost->during = batch * rates.during;
        cost->has_during = true;
    }
    fault_lines_finish(&lines);
}

/* Losses that ended the job, or an attempt at it, are no recoveries. */
static void add_ends(const struct run_folder *run, struct fault_cost *cost)
{
    uint64_t workers = whole_of(run->summary, "workers_lost");
    bool has_culprit = json_is_object(json_object_get(run->details, "failed_member"));
    cost->losses += has_culprit && !run_folder_is_completed(run);
    cost->losses = workers > cost->losses ? (uint32_t)workers : cost->losses;
}

static void compare(const struct run_folder *run, const struct run_folder *undisturbed,
                    struct fault_cost *cost)
{
    char bits[FAULT_CELL_BYTES * 2], others[FAULT_CELL_BYTES * 2];
    if (undisturbed == NULL || !run_folder_is_completed(run)) {
        return;
    }
    run_folder_value(run, "params_digest", bits, sizeof(bits));
    run_folder_value(undisturbed, "params_digest", others, sizeof(others));
    cost->bits = strcmp(bits, others) == 0 ? FAULT_BITS_SAME : FAULT_BITS_OTHER;
    cost->whole_seconds =
        run_folder_number(run, "seconds") - run_folder_number(undisturbed, "seconds");
}

bool fault_cost_find(const struct run_folder *runs, size_t count, size_t index,
                     struct fault_cost *ret_cost)
{
    const struct run_folder *run = &runs[index];
    struct fault_cost cost = {.bits = FAULT_BITS_UNKNOWN};
    if (!is_disturbed(run)) {
        return false;
    }
    add_recoveries(run, &cost);
    add_ends(run, &cost);
    add_lines(run, &cost);
    compare(run, find_undisturbed(runs, count, run), &cost);
    *ret_cost = cost;
    return true;
}

static void format_rate(bool is_known, double rate, char ret_text[FAULT_CELL_BYTES])
{
    snprintf(ret_text, FAULT_CELL_BYTES, is_known ? "%.0f" : "-", rate);
}

void fault_cost_format(const struct run_folder *run, const struct fault_cost *cost,
                       char ret_cells[FAULT_COLUMNS][FAULT_CELL_BYTES])
{
    static const char *const bits[] = {
        [FAULT_BITS_UNKNOWN] = "-", [FAULT_BITS_SAME] = "same", [FAULT_BITS_OTHER] = "other"};
    const char *on_loss = option_of(run, "on-loss");
    snprintf(ret_cells[0], FAULT_CELL_BYTES, "%.63s", run->label);
    snprintf(ret_cells[1], FAULT_CELL_BYTES, "%u", cost->losses);
    snprintf(ret_cells[2], FAULT_CELL_BYTES, cost->joins_unmet > 0 ? "%u of %u" : "%u", cost->joins,
             cost->joins + cost->joins_unmet);
    snprintf(ret_cells[3], FAULT_CELL_BYTES, "%s", on_loss[0] != '\0' ? on_loss : "-");
    snprintf(ret_cells[4], FAULT_CELL_BYTES, cost->has_gone_on ? "%.2f" : "-", cost->seconds);
    format_rate(cost->before > 0, cost->before, ret_cells[5]);
    format_rate(cost->has_during, cost->during, ret_cells[6]);
    format_rate(cost->after > 0, cost->after, ret_cells[7]);
    snprintf(ret_cells[8], FAULT_CELL_BYTES, cost->has_gone_on || cost->losses == 0 ? "%llu" : "-",
             (unsigned long long)cost->steps_redone);
    snprintf(ret_cells[9], FAULT_CELL_BYTES, cost->has_gone_on ? "%.1f" : "-",
             (double)cost->bytes / (1 << 20));
    snprintf(ret_cells[10], FAULT_CELL_BYTES, cost->bits != FAULT_BITS_UNKNOWN ? "%.1f" : "-",
             cost->whole_seconds);
    snprintf(ret_cells[11], FAULT_CELL_BYTES, "%s", bits[cost->bits]);
}

static void print_row(FILE *stream, int width, const char *first, const char *const *others)
{
    fprintf(stream, "%-*.*s", width, FAULT_CELL_BYTES - 1, first);
    for (size_t k = 0; k + 1 < FAULT_COLUMNS; k++) {
        fprintf(stream, "  %-*s", (int)strlen(fault_cost_headings[k + 1]), others[k]);
    }
    fprintf(stream, "\n");
}

/* Of the first column: of the longest name of a run that has faults. */
static int find_width(const struct run_folder *runs, size_t count)
{
    size_t width = 24;
    for (size_t i = 0; i < count; i++) {
        size_t length = strnlen(runs[i].label, FAULT_CELL_BYTES - 1);
        width = is_disturbed(&runs[i]) && length > width ? length : width;
    }
    return (int)width;
}

static void print_unmet(FILE *stream, const struct run_folder *runs, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const char *sentence;
        for (size_t k = 0; (sentence = run_folder_unmet_fault(&runs[i], k)) != NULL; k++) {
            fprintf(stream, "%s: %s\n", runs[i].label, sentence);
        }
    }
}

void fault_costs_print(FILE *stream, const struct run_folder *runs, size_t count)
{
    bool has_head = false;
    int width = find_width(runs, count);
    char cells[FAULT_COLUMNS][FAULT_CELL_BYTES];
    const char *others[FAULT_COLUMNS - 1];
    for (size_t i = 0; i < count; i++) {
        struct fault_cost cost;
        if (!fault_cost_find(runs, count, i, &cost)) {
            continue;
        }
        if (!has_head) {
            fprintf(stream, "faults and losses:\n");
            print_row(stream, width, fault_cost_headings[0], &fault_cost_headings[1]);
            has_head = true;
        }
        fault_cost_format(&runs[i], &cost, cells);
        for (size_t k = 1; k < FAULT_COLUMNS; k++) {
            others[k - 1] = cells[k];
        }
        print_row(stream, width, cells[0], others);
    }
    print_unmet(stream, runs, count);
    if (has_head) {
        fprintf(stream, "\n");
    }
}
