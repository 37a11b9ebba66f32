/* Finds where the lead between two designs changes hands, and says it. */
#include "deploy/predict/crossover.h"

#include "deploy/predict/parallel.h"

#include <math.h>
#include <stdlib.h>

#define LEVEL 1e-9 // a difference of less is rounding

static int ahead(const struct crossover_rates *rates)
{
    double difference = rates->first - rates->second;
    if (fabs(difference) <= LEVEL * fmax(rates->first, rates->second)) {
        return 0;
    }
    return difference > 0 ? 1 : -1;
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
static enum status find_turn(uint32_t low, int lead,
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
        int lead = ahead(&rates);
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
    const struct crossover *crossover;
};

static enum status find_rate(const struct pair *pair, struct study_design design, uint32_t workers,
                             double *ret_rate)
{
    const struct study *study = pair->study;
    const struct what_if *what_if = pair->crossover->what_if;
    size_t total = study->point_count * (1 + study->what_if_count);
    for (size_t i = 0; i < total; i++) {
        const struct study_point *made = &study->points[i];
        if (made->workers == workers && made->what_if == what_if &&
            made->design.servers == design.servers && made->design.mode.kind == design.mode.kind &&
            made->design.mode.slack_steps == design.mode.slack_steps) {
            *ret_rate = made->made.images_per_s;
            return STATUS_OK;
        }
    }
    const struct study_point point = {.design = design, .workers = workers, .what_if = what_if};
    struct prediction made;
    struct basis *basis = NULL;
    enum status status = study_make_basis(study, &point, &basis);
    if (status == STATUS_OK) {
        status = study_predict(study, basis, &made);
    }
    basis_destroy(basis);
    if (status == STATUS_OK) {
        *ret_rate = made.images_per_s;
    }
    return status;
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
    struct crossover *list;
};

static enum status search_pair(void *context, size_t index)
{
    const struct search *search = context;
    struct pair pair = {search->study, &search->list[index]};
    return crossover_search(search->study->workers, search->study->worker_count, measure_pair,
                            &pair, &search->list[index]);
}

enum status crossover_list_make(const struct study *study, struct crossover_list *ret_list)
{
    size_t pairs = study->design_count * (study->design_count - 1) / 2, count = 0;
    if (pairs == 0 || study->worker_count < 2) {
        *ret_list = (struct crossover_list){NULL, 0};
        return STATUS_OK;
    }
    struct crossover *list = calloc(pairs * (1 + study->what_if_count), sizeof(*list));
    if (list == NULL) {
        return STATUS_NO_MEMORY;
    }
    for (size_t change = 0; change <= study->what_if_count; change++) {
        for (size_t a = 0; a < study->design_count; a++) {
            for (size_t b = a + 1; b < study->design_count; b++) {
                list[count++] =
                    (struct crossover){.first = study->designs[a],
                                       .second = study->designs[b],
                                       .what_if = change > 0 ? &study->what_ifs[change - 1] : NULL};
            }
        }
    }
    struct search search = {study, list};
    enum status status = parallel_run(count, study->threads, search_pair, &search);
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

/* "ring", "neither" */
static struct study_design_text leader(const struct crossover *crossover, int lead)
{
    static const struct study_design_text neither = {"neither"};
    return lead == 0 ? neither : study_design_text(lead > 0 ? crossover->first : crossover->second);
}

static double lead_percent(const struct crossover_rates *rates)
{
    double most = fmax(rates->first, rates->second), least = fmin(rates->first, rates->second);
    return least > 0 ? 100 * (most / least - 1) : 0;
}

static void print_one(const struct crossover *crossover, FILE *stream)
{
    const struct crossover_turn *first = &crossover->turns[0];
    struct study_design_text text = leader(crossover, first->ahead);
    fprintf(stream, "- %s against %s%s%s: ", study_design_text(crossover->first).text,
            study_design_text(crossover->second).text, crossover->what_if != NULL ? ", if " : "",
            crossover->what_if != NULL ? crossover->what_if->text : "");
    if (crossover->turn_count == 1) {
        fprintf(stream, "%s is ahead from N = %u to %u (at %u by %.1f %%)\n", text.text,
                first->workers, crossover->workers_last, crossover->workers_last,
                lead_percent(&crossover->rates_last));
        return;
    }
    fprintf(stream, "at N = %u %s is ahead", first->workers, text.text);
    for (size_t i = 1; i < crossover->turn_count; i++) {
        const struct crossover_turn *turn = &crossover->turns[i];
        text = leader(crossover, turn->ahead);
        fprintf(stream, ", from N = %u on %s (by %.1f %%)", turn->workers, text.text,
                lead_percent(&turn->rates));
    }
    fprintf(stream, "; at N = %u the lead is %.1f %%\n", crossover->workers_last,
            lead_percent(&crossover->rates_last));
}

void crossover_print(const struct crossover_list *list, FILE *stream)
{
    if (list->count == 0) {
        return;
    }
    fprintf(stream, "\nWho is ahead, by images/s:\n");
    for (size_t i = 0; i < list->count; i++) {
        print_one(&list->list[i], stream);
    }
    fprintf(stream, "A lead that comes and goes between two of the numbers of --workers is not "
                    "seen.\n");
}

static json_t *design_json(struct study_design design)
{
    return json_pack("{s:s, s:I}", "mode", mode_text(design.mode).text, "servers",
                     (json_int_t)design.servers);
}

static json_t *turns_json(const struct crossover *crossover)
{
    static const char *const names[] = {"second", "neither", "first"};
    json_t *turns = json_array();
    for (size_t i = 0; i < crossover->turn_count; i++) {
        const struct crossover_turn *turn = &crossover->turns[i];
        json_array_append_new(
            turns, json_pack("{s:I, s:s, s:f, s:f}", "workers_from", (json_int_t)turn->workers,
                             "ahead", names[turn->ahead + 1], "first_images_per_s",
                             turn->rates.first, "second_images_per_s", turn->rates.second));
    }
    return turns;
}

json_t *crossover_json(const struct crossover_list *list, const struct what_if *what_if)
{
    json_t *made = json_array();
    for (size_t i = 0; i < list->count; i++) {
        const struct crossover *crossover = &list->list[i];
        if (crossover->what_if == what_if) {
            json_array_append_new(made, json_pack("{s:o, s:o, s:I, s:o}", "first",
                                                  design_json(crossover->first), "second",
                                                  design_json(crossover->second), "workers_to",
                                                  (json_int_t)crossover->workers_last, "turns",
                                                  turns_json(crossover)));
        }
    }
    return made;
}
