/* What a study read from its files, printed back in units of both kinds. */
#ifndef DEPLOY_PREDICT_STUDY_STUDY_BASIS_H
#define DEPLOY_PREDICT_STUDY_STUDY_BASIS_H

#include "deploy/predict/study/study.h"

#include <stdio.h>

/* Costs and network, each with all its bandwidths: who wrote GB for Gbit sees it there. Of hosts
 * and switches that are alike (study_groups.h), the first is named. */
void study_print_basis(const struct study *study, FILE *stream);

#endif
