/* Finds where the lead between two designs changes hands, and says it. */
#include "deploy/predict/advise/crossover.h"

#include "deploy/predict/advise/memo.h"
#include "deploy/predict/study/parallel.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define LEVEL      1e-9 // a difference of less is rounding
#define LEAD_BYTES 128

static enum crossover_lead ahead(const struct crossover_rates *rates)
{
    double difference = rates->first - rates->second;
    if (rates->first < 0 || rates->second < 0) {
        return CROSSOVER_UNKNOWN;
    }
    if (fabs(difference) <= LEVEL * fmax(rates->first, rates->second)) {
        return CROSSOVER_NEITHER;
    }
    return difference > 0 ? CROSSOVER_FIRST : CROSSOVER_SECOND;
}

static void add_turn(struct crossover *crossover, uint32_t workers,
                     const struct crossover_rates *rates)
{
    if (crossover->turn_count < CROSSOVER_TURNS_MAX) {
        crossover->turns[crossover->turn_count++] =
            (struct crossover_turn){workers, ahead(rates), *rates};
    }
}

/* The first number from `low` on, at most *high, that does not have the lead of `low`; *high and
 * its rates become those of it. */
static enum status find_turn(uint32_t low, enum crossover_lead lead,
                             enum status (*measure)(void *context, uint32_t workers,
                                                    struct crossover_rates *ret_rates),
                             void *context, uint32_t *high, struct crossover_rates *rates)
{
    while (*high - low > 1) {
        uint32_t middle = low + (*high - low) / 2;
        struct crossover_rates rates_middle;
        enum status status = measure(context, middle, &rates_middle);
        if (status != STATUS_OK) {
            return status;
        }
        if (ahead(&rates_middle) == lead) {
            low = middle;
        } else {
            *high = middle;
            *rates = rates_middle;
        }
    }
    return STATUS_OK;
}

enum status crossover_search(const uint32_t *workers, size_t count,
                             enum status (*measure)(void *context, uint32_t workers,
                                                    struct crossover_rates *ret_rates),
                             void *context, struct crossover *ret_crossover)
{
    struct crossover *crossover = ret_crossover;
    struct crossover_rates rates;
    enum status status = measure(context, workers[0], &rates);
    crossover->turn_count = 0;
    if (status == STATUS_OK) {
        add_turn(crossover, workers[0], &rates);
    }
    for (size_t i = 1; i < count && status == STATUS_OK; i++) {
        uint32_t low = workers[i - 1];
        enum crossover_lead lead = ahead(&rates);
        struct crossover_rates rates_high;
        status = measure(context, workers[i], &rates_high);
        while (status == STATUS_OK && ahead(&rates_high) != lead) {
            uint32_t turn = workers[i];
            rates = rates_high;
            status = find_turn(low, lead, measure, context, &turn, &rates);
            if (status == STATUS_OK) {
                add_turn(crossover, turn, &rates);
                lead = ahead(&rates);
                low = turn;
            }
        }
        rates = rates_high;
    }
    crossover->workers_last = workers[count - 1];
    crossover->rates_last = rates;
    return status;
}

/* Two designs of a study. */
struct pair {
    const struct study *study;
    struct memo *memo;
    const struct crossover *crossover;
};

/* A job of a pair, to be predicted. */
struct request {
    const struct study *study;
    const struct study_point point;
};

static enum status make(const void *context, struct prediction *ret_made)
{
    const struct request *request = context;
    struct basis *basis = NULL;
    enum status status = study_make_basis(request->study, &request->point, &basis);
    if (status == STATUS_OK) {
        status = study_predict(request->study, basis, ret_made);
    }
    basis_destroy(basis);
    return status;
}

static const struct study_point *find_point(const struct pair *pair, struct study_design design,
                                            uint32_t workers)
{
    const struct study *study = pair->study;
    size_t total = study->point_count * (1 + study->what_if_count);
    for (size_t i = 0; i < total; i++) {
        const struct study_point *made = &study->points[i];
        if (made->workers == workers && made->what_if == pair->crossover->what_if &&
            made->design.servers == design.servers && made->design.mode.kind == design.mode.kind &&
            made->design.mode.slack_steps == design.mode.slack_steps) {
            return made;
        }
    }
    return NULL;
}

/* The prediction of a point, if there is one; otherwise it is made. */
static enum status predict(const struct pair *pair, struct study_design design, uint32_t workers,
                           struct prediction *ret_made)
{
    char key[MEMO_KEY_BYTES];
    const struct what_if *what_if = pair->crossover->what_if;
    const struct study_point *point = find_point(pair, design, workers);
    if (point != NULL) {
        *ret_made = point->made;
        return STATUS_OK;
    }
    const struct request request = {pair->study,
                                    {.design = design, .workers = workers, .what_if = what_if}};
    size_t change = what_if != NULL ? 1 + (size_t)(what_if - pair->study->what_ifs) : 0;
    snprintf(key, sizeof(key), "%s, %u, %zu", study_design_text(design).text, workers, change);
    return memo_predict(pair->memo, key, make, &request, ret_made);
}

