/* Reads tables of steps to a target, and looks up jobs in them. */
#include "deploy/predict/convergence/convergence.h"

#include "common/base/log.h"
#include "common/base/number.h"
#include "common/job/job_options.h"
#include "deploy/predict/convergence/convergence_table.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROWS_MAX  4096
#define WHY_BYTES 160 // of a reason without its recipe
#define NEAR      0.05
#define SAME      1e-3 // images, as a share, and staleness that differ by less are the same

/* Of a setting's words, those that images, staleness and time already stand for. */
static const char *const measured_words[] = {"mode",
                                             "workers",
                                             "servers",
                                             "batch",
                                             "order",
                                             "global-batch",
                                             "straggler",
                                             "processes",
                                             "bucket-mb",
                                             "all-reduce",
                                             "threads",
                                             "server-threads",
                                             "gradients-per-update",
                                             "delay-model",
                                             NULL};

/* Those that a job has to have as well, or else the row is of another algorithm. */
static const char *const demanded_words[] = {"sync-every", "backup", "compress", NULL};

static bool is_among(const char *const *names, const char *word, size_t size)
{
    for (; *names != NULL; names++) {
        if (strlen(*names) == size && strncmp(*names, word, size) == 0) {
            return true;
        }
    }
    return false;
}

static void write_recipe(const char *setting, char ret_recipe[CONVERGENCE_TEXT_BYTES])
{
    size_t used = 0;
    ret_recipe[0] = '\0';
    for (const char *at = setting; *at != '\0';) {
        size_t size = strcspn(at, " ");
        if (!is_among(measured_words, at, strcspn(at, "= "))) {
            used += (size_t)snprintf(ret_recipe + used, CONVERGENCE_TEXT_BYTES - used, "%s%.*s",
                                     used > 0 ? " " : "", (int)size, at);
            used = used < CONVERGENCE_TEXT_BYTES ? used : CONVERGENCE_TEXT_BYTES - 1;
        }
        at += size + (at[size] == ' ');
    }
}

/* ==========================================================================================
 * Reading
 * ========================================================================================== */

struct reader {
    const char *file;
    size_t line;
    const struct table_line *headings;
    const struct table_line *values;
};

static enum status refuse(const struct reader *reader, const char *column, const char *why)
{
    log_error("%s: line %zu: %s %s", reader->file, reader->line, column, why);
    return STATUS_INVALID;
}

/* "12.5", "1.25e+09": as printf's %g has numbers. */
static bool parse_number(const char *text, double *ret_number)
{
    uint64_t exponent = 0;
    size_t size = number_decimal(text, ret_number);
    if (size == 0 || text[size] == '\0') {
        return size > 0;
    }
    const char *digits = text + size + 1;
    bool is_negative = *digits == '-';
    digits += is_negative || *digits == '+';
    if (text[size] != 'e' || !number_whole(digits, strlen(digits), 30, &exponent)) {
        return false;
    }
    *ret_number *= pow(10, is_negative ? -(double)exponent : (double)exponent);
    return true;
}

static enum status read_number(const struct reader *reader, const char *column, double least,
                               double *ret_number)
{
    const char *text = table_line_value(reader->headings, reader->values, column);
    double number = 0;
    if (!parse_number(text, &number)) {
        return refuse(reader, column, "has to be a number");
    }
    if (number < least) {
        return refuse(reader, column, "is too small");
    }
    *ret_number = number;
    return STATUS_OK;
}

static bool is_empty(const struct reader *reader, const char *column)
{
    const char *text = table_line_value(reader->headings, reader->values, column);
    return text == NULL || text[0] == '\0';
}

/* What makes steps updates: the mode, workers, batch. */
struct exchange {
    struct mode mode;
    double workers, global_batch, gradients; // of an update
};

static enum status read_exchange(const struct reader *reader, struct exchange *exchange)
{
    const char *mode = table_line_value(reader->headings, reader->values, "mode");
    if (mode_parse(mode, &exchange->mode) != STATUS_OK) {
        return refuse(reader, "mode", "is none that there is");
    }
    enum status status = read_number(reader, "workers", 1, &exchange->workers);
    if (status == STATUS_OK) {
        status = read_number(reader, "global batch", 1, &exchange->global_batch);
    }
    exchange->gradients = 1;
    return status == STATUS_OK && !is_empty(reader, "gradients per update")
               ? read_number(reader, "gradients per update", 1, &exchange->gradients)
               : status;
}

