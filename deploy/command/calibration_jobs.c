/* Runs short jobs with timelines. */
#include "deploy/command/calibration_jobs.h"

#include "common/base/clock.h"
#include "common/base/cores.h"
#include "common/base/log.h"
#include "common/base/number.h"
#include "common/base/slice.h"
#include "common/job/job_effects.h"
#include "common/job/job_modes.h"
#include "common/job/job_options.h"
#include "common/job/job_resolve.h"
#include "common/options/log_level.h"
#include "deploy/calibrate/calibration_launch.h"
#include "deploy/calibrate/calibration_run.h"
#include "deploy/calibrate/observation.h"
#include "deploy/command/calibration_apart.h"
#include "deploy/system/folder.h"

#include <jansson.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STEPS        60
#define SMALL_PARTS  16   // of the usual bucket
#define SMALL_MB_MIN 0.01 // of a bucket
#define LONG_SLICES  3    // of a step that is long enough

static const struct {
    const char *name; // of the folder
    enum mode_kind mode;
} plan[CALIBRATION_KINDS] = {
    [CALIBRATION_LOCAL] = {"local", MODE_LOCAL},
    [CALIBRATION_BATCH] = {"local-batch", MODE_LOCAL},
    [CALIBRATION_RING] = {"ring", MODE_RING},
    [CALIBRATION_APART] = {"ring-apart", MODE_RING},
    [CALIBRATION_SMALL] = {"ring-small-buckets", MODE_RING},
    [CALIBRATION_SERVERS] = {"ps-sync", MODE_PS_SYNC},
    [CALIBRATION_CODES] = {"ps-sync-compress", MODE_PS_SYNC},
    [CALIBRATION_APART_AGAIN] = {"ring-apart-again", MODE_RING},
    [CALIBRATION_AGAIN] = {"local-again", MODE_LOCAL},
    [CALIBRATION_TURNS] = {"ring-few-cores", MODE_RING},
    [CALIBRATION_LONG] = {"local-long-steps", MODE_LOCAL},
    [CALIBRATION_LONG_TURNS] = {"ring-few-cores-long-steps", MODE_RING},
};

/* Options that are given to all jobs, where the user has said nothing. */
static void fill_job(struct calibration_jobs *jobs, const struct option_program *program)
{
    struct job *job = &jobs->job;
    if (!options_was_given(program, "steps") && !options_was_given(program, "epochs")) {
        job->steps = STEPS;
    }
    if (!options_was_given(program, "eval")) {
        job->eval = EVALUATION_NONE;
    }
    if (!options_was_given(program, "transport")) {
        job->transport = TRANSPORT_TCP; // what predictions model: messages
    }
    bool may_share =
        job->transport == TRANSPORT_SHM ||
        (job->transport == TRANSPORT_AUTO && !host_options_name_hosts(&jobs->session.hosts));
    if (job->compress.kind != CODEC_NONE && may_share) {
        job->transport = TRANSPORT_IPC; // codes lie in no memory that others see
    }
    if (job->threads == 0 && !host_options_name_hosts(&jobs->session.hosts)) {
        // Alone, a worker would take the cores of those that it has beside it later.
        uint32_t threads = cores_available() / job->workers;
        job->threads = threads > 0 ? threads : 1;
    }
    job->timeline = true;
}

