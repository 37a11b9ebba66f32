/* Runs one job: starts its processes through the agents of its hosts, watches and ends them. */
#include "deploy/launch/launch.h"

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/job/carriers.h"
#include "common/job/faults.h"
#include "common/job/job_modes.h"
#include "common/job/job_options.h"
#include "common/transport/transport.h"
#include "deploy/hosts/host_limits.h"
#include "deploy/hosts/placement.h"
#include "deploy/launch/fetch.h"
#include "deploy/launch/handover.h"
#include "deploy/launch/join_line.h"
#include "deploy/launch/last_summary.h"
#include "deploy/launch/launch_ends.h"
#include "deploy/launch/launch_held.h"
#include "deploy/launch/launch_start.h"
#include "deploy/launch/launch_timeline.h"
#include "deploy/launch/launch_verdict.h"
#include "deploy/launch/own_program.h"
#include "deploy/launch/restart.h"
#include "deploy/system/process.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

// After the first Ctrl-C the job has this long to end cleanly.
#define STOP_MS 4000

// Once the verdict is known, members have this long to end by themselves.
#define CLOSE_MS 1500

// A killed process is gone within this time, unless its host is gone.
#define KILL_MS 3000

void launch_block_signals(void)
{
    sigset_t set;
    process_ending_signals(&set);
    sigaddset(&set, SIGCHLD);
    sigprocmask(SIG_BLOCK, &set, NULL);
}

static const char *describe_interrupt(const struct launch *launch)
{
    int number = launch->launcher->crew.last_signal;
    return number == SIGINT   ? "interrupted by SIGINT (Ctrl-C)"
           : number == SIGHUP ? "interrupted by SIGHUP: the terminal of ringside was closed"
                              : "interrupted by SIGTERM";
}

static void tell_interrupt(struct launch *launch)
{
    launch_tell(launch, "interrupted", describe_interrupt(launch), NULL);
    launch->is_certain = true;
}

/* Handles the interrupts that have come. */
static void take_interrupts(struct launch *launch)
{
    for (; launch->interrupts < launch->launcher->crew.interrupts; launch->interrupts++) {
        if (launch->interrupts > 0) {
            launch->deadline_ms = clock_now_ms(); // interrupted twice: end at once
        } else {
            launch->deadline_ms = clock_now_ms() + STOP_MS;
            tell_interrupt(launch);
        }
    }
}

static void handle(void *context, size_t host, const struct agent_message *message)
{
    struct launch *launch = context;
    char said[TRANSPORT_ENDPOINT_BYTES] = "";
    members_take(&launch->members, host, message, said, sizeof(said));
    if (said[0] != '\0' && !restart_take_answer(launch, said)) {
        snprintf(launch->endpoint, sizeof(launch->endpoint), "%s", said);
    }
}

/* Waits for something to happen, and handles it. */
static void step(struct launch *launch, uint64_t deadline_ms)
{
    crew_step(&launch->launcher->crew, deadline_ms);
    members_take_losses(&launch->members);
    take_interrupts(launch);
}

/* Waits for the endpoint that the coordinator announces. The coordinator may end instead. */
static enum status await_endpoint(struct launch *launch)
{
    const struct member *coordinator = &launch->members.list[0];
    const uint64_t began_ms = clock_now_ms();
    while (launch->endpoint[0] == '\0') {
        // It may be alive, and wait for a disk, which it judges itself.
        uint64_t alive_ms = coordinator->alive_ms > began_ms ? coordinator->alive_ms : began_ms;
        uint64_t deadline_ms = alive_ms + (uint64_t)(1000 * launch->options->job->start_timeout);
        if (launch->interrupts > 0) {
            return STATUS_INTERRUPTED;
        }
        if (coordinator->is_over) {
            return STATUS_UNREACHABLE; // its log says why
        }
        if (clock_now_ms() >= deadline_ms) {
            snprintf(launch->cause, sizeof(launch->cause),
                     "the coordinator did not say within %g s where it listens (--start-timeout)",
                     launch->options->job->start_timeout);
            launch->culprit = coordinator;
            return STATUS_TIMED_OUT;
        }
        step(launch, deadline_ms);
    }
    return STATUS_OK;
}

