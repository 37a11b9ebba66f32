/* Which design of a study is the fastest at each number of workers, were links faster or slower. */
#ifndef DEPLOY_PREDICT_ADVISE_WINNERS_H
#define DEPLOY_PREDICT_ADVISE_WINNERS_H

#include "common/base/status.h"
#include "deploy/predict/study/study.h"

#include <stddef.h>

#define WINNERS_FACTORS 7
#define WINNERS_NONE    SIZE_MAX

extern const double winners_factors[WINNERS_FACTORS]; // of bandwidths of all links, ascending

struct winner {
    size_t design; // of the study; WINNERS_NONE: not known
    double lead;   // before the next, as a share of it; 0 where there is one design
};

/* Cells by number of workers, then by factor. */
struct winners {
    struct winner cells[STUDY_POINTS_MAX][WINNERS_FACTORS];
};

/* Of a study that was made: by time to target where it has a table of convergence, otherwise by
 * images/s. Logs. */
enum status winners_make(const struct study *study, struct winners *ret_winners);

/* The bandwidth of the first host with a factor. */
double winners_bandwidth(const struct study *study, size_t factor);

#endif