static enum status check_asked(const struct calibration_jobs *jobs,
                               const struct option_program *program, char *ret_error)
{
    char text[OPTION_VALUE_BYTES];
    if (options_was_given(program, "mode")) {
        snprintf(ret_error, OPTION_ERROR_BYTES,
                 "--mode: calibrate runs local, ring and ps-sync itself; leave it out");
        return STATUS_INVALID;
    }
    if (jobs->job.workers < 2 || jobs->job.processes != 0) {
        snprintf(ret_error, OPTION_ERROR_BYTES,
                 "calibrate needs 2 workers or more, with a process each, to see messages between "
                 "them; leave out --processes, and --workers or hosts with fewer");
        return STATUS_INVALID;
    }
    if (jobs->job.steps > 0 && jobs->job.steps < CALIBRATION_STEPS_LEAST) {
        snprintf(ret_error, OPTION_ERROR_BYTES,
                 "--steps %llu are too few: the first %d and the last are not counted, and 2 have "
                 "to be left; give %llu at least",
                 (unsigned long long)jobs->job.steps, OBSERVATION_WARM_STEPS,
                 (unsigned long long)CALIBRATION_STEPS_LEAST);
        return STATUS_INVALID;
    }
    for (size_t i = 0; i < job_option_count; i++) {
        option_format(&job_options[i], &jobs->job, text, sizeof(text));
        if (calibration_refuses(job_options[i].name, text)) {
            snprintf(ret_error, OPTION_ERROR_BYTES,
                     "--%s %.60s: its steps do not show what plain ones cost; leave it out",
                     job_options[i].name, text);
            return STATUS_INVALID;
        }
    }
    return STATUS_OK;
}

enum status calibration_jobs_take_batches(const char *text, struct calibration_jobs *jobs)
{
    bool has_more = text[0] != '\0';
    for (const char *at = text; has_more;) {
        size_t size = strcspn(at, ",");
        uint64_t batch = 0;
        if (!number_whole(at, size, JOB_BATCH_MAX, &batch) || batch < 1) {
            log_error("--batches %s: '%.*s' has to be a whole number from 1 to %d", text, (int)size,
                      at, JOB_BATCH_MAX);
            return STATUS_INVALID;
        }
        for (size_t i = 0; i < jobs->batch_count; i++) {
            if (jobs->batches[i] == batch) {
                log_error("--batches %s has %u twice", text, jobs->batches[i]);
                return STATUS_INVALID;
            }
        }
        if (jobs->batch_count == CALIBRATION_BATCHES_MAX) {
            log_error("--batches %s has more than %d entries", text, CALIBRATION_BATCHES_MAX);
            return STATUS_INVALID;
        }
        jobs->batches[jobs->batch_count++] = (uint32_t)batch;
        has_more = at[size] == ',';
        at += size + 1;
    }
    return STATUS_OK;
}

/* Which jobs there are, in their order. */
static void list_kinds(struct calibration_jobs *jobs)
{
    for (int kind = 0; kind < CALIBRATION_LONG; kind++) {
        bool has_codes = jobs->job.compress.kind != CODEC_NONE;
        bool knows_cores = jobs->job.threads == 1; // of several threads only one is known
        size_t count = kind == CALIBRATION_BATCH    ? jobs->batch_count
                       : calibration_apart_is(kind) ? knows_cores && calibration_apart_may_be(jobs)
                       : kind == CALIBRATION_CODES  ? has_codes
                       : kind == CALIBRATION_AGAIN  ? knows_cores
                                                    : 1;
        for (size_t i = 0; i < count; i++) {
            jobs->kinds[jobs->count++] = kind;
        }
    }
}

/* Images of a worker's step in jobs with several workers, of which `ring` is the first. */
static uint32_t usual_batch(const struct calibration_jobs *jobs)
{
    size_t ring = 1 + jobs->batch_count;
    return jobs->list[ring].global_batch / jobs->job.workers;
}

/* A local job of the usual batch would be the first one again. */
static enum status check_batches(const struct calibration_jobs *jobs, char *ret_error)
{
    uint32_t usual = usual_batch(jobs);
    for (size_t i = 0; i < jobs->batch_count; i++) {
        if (jobs->batches[i] == usual) {
            snprintf(ret_error, OPTION_ERROR_BYTES,
                     "--batches has %u, which is what all jobs have; name others", usual);
            return STATUS_INVALID;
        }
    }
    return STATUS_OK;
}

