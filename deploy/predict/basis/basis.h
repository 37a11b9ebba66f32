/* What a point is predicted from: a copy of job, costs and network, which may be changed. */
#ifndef DEPLOY_PREDICT_BASIS_BASIS_H
#define DEPLOY_PREDICT_BASIS_BASIS_H

#include "common/job/job.h"
#include "deploy/predict/basis/costs.h"
#include "deploy/predict/basis/network.h"

struct basis {
    struct job job;
    struct costs costs;
    struct network network; // owns its lists
};

/* NULL: no memory. */
struct basis *basis_create(const struct job *job, const struct costs *costs,
                           const struct network *network);
void basis_destroy(struct basis *basis); // NULL is fine

#endif
