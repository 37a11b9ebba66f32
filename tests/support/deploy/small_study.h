/* A study of a few hosts, whose jobs are predicted in milliseconds. */
#ifndef TESTS_SUPPORT_DEPLOY_SMALL_STUDY_H
#define TESTS_SUPPORT_DEPLOY_SMALL_STUDY_H

#include "deploy/predict/study/study.h"

#include <stdint.h>

struct small_study {
    struct costs costs;
    struct network network; // owns its lists
    struct study study;
};

/* So many hosts below one switch, with 1 Gbit/s and a place for a worker each. Layers of 4 and 2
 * million parameters. The lists are as of the command line. NULL: they are wrong. */
struct small_study *small_study_create(uint32_t hosts, const char *modes, const char *servers,
                                       const char *workers);
void small_study_destroy(struct small_study *small);

#endif