/* Makes the list from its end: the local job in front has the usual batch. Nobody in it is slow. */
static enum status make_list(struct calibration_jobs *jobs, char *ret_error)
{
    enum status status = STATUS_OK;
    list_kinds(jobs);
    for (size_t i = jobs->count; i-- > 0 && status == STATUS_OK;) {
        struct job *job = &jobs->list[i];
        int kind = jobs->kinds[i];
        *job = jobs->job;
        job->mode.kind = plan[kind].mode;
        if (kind != CALIBRATION_CODES) {
            job->compress = (struct codec){.kind = CODEC_NONE};
        }
        if (kind == CALIBRATION_AGAIN) {
            continue; // as the first, which is made last
        }
        if (kind == CALIBRATION_LOCAL || kind == CALIBRATION_BATCH) {
            job->batch = kind == CALIBRATION_LOCAL ? usual_batch(jobs) : jobs->batches[i - 1];
            job->workers = 1;
            job->global_batch = 0;
            job->transport = TRANSPORT_AUTO;
            snprintf(job->straggler, sizeof(job->straggler), "none");
        }
        if (calibration_apart_is(kind)) {
            job->sync_every = (uint32_t)job->steps;
            snprintf(job->straggler, sizeof(job->straggler), "none");
        }
        if (kind == CALIBRATION_SMALL) {
            double small = job->bucket_mb / SMALL_PARTS;
            job->bucket_mb = small > SMALL_MB_MIN ? small : SMALL_MB_MIN;
        }
        status = job_resolve(job, ret_error, OPTION_ERROR_BYTES);
        if (status == STATUS_OK && job->global_batch % job->workers != 0) {
            snprintf(ret_error, OPTION_ERROR_BYTES,
                     "--global-batch %u: %u workers have to get the same number of images each",
                     job->global_batch, job->workers);
            return STATUS_INVALID;
        }
    }
    for (size_t i = 0; i < jobs->count && status == STATUS_OK; i++) {
        if (jobs->kinds[i] == CALIBRATION_AGAIN) {
            jobs->list[i] = jobs->list[0];
        }
    }
    return status;
}

enum status calibration_jobs_make(struct calibration_jobs *jobs,
                                  const struct option_program *program)
{
    char error[OPTION_ERROR_BYTES];
    struct job_list list = {jobs->list, CALIBRATION_JOBS_MAX, sizeof(jobs->list[0])};
    enum status status = host_options_fill(
        &jobs->session.hosts, options_was_given(program, "workers"), 0, &jobs->job.workers);
    if (status != STATUS_OK) {
        return status;
    }
    const struct job asked = jobs->job;
    if (job_is_external(&asked)) {
        log_error("--model %s is a program of one's own, whose layers Ringside does not see; "
                  "calibrate with one of its models",
                  asked.model);
        return STATUS_INVALID;
    }
    status = check_asked(jobs, program, error);
    if (status == STATUS_OK) {
        fill_job(jobs, program);
        status = make_list(jobs, error);
    }
    if (status == STATUS_OK) {
        status = check_batches(jobs, error);
    }
    list.count = jobs->count;
    if (status == STATUS_OK) {
        status = job_check_effects(program, &asked, &list, error, sizeof(error));
    }
    if (status != STATUS_OK) {
        log_error("%s", error);
        return status;
    }
    for (size_t i = 0; i < jobs->count && status == STATUS_OK; i++) {
        status = launch_check(&jobs->session.options.security, &jobs->list[i]);
    }
    return status;
}

/* Signals are blocked from here on, so that a temporary folder is removed. */
static enum status choose_folder(struct calibration_jobs *jobs, const char *folder)
{
    char *out = jobs->session.options.out;
    size_t size = sizeof(jobs->session.options.out);
    // NOLINTNEXTLINE(concurrency-mt-unsafe): nobody changes it
    const char *temporary = getenv("TMPDIR");
    launch_block_signals();
    if (folder[0] != '\0') {
        snprintf(out, size, "%s", folder);
        return STATUS_OK;
    }
    snprintf(out, size, "%s/ringside-calibrate-XXXXXX",
             temporary != NULL && temporary[0] != '\0' ? temporary : "/tmp");
    if (mkdtemp(out) == NULL) {
        log_error("cannot make the folder %s for runs: %m; name another one with --runs", out);
        return STATUS_IO;
    }
    jobs->is_temporary = true;
    return STATUS_OK;
}

/* Seconds of the clock that files have. */
static double wall_s(void)
{
    return 1e-9 * (double)clock_day_ns();
}

