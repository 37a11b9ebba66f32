/* What the command line of ringside predict says. */
#ifndef DEPLOY_COMMAND_PREDICT_OPTIONS_H
#define DEPLOY_COMMAND_PREDICT_OPTIONS_H

#include "common/base/status.h"
#include "common/job/job.h"
#include "common/options/options.h"
#include "deploy/predict/advise/advice.h"
#include "deploy/predict/study/study_lists.h"
#include "deploy/system/command_text.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct predict_options {
    char costs[JOB_PATH_BYTES], network[JOB_PATH_BYTES];
    char convergence[JOB_PATH_BYTES], out[JOB_PATH_BYTES];
    char modes[STUDY_LIST_BYTES], workers[STUDY_LIST_BYTES], servers[STUDY_LIST_BYTES];
    char what_ifs[WHAT_IFS_MAX * WHAT_IF_TEXT_BYTES];
    uint32_t batch, global_batch, steps, gradients_per_update, backup, sync_every, threads;
    enum all_reduce_choice all_reduce;
    enum transport_kind transport;
    struct codec compress;
    double bucket_mb;
    char straggler[JOB_PATH_BYTES], faults[JOB_PATH_BYTES];
    uint64_t job_steps;
    uint64_t seed;
    bool approximate, advise, json;
    bool is_kept[ADVICE_AXES]; // of the axes of advice: a value was given
    bool takes_places;         // as many workers as the network has places for
    char command[COMMAND_TEXT_BYTES];
};

extern const struct option predict_option_rows[]; // (predict_option_count), of the struct
extern const size_t predict_option_count;

/* Refuses options of jobs that the model does not read: they would change nothing. Logs. */
enum status predict_options_check_model(int argc, char *const *argv);

#endif
