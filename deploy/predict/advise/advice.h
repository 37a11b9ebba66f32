/* Which design is best for given costs and hosts, by how much, and why. */
#ifndef DEPLOY_PREDICT_ADVISE_ADVICE_H
#define DEPLOY_PREDICT_ADVISE_ADVICE_H

#include "common/base/status.h"
#include "deploy/predict/advise/advice_axes.h"
#include "deploy/predict/advise/advice_search.h"
#include "deploy/predict/study/study.h"

#include <jansson.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define ADVICE_MODES_MAX 16

/* What a choice brings, in shares of the speed; NAN: that cannot be, or takes too long to simulate.
 */
struct advice_gain {
    enum advice_axis_kind axis;
    double alone;      // with this choice alone, against the defaults
    double taken_back; // the best with the default here, against the best: below 0
};

/* The best that a mode can be. */
struct advice_design {
    struct mode mode;
    struct advice_values values[ADVICE_AXES];
    struct advice_found found;
    struct study_point before, after; // with the defaults, and with what was found
    bool is_of_target;                // speed is by time to target; otherwise by images/s
    double speed_before, speed_after;
    struct advice_gain gains[ADVICE_AXES]; // of what was changed
    size_t gain_count;
    bool has_left_out;        // combinations that take too long to simulate, or too much memory
    bool is_before_too_large; // likewise the defaults: nothing is known of them
    bool is_too_large;        // all of them, or what was found without one of its costs
    bool is_apart;            // other convergence than those that are not, or not known
};

struct advice {
    uint32_t workers;
    const struct what_if *what_if;                  // NULL: as things are; borrowed
    struct advice_design designs[ADVICE_MODES_MAX]; // the best first; then those apart,
    size_t count, known;                            // and behind the known ones the too large
    size_t start; // the design whose defaults are those of the product
};

struct advice_list {
    struct advice *list; // (count), owned
    size_t count;
};

/* For each number of workers of a study and each change, among its modes. is_kept: axes whose
 * values the command line has given; servers are then those of the study's designs. What takes more
 * memory than it may is left out; STATUS_NO_MEMORY if that is everything. advice_list_finish.
 * Logs. */
enum status advice_list_make(const struct study *study, const bool is_kept[ADVICE_AXES],
                             struct advice_list *ret_list);
void advice_list_finish(struct advice_list *list);

/* The basis of a design with its best values. NULL: no memory. */
struct basis *advice_basis(const struct study *study, const struct advice *advice,
                           const struct advice_design *design);

/* Tables and sentences. */
void advice_print(const struct study *study, const struct advice_list *list, FILE *stream);

/* NULL: no memory. The caller owns it. */
json_t *advice_json(const struct study *study, const struct advice_list *list);

#endif