static enum status start_all(struct launch *launch)
{
    enum status status = launch_start_coordinator(launch);
    if (status != STATUS_OK) {
        return status;
    }
    crew_listen(&launch->launcher->crew, handle, launch);
    status = await_endpoint(launch);
    if (status == STATUS_OK) {
        launch_timeline_remove_old(launch); // the coordinator has taken the job
        join_line_print(launch);
    }
    for (uint32_t i = 1; i < launch->placement.server_count && status == STATUS_OK; i++) {
        status = launch_start_server(launch, i);
    }
    for (uint32_t i = 0; i < launch->placement.worker_count && status == STATUS_OK; i++) {
        status = launch_start_worker(launch, i);
    }
    return status;
}

/* Watches the job until the coordinator has ended, or the remaining members must be killed. */
static void watch_coordinator(struct launch *launch)
{
    while (!launch->members.list[0].is_over) {
        if (launch->deadline_ms != 0 && clock_now_ms() >= launch->deadline_ms) {
            break;
        }
        if (launch_coordinator_is_held(launch)) {
            break;
        }
        uint64_t deadline_ms = launch->deadline_ms != 0 ? launch->deadline_ms : UINT64_MAX;
        uint64_t restart_ms = restart_due(launch), look_ms = launch_held_look_ms(launch);
        deadline_ms = restart_ms < deadline_ms ? restart_ms : deadline_ms;
        step(launch, look_ms < deadline_ms ? look_ms : deadline_ms);
        launch_note_ends(launch);
    }
}

/* Handles what happens until then, or until somebody interrupts. */
static void pause_until(struct launch *launch, uint64_t deadline_ms)
{
    while (launch->interrupts == 0 && clock_now_ms() < deadline_ms) {
        step(launch, deadline_ms);
    }
}

/* The coordinator was killed: starts it again, where the others look for it. False: it does not
 * come back. */
static bool return_coordinator(struct launch *launch)
{
    char reason[OPTION_ERROR_BYTES], before[TRANSPORT_ENDPOINT_BYTES], when[RESTART_WHEN_BYTES];
    if (!restart_may_return(launch)) {
        return false;
    }
    restart_explain_end(launch, reason, sizeof(reason));
    uint64_t deadline_ms = clock_now_ms() + restart_delay_ms(launch, when);
    log_warn("%s; it is started again %s (restart %u of %u), and %s", reason, when,
             launch->restarts + 1, launch->options->restarts, restart_others_do(launch));
    pause_until(launch, deadline_ms);
    if (!restart_may_return(launch)) {
        return false;
    }
    restart_begin_return(launch, reason);
    snprintf(before, sizeof(before), "%s", launch->endpoint);
    if (launch_start_coordinator(launch) != STATUS_OK) {
        return false;
    }
    launch->endpoint[0] = '\0';
    return await_endpoint(launch) == STATUS_OK && strcmp(before, launch->endpoint) == 0;
}

/* The same of a job whose coordinator may be started again. */
static void watch(struct launch *launch)
{
    do {
        watch_coordinator(launch);
    } while (return_coordinator(launch));
}

/* Programs of the user's own may go on after the job, until somebody interrupts them. */
static void await_programs(struct launch *launch)
{
    struct members *members = &launch->members;
    while (launch->interrupts == 0 && !members_all_over(members)) {
        step(launch, UINT64_MAX);
    }
    for (size_t i = 0; i < members->count; i++) {
        members_signal(members, i, SIGTERM);
    }
}