static enum status find_rate(const struct pair *pair, struct study_design design, uint32_t workers,
                             double *ret_rate)
{
    struct prediction made;
    struct target target;
    enum status status = predict(pair, design, workers, &made);
    if (status != STATUS_OK || !pair->crossover->is_of_target) {
        *ret_rate = status == STATUS_OK ? made.images_per_s : 0;
        return status;
    }
    study_find_target(pair->study, design, workers, &made, &target);
    *ret_rate = target.seconds > 0 ? 1 / target.seconds : -1;
    return STATUS_OK;
}

static enum status measure_pair(void *context, uint32_t workers, struct crossover_rates *ret_rates)
{
    const struct pair *pair = context;
    enum status status = find_rate(pair, pair->crossover->first, workers, &ret_rates->first);
    return status == STATUS_OK
               ? find_rate(pair, pair->crossover->second, workers, &ret_rates->second)
               : status;
}

struct search {
    const struct study *study;
    struct memo *memo;
    struct crossover *list;
};

/* How many of the numbers of workers come before one of which a point is too large. */
static size_t count_made(const struct pair *pair)
{
    const struct study *study = pair->study;
    size_t count = 0;
    for (; count < study->worker_count; count++) {
        uint32_t workers = study->workers[count];
        const struct study_point *first = find_point(pair, pair->crossover->first, workers);
        const struct study_point *second = find_point(pair, pair->crossover->second, workers);
        if ((first != NULL && first->is_too_large) || (second != NULL && second->is_too_large)) {
            break;
        }
    }
    return count;
}

/* Behind a point that is too large, and before it, nobody looks. */
static enum status search_pair(void *context, size_t index)
{
    const struct search *search = context;
    const struct study *study = search->study;
    struct crossover *crossover = &search->list[index];
    struct pair pair = {study, search->memo, crossover};
    size_t count = count_made(&pair);
    if (count > 0) {
        return crossover_search(study->workers, count, measure_pair, &pair, crossover);
    }
    crossover->workers_last = study->workers[0];
    crossover->rates_last = (struct crossover_rates){-1, -1};
    add_turn(crossover, crossover->workers_last, &crossover->rates_last);
    return STATUS_OK;
}

/* Pairs of one measure with one change. Returns how many there are. */
static size_t list_pairs(const struct study *study, const struct what_if *what_if,
                         bool is_of_target, struct crossover *list)
{
    size_t count = 0;
    for (size_t a = 0; a < study->design_count; a++) {
        for (size_t b = a + 1; b < study->design_count; b++) {
            list[count++] = (struct crossover){.first = study->designs[a],
                                               .second = study->designs[b],
                                               .what_if = what_if,
                                               .is_of_target = is_of_target,
                                               .global_batch = study->job.global_batch};
        }
    }
    return count;
}

enum status crossover_list_make(const struct study *study, struct crossover_list *ret_list)
{
    size_t pairs = study->design_count * (study->design_count - 1) / 2, count = 0;
    size_t measures = study->convergence != NULL ? 2 : 1;
    if (pairs == 0 || study->worker_count < 2) {
        *ret_list = (struct crossover_list){NULL, 0};
        return STATUS_OK;
    }
    struct memo *memo = memo_create();
    struct crossover *list = calloc(pairs * measures * (1 + study->what_if_count), sizeof(*list));
    if (list == NULL || memo == NULL) {
        free(list);
        memo_destroy(memo);
        return STATUS_NO_MEMORY;
    }
    for (size_t change = 0; change <= study->what_if_count; change++) {
        const struct what_if *what_if = change > 0 ? &study->what_ifs[change - 1] : NULL;
        for (size_t measure = 0; measure < measures; measure++) {
            count += list_pairs(study, what_if, measure > 0, &list[count]);
        }
    }
    struct search search = {study, memo, list};
    enum status status = parallel_run(count, study->threads, search_pair, &search);
    memo_destroy(memo);
    if (status != STATUS_OK) {
        free(list);
        return status;
    }
    *ret_list = (struct crossover_list){list, count};
    return STATUS_OK;
}

void crossover_list_finish(struct crossover_list *list)
{
    free(list->list);
    *list = (struct crossover_list){NULL, 0};
}

/* "ring is ahead", "neither is ahead" */
static void write_lead(const struct crossover *crossover, enum crossover_lead lead,
                       const char *verb, char ret_text[LEAD_BYTES])
{
    const struct study_design design =
        lead == CROSSOVER_FIRST ? crossover->first : crossover->second;
    snprintf(ret_text, LEAD_BYTES, "%s%s",
             lead == CROSSOVER_UNKNOWN   ? "it is not known"
             : lead == CROSSOVER_NEITHER ? "neither"
                                         : study_design_text(design).text,
             lead == CROSSOVER_UNKNOWN ? "" : verb);
}

static double lead_percent(const struct crossover_rates *rates)
{
    double most = fmax(rates->first, rates->second), least = fmin(rates->first, rates->second);
    return least > 0 ? 100 * (most / least - 1) : 0;
}