static enum status begin(struct calibration_jobs *jobs, const char *folder)
{
    double began_s = wall_s();
    enum status status = choose_folder(jobs, folder);
    if (status == STATUS_OK) {
        status = session_begin(&jobs->session, "calibrate", &jobs->list[0]);
    }
    if (status != STATUS_OK) {
        return status;
    }
    double tries_s = 0; // of all jobs but one: `run` tries one
    for (size_t i = 0; i < jobs->count; i++) {
        double try_began_s = wall_s();
        // Jobs whose workers are apart are as ring, and how long they may be is not known yet.
        if (!calibration_apart_is(jobs->kinds[i])) {
            preflight_try(&jobs->session.preflight, &jobs->list[i]);
        }
        tries_s += i > 0 ? wall_s() - try_began_s : 0;
    }
    status = session_end_preflight(&jobs->session, NULL);
    jobs->agents_s = wall_s() - began_s - tries_s;
    return status;
}

/* Launches a job, and keeps how long it took to begin, if its folder is written on this host. */
static enum exit_code launch_one(struct calibration_jobs *jobs, const struct launch_options *launch)
{
    struct launcher *launcher = &jobs->session.launcher;
    bool is_here = launcher->crew.links[launcher->coordinator].is_local;
    double launched_s = wall_s();
    enum exit_code code = launch_job(launcher, launch);
    return code == EXIT_COMPLETED && is_here
               ? exit_code(calibration_launch_write(launch->folder, launched_s, jobs->agents_s))
               : code;
}

static enum exit_code run_one(struct calibration_jobs *jobs, size_t index)
{
    const struct job *job = &jobs->list[index];
    char *folder = jobs->folders[index];
    int kind = jobs->kinds[index];
    char number[24] = "", images[40] = "";
    static const char *const how[CALIBRATION_KINDS] = {
        [CALIBRATION_APART] = ", no exchange before the last step",
        [CALIBRATION_APART_AGAIN] = ", no exchange before the last step, once more",
        [CALIBRATION_SMALL] = ", small buckets",
        [CALIBRATION_CODES] = ", --compress",
        [CALIBRATION_AGAIN] = ", once more",
        [CALIBRATION_TURNS] = ", on the cores of one",
        [CALIBRATION_LONG_TURNS] = ", on the cores of one",
    };
    if (kind == CALIBRATION_BATCH) {
        snprintf(number, sizeof(number), "-%u", job->batch);
    }
    if (kind == CALIBRATION_BATCH || kind >= CALIBRATION_LONG) {
        snprintf(images, sizeof(images), ", %u images a step", job->batch);
    }
    snprintf(folder, LAUNCH_PATH_MAX, "%s/%s%s", jobs->session.options.out, plan[kind].name,
             number);
    printf("[%zu/%zu] %s, %u worker%s%s%s\n", index + 1, jobs->count, mode_text(job->mode).text,
           job->workers, job->workers == 1 ? "" : "s", how[kind] != NULL ? how[kind] : "", images);
    fflush(stdout);
    if (session_make_folder(&jobs->session, folder, FOLDER_LOGS_NAME) != STATUS_OK) {
        return EXIT_FAILED;
    }
    const struct launch_options launch = {
        .job = job,
        .folder = folder,
        .security = &jobs->session.security,
        .log_level = log_level_choices[jobs->session.options.log_level].name,
    };
    if (kind != CALIBRATION_TURNS && kind != CALIBRATION_LONG_TURNS) {
        return launch_one(jobs, &launch);
    }
    const pid_t agent = jobs->session.launcher.crew.links[0].pid;
    if (!cores_leave_to(agent, job->threads)) {
        log_warn("the kernel keeps workers from sharing cores: what turns take stays unknown");
        jobs->count--;
        return EXIT_COMPLETED;
    }
    enum exit_code code = launch_one(jobs, &launch);
    (void)cores_leave_to(agent, 0);
    return code;
}

/* Whether all workers of the last job, TURNS, run here, and might have a core each: then they can
 * also be made to share fewer. */
static bool can_crowd(const struct calibration_jobs *jobs)
{
    const struct job *job = &jobs->list[jobs->count - 1];
    return !jobs->session.launcher.has_others && jobs->session.launcher.crew.count == 1 &&
           job->threads > 0 && job->threads < cores_available();
}