/* Images of an update, and updates of a step. */
static void find_updates(const struct exchange *exchange, double *ret_images, double *ret_updates)
{
    bool is_of_gradients = mode_updates_on_push(exchange->mode.kind);
    *ret_updates = is_of_gradients ? exchange->workers / exchange->gradients : 1;
    *ret_images = exchange->global_batch / *ret_updates;
}

/* Whether all runs have reached the target; where a table does not say, it says how many steps. */
static bool has_reached(const struct reader *reader)
{
    const char *reached = table_line_value(reader->headings, reader->values, "reached"),
               *runs = table_line_value(reader->headings, reader->values, "runs");
    return !is_empty(reader, "steps to target mean") &&
           (is_empty(reader, "reached") || is_empty(reader, "runs") || strcmp(reached, runs) == 0);
}

static enum status read_row(const struct reader *reader, struct convergence_row *row)
{
    struct exchange exchange;
    double steps = 0, updates = 1;
    const char *setting = table_line_value(reader->headings, reader->values, "setting");
    memset(row, 0, sizeof(*row));
    enum status status = read_exchange(reader, &exchange);
    if (status == STATUS_OK && !is_empty(reader, "mean staleness mean")) {
        status = read_number(reader, "mean staleness mean", 0, &row->staleness);
    }
    if (status == STATUS_OK && has_reached(reader)) {
        status = read_number(reader, "steps to target mean", 1, &steps);
    }
    if (status != STATUS_OK) {
        return status;
    }
    snprintf(row->setting, sizeof(row->setting), "%.255s", setting != NULL ? setting : "");
    write_recipe(row->setting, row->recipe);
    find_updates(&exchange, &row->images, &updates);
    row->updates = steps * updates;
    return STATUS_OK;
}

static enum status check_headings(const char *file, const struct table_line *headings)
{
    static const char *const names[] = {"mode", "workers", "global batch", "steps to target mean"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (table_line_value(headings, headings, names[i]) == NULL) {
            log_error("%s: there is no column '%s'; give sweep.csv of a sweep with "
                      "--target-accuracy (`ringside report FOLDER` writes that of an older sweep "
                      "anew)",
                      file, names[i]);
            return STATUS_INVALID;
        }
    }
    return STATUS_OK;
}

/* The next line that is not empty. STATUS_END_OF_DATA behind the last. */
static enum status next_line(FILE *stream, struct reader *reader, struct table_line *ret_line)
{
    char text[TABLE_LINE_BYTES];
    do {
        if (fgets(text, sizeof(text), stream) == NULL) {
            return STATUS_END_OF_DATA;
        }
        reader->line++;
        size_t size = strcspn(text, "\r\n");
        if (text[size] == '\0' && size + 1 == sizeof(text)) {
            return refuse(reader, "this line", "is too long");
        }
        text[size] = '\0';
    } while (text[0] == '\0');
    return table_line_parse(text, ret_line)
               ? STATUS_OK
               : refuse(reader, "this line", "is no line of comma-separated values");
}

static enum status read_lines(FILE *stream, struct reader *reader, struct table_line *headings,
                              struct table_line *values, struct convergence *convergence)
{
    enum status status = next_line(stream, reader, headings);
    if (status != STATUS_OK) {
        return status == STATUS_END_OF_DATA ? refuse(reader, "the table", "is empty") : status;
    }
    status = check_headings(reader->file, headings);
    reader->headings = headings;
    reader->values = values;
    while (status == STATUS_OK) {
        status = next_line(stream, reader, values);
        if (status == STATUS_OK && convergence->count == ROWS_MAX) {
            status = refuse(reader, "the table", "has too many lines");
        }
        if (status == STATUS_OK) {
            status = read_row(reader, &convergence->rows[convergence->count]);
            convergence->count++;
        }
    }
    if (status == STATUS_END_OF_DATA && convergence->count == 0) {
        return refuse(reader, "the table", "has no settings");
    }
    return status == STATUS_END_OF_DATA ? STATUS_OK : status;
}