/* Waits for all members to end, then kills those that have not. */
static void end_all(struct launch *launch, unsigned close_ms)
{
    struct members *members = &launch->members;
    uint64_t deadline_ms = clock_now_ms() + close_ms;
    while (!members_all_over(members) && clock_now_ms() < deadline_ms) {
        step(launch, deadline_ms);
    }
    for (size_t i = 0; i < members->count; i++) {
        members_signal(members, i, SIGKILL);
    }
    deadline_ms = clock_now_ms() + KILL_MS;
    while (!members_all_over(members) && clock_now_ms() < deadline_ms) {
        step(launch, deadline_ms);
    }
    launch_note_held(launch);
}

/* Brings the run folder here if the coordinator wrote it on another host. */
static enum status bring_folder(struct launch *launch)
{
    const struct member *coordinator = &launch->members.list[0];
    if (!coordinator->is_started || coordinator->is_lost ||
        !launch_is_remote(launch, coordinator->host)) {
        return STATUS_OK;
    }
    return fetch_folder(&launch->launcher->crew, coordinator->host, launch->options->folder);
}

/* Starts the processes, and hands them their keys if they need any. */
static enum status start_with_keys(struct launch *launch)
{
    launch->is_private = handover_is_needless(launch->launcher, launch->options);
    enum status status = launch->is_private
                             ? STATUS_OK
                             : handover_begin(&launch->handover, launch->options->security);
    return status == STATUS_OK ? start_all(launch) : status;
}

/* From the start of its processes to the end of the last one. */
static void attempt(struct launch *launch)
{
    // Without room the coordinator cannot begin, and says so.
    (void)last_summary_reserve(launch->options->folder);
    enum status status = launch_timeline_begin(launch);
    if (status == STATUS_OK) {
        status = start_with_keys(launch);
    }
    if (!restart_may_start_workers(launch)) {
        handover_end(&launch->handover); // nobody else needs the keys
    }
    if (status == STATUS_OK) {
        watch(launch);
    }
    handover_end(&launch->handover);
    bool may_close = status == STATUS_OK || status == STATUS_INTERRUPTED;
    bool has_coordinator = !member_was_killed(&launch->members.list[0]);
    if (launch->options->program != NULL && status == STATUS_OK && launch_is_completed(launch)) {
        launch_dismiss_late(launch);
        await_programs(launch);
    }
    end_all(launch, may_close && has_coordinator ? CLOSE_MS : 0);
}

/* Uses the hosts that are there: those of before, or, where some were lost, the others. Then fewer
 * processes may have to do. */
static enum status find_hosts(struct launch *launch)
{
    struct launcher *launcher = launch->launcher;
    if (launch->attempts == 0) {
        return launcher_recover(launcher);
    }
    enum status status = launcher_recover_some(launcher);
    uint32_t slots = hosts_slots(&launcher->hosts), least = launch->job.min_workers;
    if (status == STATUS_OK && job_may_redeal(&launch->job) && slots >= least && slots > 0 &&
        job_carriers(&launch->job).processes > slots) {
        launch->job.processes = slots;
    }
    return status;
}

/* Chooses each member's host, and checks whether the hosts can hold them. */
static enum status prepare(struct launch *launch)
{
    const struct launch_options *options = launch->options;
    struct launcher *launcher = launch->launcher;
    char error[OPTION_ERROR_BYTES];
    launch->old_summary = last_summary_stamp(options->folder);
    enum status status = find_hosts(launch);
    if (status != STATUS_OK) {
        return status;
    }
    status = placement_make(&launcher->hosts, &launch->job, launcher->coordinator,
                            &launch->placement, error);
    if (status != STATUS_OK) {
        log_error("%s", error);
        if (launch->attempts == 0) { // otherwise it has ended because of what was lost
            last_summary_write(options->folder, options->job, error);
        }
        return status;
    }
    status = host_limits_check(&launcher->crew, &launch->placement, &launch->job, error);
    if (status != STATUS_OK) {
        log_error("%s", error);
        last_summary_write(options->folder, options->job, error);
        return status;
    }
    status = members_init(&launch->members, &launcher->crew,
                          launch->placement.server_count + launch->placement.worker_count);
    bool shows_programs = options->program != NULL && options->shows_progress;
    launch->members.shown_from = launcher->has_others ? 0
                                 : shows_programs     ? launch->placement.server_count
                                                      : launch->members.count;
    return status;
}