/* By how many times a batch has to be larger, so that its steps are as long as several turns. 1: it
 * need not be, or that is not known. */
static uint32_t find_longer(const struct calibration_jobs *jobs, size_t index)
{
    double slice_s = 1e-9 * (double)slice_to_tick(), step_s = 0, samples = 0;
    struct calibration_run *run = calloc(1, sizeof(*run));
    if (run != NULL && slice_s > 0 &&
        calibration_run_read(jobs->folders[index], run) == STATUS_OK) {
        // Not what passed: beside others, a step takes longer, and has as short turns.
        step_s = run->observation.cores.workers.compute_s;
        samples = json_number_value(json_object_get(run->folder.job, "train_samples"));
    }
    double times = step_s > 0 && step_s < slice_s ? ceil(LONG_SLICES * slice_s / step_s) : 1;
    double most = samples / jobs->job.workers / jobs->list[index].batch; // of the data
    times = times < most ? times : floor(most);
    if (run != NULL) {
        calibration_run_finish(run);
    }
    free(run);
    return times > 1 && times * jobs->list[index].batch <= JOB_BATCH_MAX ? (uint32_t)times : 1;
}

/* Adds jobs with longer steps where those of the others are shorter than turns: what a turn costs
 * shows little in these. */
static void add_long(struct calibration_jobs *jobs)
{
    size_t turns = jobs->count - 1, alone = turns - 1;
    char error[OPTION_ERROR_BYTES];
    bool is_known = jobs->job.threads == 1 && jobs->job.steps > 0;
    uint32_t times =
        is_known && jobs->batch_count < CALIBRATION_BATCHES_MAX ? find_longer(jobs, alone) : 1;
    struct job longer[2] = {jobs->list[alone], jobs->list[turns]};
    for (size_t i = 0; i < 2 && times > 1; i++) {
        longer[i].batch = times * jobs->list[alone].batch;
        longer[i].global_batch = longer[i].workers * longer[i].batch;
        if (longer[i].steps > STEPS) { // as long in all, but of as many steps as jobs have unasked
            longer[i].steps /= times;
            longer[i].steps = longer[i].steps > STEPS ? longer[i].steps : STEPS;
        }
        if (job_resolve(&longer[i], error, sizeof(error)) != STATUS_OK) {
            return; // the other jobs are enough for most
        }
    }
    for (size_t i = 0; i < 2 && times > 1; i++) {
        jobs->kinds[jobs->count] = i == 0 ? CALIBRATION_LONG : CALIBRATION_LONG_TURNS;
        jobs->list[jobs->count++] = longer[i];
    }
}

enum exit_code calibration_jobs_run(struct calibration_jobs *jobs, const char *folder)
{
    enum status status = begin(jobs, folder);
    enum exit_code code = status == STATUS_OK ? EXIT_COMPLETED : exit_code(status);
    jobs->count -= !can_crowd(jobs);
    for (size_t i = 0; i < jobs->count && code == EXIT_COMPLETED; i++) {
        code = jobs->session.launcher.crew.interrupts > 0 ? EXIT_INTERRUPTED : run_one(jobs, i);
        if (i == 0 && code == EXIT_COMPLETED) {
            calibration_apart_fit(jobs);
        }
        // One that cannot be run has taken itself off the list.
        if (code == EXIT_COMPLETED && i + 1 == jobs->count && jobs->kinds[i] == CALIBRATION_TURNS) {
            add_long(jobs);
        }
        if (code != EXIT_COMPLETED && code != EXIT_INTERRUPTED && jobs->is_temporary) {
            log_error("calibrate ends here, and removes its runs with their logs: --runs DIR keeps "
                      "them");
        }
    }
    return code;
}

void calibration_jobs_finish(struct calibration_jobs *jobs)
{
    char folder[sizeof(jobs->session.options.out)];
    snprintf(folder, sizeof(folder), "%s", jobs->session.options.out);
    session_close(&jobs->session);
    if (jobs->is_temporary) {
        folder_remove(folder);
    }
}
