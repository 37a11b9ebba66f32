/* Plans jobs whose workers are apart. */
#include "deploy/command/calibration_apart.h"

#include "common/base/cores.h"
#include "common/job/job.h"
#include "deploy/report/run_folder.h"

#include <jansson.h>

#include <stdint.h>
#include <string.h>

bool calibration_apart_is(int kind)
{
    return kind == CALIBRATION_APART || kind == CALIBRATION_APART_AGAIN;
}

bool calibration_apart_may_be(const struct calibration_jobs *jobs)
{
    return jobs->job.steps > 1 && jobs->job.steps <= UINT32_MAX &&
           jobs->job.eval == EVALUATION_NONE && !host_options_name_hosts(&jobs->session.hosts) &&
           jobs->job.workers <= cores_available();
}

/* Takes a job off the list that was not made yet. */
static void remove_job(struct calibration_jobs *jobs, size_t index)
{
    size_t behind = --jobs->count - index;
    memmove(&jobs->kinds[index], &jobs->kinds[index + 1], behind * sizeof(jobs->kinds[0]));
    memmove(&jobs->list[index], &jobs->list[index + 1], behind * sizeof(jobs->list[0]));
}

void calibration_apart_fit(struct calibration_jobs *jobs)
{
    struct run_folder run;
    uint64_t samples = 0;
    if (run_folder_open(jobs->folders[0], &run) == STATUS_OK) {
        samples = (uint64_t)json_integer_value(json_object_get(run.job, "train_samples"));
        run_folder_close(&run);
    }
    for (size_t i = jobs->count; i-- > 0;) {
        struct job *job = &jobs->list[i];
        if (!calibration_apart_is(jobs->kinds[i])) {
            continue;
        }
        uint64_t most = job_steps_per_epoch(job, samples);
        if (most < CALIBRATION_STEPS_LEAST) {
            remove_job(jobs, i);
        } else if (job->steps > most) {
            job->steps = most;
            job->sync_every = (uint32_t)most;
        }
    }
}