enum status convergence_read(const char *file, struct convergence *ret_convergence)
{
    struct convergence convergence = {.rows = calloc(ROWS_MAX, sizeof(*convergence.rows))};
    struct table_line *lines = calloc(2, sizeof(*lines));
    struct reader reader = {.file = file};
    FILE *stream = fopen(file, "re");
    enum status status = STATUS_NO_MEMORY;
    if (stream == NULL) {
        log_error("%s cannot be read: %m", file);
        status = STATUS_IO;
    } else if (lines != NULL && convergence.rows != NULL) {
        status = read_lines(stream, &reader, &lines[0], &lines[1], &convergence);
    }
    if (stream != NULL) {
        fclose(stream);
    }
    free(lines);
    if (status != STATUS_OK) {
        convergence_finish(&convergence);
        return status;
    }
    *ret_convergence = convergence;
    return STATUS_OK;
}

void convergence_finish(struct convergence *convergence)
{
    free(convergence->rows);
    *convergence = (struct convergence){NULL, 0};
}

/* ==========================================================================================
 * Looking up
 * ========================================================================================== */

static bool are_same_images(double a, double b)
{
    return fabs(a - b) <= SAME * b;
}

/* Whether the job has the demanded words of a row. */
static bool has_demands(const struct convergence_row *row, const struct job *job)
{
    for (const char *at = row->setting; *at != '\0';) {
        size_t size = strcspn(at, " "), name = strcspn(at, "= ");
        for (size_t i = 0; i < job_option_count && is_among(demanded_words, at, name); i++) {
            const struct option *option = &job_options[i];
            char value[OPTION_VALUE_BYTES];
            option_format(option, job, value, sizeof(value));
            if (strlen(option->name) == name && strncmp(option->name, at, name) == 0 &&
                (strlen(value) != size - name - 1 ||
                 strncmp(value, at + name + 1, size - name - 1) != 0)) {
                return false;
            }
        }
        at += size + (at[size] == ' ');
    }
    return true;
}

/* What is looked for. */
struct query {
    const struct convergence *convergence;
    const struct job *job;
    const char *recipe;
    double images, staleness;
};

static bool is_of(const struct query *query, const struct convergence_row *row)
{
    return strcmp(row->recipe, query->recipe) == 0 && has_demands(row, query->job);
}

/* The nearest row of such images at no more staleness, or at no less; of equal ones the first. */
static const struct convergence_row *find_beside(const struct query *query, double images,
                                                 bool is_above)
{
    const struct convergence_row *nearest = NULL;
    for (size_t i = 0; i < query->convergence->count; i++) {
        const struct convergence_row *row = &query->convergence->rows[i];
        double beyond =
            is_above ? row->staleness - query->staleness : query->staleness - row->staleness;
        bool is_right =
            is_of(query, row) && are_same_images(row->images, images) && beyond >= -SAME;
        if (is_right && (nearest == NULL || fabs(row->staleness - query->staleness) <
                                                fabs(nearest->staleness - query->staleness))) {
            nearest = row;
        }
    }
    return nearest;
}

/* Whether a row at the end of all is as good as one at the staleness that is looked for: the mean
 * of a seeded order is a little lower than what it tends to, as the first gradients have less. */
static bool is_near(const struct query *query, const struct convergence_row *row)
{
    return row != NULL && fabs(row->staleness - query->staleness) <= NEAR * query->staleness;
}

