/* What a study is about, as lists of people: "ps-sync,ring", "1,4", "2,8". */
#ifndef DEPLOY_PREDICT_STUDY_STUDY_LISTS_H
#define DEPLOY_PREDICT_STUDY_STUDY_LISTS_H

#include "common/base/status.h"
#include "deploy/predict/study/study.h"

#include <stdbool.h>
#include <stddef.h>

#define STUDY_LIST_BYTES 256

/* Fills in designs, numbers of workers and points. Logs what is wrong, by the option's name. */
enum status study_take_lists(const char *modes, const char *servers, const char *workers,
                             struct study *study);

/* Fills in changes, of a list separated by semicolons, before the points. Logs. */
enum status study_take_what_ifs(const char *what_ifs, struct study *study);

/* Whether a list of changes is right; otherwise the reason. As struct option has it. */
bool study_what_ifs_are_valid(const char *text, char *ret_why, size_t why_size);

#endif
