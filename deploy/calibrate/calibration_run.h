/* A run that costs are read from: its job, its hosts, and what its timeline shows. */
#ifndef DEPLOY_CALIBRATE_CALIBRATION_RUN_H
#define DEPLOY_CALIBRATE_CALIBRATION_RUN_H

#include "common/base/status.h"
#include "common/codec/codec.h"
#include "common/job/job_options.h"
#include "deploy/calibrate/observation.h"
#include "deploy/predict/basis/conditions.h"
#include "deploy/report/run_folder.h"

#include <stdbool.h>
#include <stdint.h>

#define CALIBRATION_HOSTS_MAX 256

struct calibration_host {
    char name[TIMELINE_TEXT_BYTES];
    uint32_t workers, servers; // that ran there
    uint32_t cores;            // that they might use; 0: the timeline does not say
    uint64_t machine;          // whose cores these are; 0: likewise
};

/* Large: on the heap. */
struct calibration_run {
    struct run_folder folder;
    char name[160]; // "runs/a (ring, N = 2)": what notes call it
    uint32_t workers, batch;
    uint32_t threads; // that each worker computed with; 0: not known
    uint64_t parameters;
    double start_s, agents_s; // until its first step, and before (calibration_launch.h); 0: unknown
    double bucket_mb;
    bool is_apart; // its workers exchanged nothing before the last step, so that none waited
    char compress[CODEC_TEXT_BYTES]; // "none"
    char transport[16];              // of values, "shm"; "" or "none": none travelled
    char security[16];               // of tcp (conditions.h); "": another transport, or not known
    struct calibration_host hosts[CALIBRATION_HOSTS_MAX]; // (host_count)
    uint32_t host_count;
    struct observation observation;
};

/* Whether all processes had the same cores: they were on one host, or on hosts of one machine. */
bool calibration_run_has_one_machine(const struct calibration_run *run);

/* Whether values travelled between its processes, by messages or in shared memory. */
bool calibration_run_moves_values(const struct calibration_run *run);

/* Whether its messages had loans of values, which its processes read where they are. */
bool calibration_run_lends(const struct calibration_run *run);

/* Whether gradients were in codes, so that the run shows what those take, and not what messages do
 * without. */
bool calibration_run_has_codes(const struct calibration_run *run);

/* What codes leave of the bytes of values, as a share: 1 without codes. Timelines have the bytes of
 * values. */
double calibration_run_coded_share(const struct calibration_run *run);

/* Whether a job with this value of an option has steps or messages other than those that a
 * prediction goes through. The value is as option_format writes it. A run whose --sync-every is as
 * long as the run is read nevertheless: see is_apart. */
bool calibration_refuses(const char *option, const char *value);

/* Reads a run folder. Refuses runs that were not completed, that have no timeline or one in
 * which no worker computes, and those whose steps are others than those that a prediction goes
 * through. Logs. */
enum status calibration_run_read(const char *path, struct calibration_run *ret_run);
void calibration_run_finish(struct calibration_run *run); // zeroed is fine

/* Adds the run's model, transport, security and hosts. */
void calibration_run_tell(const struct calibration_run *run, struct conditions *conditions);

/* A copy of an option of the run's job, as text, or an empty one. */
void calibration_run_option(const struct calibration_run *run, const char *name, char *ret_text,
                            size_t text_size);

/* A job with the defaults, and those options of the run's job that are named and that it has.
 * STATUS_INVALID, and why: it has one that no job of this version may have. */
enum status calibration_run_job(const struct calibration_run *run, const char *const *names,
                                size_t count, struct job *ret_job,
                                char ret_error[OPTION_ERROR_BYTES]);

#endif
