/* From how many workers on one design is ahead of another. */
#ifndef DEPLOY_PREDICT_ADVISE_CROSSOVER_H
#define DEPLOY_PREDICT_ADVISE_CROSSOVER_H

#include "common/base/status.h"
#include "deploy/predict/study/study.h"

#include <jansson.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define CROSSOVER_TURNS_MAX 16

enum crossover_lead { CROSSOVER_SECOND, CROSSOVER_NEITHER, CROSSOVER_FIRST, CROSSOVER_UNKNOWN };

/* Images per second of the two designs, or jobs that reach their target in a second. Below 0: not
 * known. */
struct crossover_rates {
    double first, second;
};

/* From so many workers on, until the next turn, one of them is ahead. */
struct crossover_turn {
    uint32_t workers;
    enum crossover_lead ahead;
    struct crossover_rates rates;
};

struct crossover {
    struct study_design first, second;
    const struct what_if *what_if; // NULL: as things are; borrowed
    bool is_of_target;             // by time to target; otherwise by images/s
    uint32_t global_batch;         // that all workers share; 0: none
    struct crossover_turn turns[CROSSOVER_TURNS_MAX];
    size_t turn_count;     // at least 1
    uint32_t workers_last; // of the numbers that were asked for
    struct crossover_rates rates_last;
};

/* `measure` has the rates at a number of workers. Looks at ascending numbers of workers, and
 * between two of them where another one is ahead: there, half of what is left each time. A lead
 * that comes and goes between two of them is not seen. With more turns than there is room for, the
 * last ones are left out. */
enum status crossover_search(const uint32_t *workers, size_t count,
                             enum status (*measure)(void *context, uint32_t workers,
                                                    struct crossover_rates *ret_rates),
                             void *context, struct crossover *ret_crossover);

struct crossover_list {
    struct crossover *list; // owned
    size_t count;
};

/* Of each two designs of a study that was made, as things are and with each change, by images/s
 * and, with a table of convergence, by time to target; none where there is one design or one number
 * of workers. Each design is predicted once at a number of workers. crossover_list_finish. Logs. */
enum status crossover_list_make(const struct study *study, struct crossover_list *ret_list);
void crossover_list_finish(struct crossover_list *list);

void crossover_print(const struct crossover_list *list, FILE *stream);

/* Those of a change, or, for NULL, as things are. NULL: no memory. The caller owns it. */
json_t *crossover_json(const struct crossover_list *list, const struct what_if *what_if);

#endif