/* Updates at so many images, which rows have; 0 if not known, with the reason. */
static double updates_at(const struct query *query, double images, char *ret_why)
{
    const struct convergence_row *low = find_beside(query, images, false),
                                 *high = find_beside(query, images, true);
    low = low == NULL && is_near(query, high) ? high : low;
    high = high == NULL && is_near(query, low) ? low : high;
    if (low == NULL || high == NULL) {
        const struct convergence_row *last = low != NULL ? low : high;
        snprintf(ret_why, WHY_BYTES,
                 "no row has a staleness of %.3g at %.0f images an update; the %s has %.3g",
                 query->staleness, images, low != NULL ? "highest" : "lowest",
                 last != NULL ? last->staleness : 0.0);
        return 0;
    }
    if (low->updates <= 0 || high->updates <= 0) {
        snprintf(ret_why, WHY_BYTES,
                 "runs at a staleness of %.3g and %.0f images an update did not reach the target",
                 low->updates <= 0 ? low->staleness : high->staleness, images);
        return 0;
    }
    double width = high->staleness - low->staleness;
    double share = width > SAME ? (query->staleness - low->staleness) / width : 0;
    return low->updates + fmin(fmax(share, 0), 1) * (high->updates - low->updates);
}

/* The numbers of images that rows have next to those of the query; 0: none. */
static void find_images(const struct query *query, double *ret_low, double *ret_high)
{
    *ret_low = *ret_high = 0;
    for (size_t i = 0; i < query->convergence->count; i++) {
        const struct convergence_row *row = &query->convergence->rows[i];
        if (!is_of(query, row)) {
            continue;
        }
        bool is_same = are_same_images(row->images, query->images);
        if ((is_same || row->images < query->images) && row->images > *ret_low) {
            *ret_low = row->images;
        }
        if ((is_same || row->images > query->images) &&
            (*ret_high <= 0 || row->images < *ret_high)) {
            *ret_high = row->images;
        }
    }
}

/* Updates to the target with one recipe; 0 if not known, with the reason. */
static double find_recipe(const struct query *query, char *ret_why)
{
    double low = 0, high = 0;
    find_images(query, &low, &high);
    if (low <= 0 || high <= 0) {
        char last[64] = "";
        if (low > 0 || high > 0) {
            snprintf(last, sizeof(last), "; the %s are of %.0f", low > 0 ? "largest" : "smallest",
                     low > 0 ? low : high);
        }
        snprintf(ret_why, WHY_BYTES, "no row has updates of %.0f images%s", query->images, last);
        return 0;
    }
    double at_low = updates_at(query, low, ret_why),
           at_high = at_low > 0 ? updates_at(query, high, ret_why) : 0;
    if (at_low <= 0 || at_high <= 0) {
        return 0;
    }
    double share = are_same_images(high, low) ? 0 : log(query->images / low) / log(high / low);
    return exp(log(at_low) + share * (log(at_high) - log(at_low)));
}

static bool is_first_of_recipe(const struct convergence *convergence, size_t index)
{
    for (size_t i = 0; i < index; i++) {
        if (strcmp(convergence->rows[i].recipe, convergence->rows[index].recipe) == 0) {
            return false;
        }
    }
    return true;
}

void convergence_find(const struct convergence *convergence, const struct job *job, double batch,
                      double staleness, double step_s, struct target *ret_target)
{
    const struct exchange exchange = {job->mode, job->workers, (double)job->workers * batch,
                                      job->gradients_per_update > 0 ? job->gradients_per_update
                                                                    : 1};
    struct target target = {.steps = 0};
    char why[WHY_BYTES] = "";
    double updates_of_step = 1;
    struct query query = {.convergence = convergence, .job = job, .staleness = staleness};
    find_updates(&exchange, &query.images, &updates_of_step);
    for (size_t i = 0; i < convergence->count; i++) {
        if (!is_first_of_recipe(convergence, i)) {
            continue;
        }
        query.recipe = convergence->rows[i].recipe;
        double steps = find_recipe(&query, why) / updates_of_step;
        if (steps > 0 && (target.steps <= 0 || steps < target.steps)) {
            target.steps = steps;
            target.seconds = steps * step_s;
            snprintf(target.recipe, sizeof(target.recipe), "%s", query.recipe);
            target.why[0] = '\0';
        } else if (target.steps <= 0 && target.why[0] == '\0') {
            snprintf(target.why, sizeof(target.why), "%s%s%.60s%s", why,
                     query.recipe[0] != '\0' ? " (with " : "", query.recipe,
                     query.recipe[0] != '\0' ? ")" : "");
        }
    }
    *ret_target = target;
}