/* Behind a number of workers that nobody asked for: that they cannot share the batch evenly. */
static void print_share(const struct crossover *crossover, uint32_t workers, FILE *stream)
{
    uint32_t all = crossover->global_batch;
    if (all % workers > 0) {
        fprintf(stream, " [%u images are not divisible by %u workers: some have %u, some %u]", all,
                workers, all / workers + 1, all / workers);
    }
}

static void print_one(const struct crossover *crossover, FILE *stream)
{
    const struct crossover_turn *first = &crossover->turns[0];
    char text[LEAD_BYTES];
    write_lead(crossover, first->ahead, " is ahead", text);
    fprintf(stream, "- %s against %s%s%s: ", study_design_text(crossover->first).text,
            study_design_text(crossover->second).text, crossover->what_if != NULL ? ", if " : "",
            crossover->what_if != NULL ? crossover->what_if->text : "");
    if (crossover->turn_count == 1 && first->ahead == CROSSOVER_UNKNOWN) {
        fprintf(stream, "not known\n");
        return;
    }
    if (crossover->turn_count == 1 && first->ahead == CROSSOVER_NEITHER) {
        fprintf(stream, "neither is ahead from N = %u to %u\n", first->workers,
                crossover->workers_last);
        return;
    }
    if (crossover->turn_count == 1) {
        fprintf(stream, "%s from N = %u to %u (at %u by %.1f %%)\n", text, first->workers,
                crossover->workers_last, crossover->workers_last,
                lead_percent(&crossover->rates_last));
        return;
    }
    fprintf(stream, "at N = %u %s", first->workers, text);
    for (size_t i = 1; i < crossover->turn_count; i++) {
        const struct crossover_turn *turn = &crossover->turns[i];
        write_lead(crossover, turn->ahead, "", text);
        fprintf(stream, ", from N = %u on %s", turn->workers, text);
        if (turn->ahead != CROSSOVER_UNKNOWN) {
            fprintf(stream, " (by %.1f %%)", lead_percent(&turn->rates));
        }
        print_share(crossover, turn->workers, stream);
    }
    if (ahead(&crossover->rates_last) == CROSSOVER_UNKNOWN) {
        fprintf(stream, "\n");
        return;
    }
    fprintf(stream, "; at N = %u the lead is %.1f %%\n", crossover->workers_last,
            lead_percent(&crossover->rates_last));
}

static void print_measure(const struct crossover_list *list, bool is_of_target, FILE *stream)
{
    size_t count = 0;
    for (size_t i = 0; i < list->count; i++) {
        if (list->list[i].is_of_target == is_of_target) {
            if (count++ == 0) {
                fprintf(stream, "\nWho is ahead, by %s:\n",
                        is_of_target ? "time to target" : "images/s");
            }
            print_one(&list->list[i], stream);
        }
    }
}

void crossover_print(const struct crossover_list *list, FILE *stream)
{
    if (list->count == 0) {
        return;
    }
    print_measure(list, false, stream);
    print_measure(list, true, stream);
    fprintf(stream, "A lead that comes and goes between two of the numbers of --workers is not "
                    "seen.\n");
}

static json_t *design_json(struct study_design design)
{
    return json_pack("{s:s, s:I}", "mode", mode_text(design.mode).text, "servers",
                     (json_int_t)design.servers);
}

/* Rates as they are called: images/s, or seconds to the target, which may be unknown. */
static json_t *rate_json(const struct crossover *crossover, double rate)
{
    if (rate < 0) {
        return json_null();
    }
    return json_real(crossover->is_of_target ? 1 / rate : rate);
}

static json_t *turns_json(const struct crossover *crossover)
{
    static const char *const names[] = {[CROSSOVER_SECOND] = "second",
                                        [CROSSOVER_NEITHER] = "neither",
                                        [CROSSOVER_FIRST] = "first",
                                        [CROSSOVER_UNKNOWN] = "unknown"};
    static const char *const keys[][2] = {{"first_images_per_s", "second_images_per_s"},
                                          {"first_to_target_s", "second_to_target_s"}};
    const char *const *key = keys[crossover->is_of_target];
    json_t *turns = json_array();
    for (size_t i = 0; i < crossover->turn_count; i++) {
        const struct crossover_turn *turn = &crossover->turns[i];
        json_array_append_new(turns,
                              json_pack("{s:I, s:s, s:o, s:o}", "workers_from",
                                        (json_int_t)turn->workers, "ahead", names[turn->ahead],
                                        key[0], rate_json(crossover, turn->rates.first), key[1],
                                        rate_json(crossover, turn->rates.second)));
    }
    return turns;
}

json_t *crossover_json(const struct crossover_list *list, const struct what_if *what_if)
{
    json_t *made = json_array();
    for (size_t i = 0; i < list->count; i++) {
        const struct crossover *crossover = &list->list[i];
        if (crossover->what_if == what_if) {
            json_array_append_new(
                made,
                json_pack("{s:o, s:o, s:s, s:I, s:o}", "first", design_json(crossover->first),
                          "second", design_json(crossover->second), "by",
                          crossover->is_of_target ? "to_target" : "images_per_s", "workers_to",
                          (json_int_t)crossover->workers_last, "turns", turns_json(crossover)));
        }
    }
    return made;
}