/* Waits for the pause before the next attempt. False: somebody has interrupted it. */
static bool pause_before(struct launch *launch, const char *reason)
{
    char when[RESTART_WHEN_BYTES];
    uint64_t deadline_ms = clock_now_ms() + restart_delay_ms(launch, when);
    log_warn("%s; the job is started again %s (restart %u of %u)", reason, when,
             launch->restarts + 1, launch->options->restarts);
    pause_until(launch, deadline_ms);
    return launch->interrupts == 0;
}

/* After an attempt: whether there is another one. */
static bool starts_again(struct launch *launch)
{
    if (launch->launcher->is_folder_held) {
        return false;
    }
    struct last_summary summary = {.reason = ""};
    const char *folder = launch->options->folder;
    bool is_new = last_summary_stamp(folder) != launch->old_summary;
    bool has_summary = is_new && last_summary_read(folder, &summary) == STATUS_OK;
    if (summary.is_completed || !restart_may_follow(launch)) {
        return false;
    }
    if (!has_summary) {
        launch_explain(launch, STATUS_OK, summary.reason, sizeof(summary.reason));
    }
    if (!pause_before(launch, summary.reason)) {
        return false;
    }
    restart_begin(launch, summary.reason);
    return true;
}

/* Attempts the job until it is not started again. */
static enum status attempt_all(struct launch *launch)
{
    do {
        enum status status = prepare(launch);
        if (status != STATUS_OK) {
            return status;
        }
        attempt(launch);
    } while (starts_again(launch));
    return STATUS_OK;
}

/* The job ends before a process of this attempt was started. Its folder is there, and says why. */
static void conclude_early(const struct launch *launch, enum status status)
{
    const struct launch_options *options = launch->options;
    char reason[OPTION_ERROR_BYTES];
    if (launch->attempts > 0) {
        snprintf(reason, sizeof(reason), "%s", launch->restart_reason);
    } else if (status == STATUS_INTERRUPTED) {
        snprintf(reason, sizeof(reason), "%s", describe_interrupt(launch));
        log_error("the job ends: %s", reason);
    } else {
        snprintf(reason, sizeof(reason), "the job could not be started: %s", status_text(status));
    }
    last_summary_write(options->folder, options->job, reason);
}

static enum exit_code run(struct launch *launch)
{
    enum status status = attempt_all(launch);
    if (launch->launcher->is_folder_held) {
        launch_timeline_forget(launch);
        crew_listen(&launch->launcher->crew, NULL, NULL);
        return launch_conclude_held(launch);
    }
    enum status brought = status == STATUS_OK ? bring_folder(launch) : STATUS_OK;
    launch_timeline_end(launch);
    crew_listen(&launch->launcher->crew, NULL, NULL);
    if (status == STATUS_OK) {
        return launch_conclude(launch, brought);
    }
    conclude_early(launch, status);
    return status == STATUS_INTERRUPTED ? EXIT_INTERRUPTED : EXIT_FAILED;
}

enum status launch_check(const struct security_options *security, const struct job *job)
{
    char error[OPTION_ERROR_BYTES];
    enum status status = faults_check_replacements(job, error, sizeof(error));
    if (status != STATUS_OK) {
        log_error("%s", error);
        return status;
    }
    return handover_check(security, job);
}

enum exit_code launch_job(struct launcher *launcher, const struct launch_options *options)
{
    struct launch *launch = calloc(1, sizeof(*launch));
    if (launch == NULL) {
        log_error("cannot prepare to launch: out of memory");
        return EXIT_FAILED;
    }
    launch->launcher = launcher;
    launch->options = options;
    launch->job = *options->job;
    enum exit_code code = EXIT_FAILED;
    if (launch_mirror_begin(&launch->mirror, options->mirror) == STATUS_OK) {
        code = run(launch);
    }
    launch_mirror_end(&launch->mirror);
    members_finish(&launch->members);
    free(launch);
    return code;
}
