/* Runs one job: starts its processes through the agents of its hosts, watches and ends them. */
#include "deploy/launch/launch.h"

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/job/carriers.h"
#include "common/job/job_options.h"
#include "common/transport/transport.h"
#include "deploy/hosts/host_limits.h"
#include "deploy/hosts/placement.h"
#include "deploy/launch/fetch.h"
#include "deploy/launch/handover.h"
#include "deploy/launch/last_summary.h"
#include "deploy/launch/launch_start.h"
#include "deploy/launch/log_tail.h"
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

// A worker that was lost is started again after this time, and after twice that for each one before
// it, but no longer than the last.
#define RESTART_MS        500
#define RESTART_DOUBLINGS 6

void launch_block_signals(void)
{
    sigset_t set;
    process_ending_signals(&set);
    sigaddset(&set, SIGCHLD);
    sigprocmask(SIG_BLOCK, &set, NULL);
}

/* Tells the coordinator why the job has to end: see ps-server/coordinator/launcher_news.h. */
static void tell(struct launch *launch, const char *kind, const char *cause,
                 const struct member *culprit)
{
    char line[OPTION_ERROR_BYTES + 64];
    launch->culprit = culprit;
    snprintf(launch->cause, sizeof(launch->cause), "%s", cause);
    snprintf(line, sizeof(line), "%s %s", kind, launch->cause);
    members_tell(&launch->members, 0, line);
}

static void tell_interrupt(struct launch *launch)
{
    int number = launch->launcher->crew.last_signal;
    tell(launch, "interrupted",
         number == SIGINT   ? "interrupted by SIGINT (Ctrl-C)"
         : number == SIGHUP ? "interrupted by SIGHUP: the terminal of ringside was closed"
                            : "interrupted by SIGTERM",
         NULL);
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
    members_take(&launch->members, host, message, launch->endpoint, sizeof(launch->endpoint));
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
    uint64_t deadline_ms = clock_now_ms() + (uint64_t)(1000 * launch->options->job->start_timeout);
    while (launch->endpoint[0] == '\0') {
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
    for (uint32_t i = 1; i < launch->placement.server_count && status == STATUS_OK; i++) {
        status = launch_start_server(launch, i);
    }
    for (uint32_t i = 0; i < launch->placement.worker_count && status == STATUS_OK; i++) {
        status = launch_start_worker(launch, i);
    }
    return status;
}

/* Whether the coordinator may let the job go on without the member. Then it is the coordinator that
 * says when the job is over. */
static bool may_be_done_without(const struct launch *launch, size_t index)
{
    return job_may_redeal(launch->options->job) && index > 0;
}

/* Where its host is lost, nothing can be started. */
static void plan_restart(struct launch *launch, struct member *member)
{
    bool is_worker = member >= &launch->members.list[launch->placement.server_count];
    if (launch->restarts >= launch->options->restarts || member->is_lost || !is_worker) {
        return;
    }
    uint32_t doublings =
        launch->restarts < RESTART_DOUBLINGS ? launch->restarts : RESTART_DOUBLINGS;
    member->restart_ms = clock_now_ms() + ((uint64_t)RESTART_MS << doublings);
    launch->restarts++;
}

/* Starts the workers again for which it is time. Returns when the next one is due. */
static uint64_t restart_workers(struct launch *launch)
{
    uint64_t next_ms = UINT64_MAX, now_ms = clock_now_ms();
    size_t servers = launch->placement.server_count;
    for (size_t i = servers; i < launch->members.count; i++) {
        const struct member *member = &launch->members.list[i];
        if (member->restart_ms != 0 && now_ms >= member->restart_ms) {
            log_warn("%s is started again", member->name);
            // What cannot be started was said, and is missing as it was before.
            (void)launch_start_worker(launch, (uint32_t)(i - servers));
        } else if (member->restart_ms != 0 && member->restart_ms < next_ms) {
            next_ms = member->restart_ms;
        }
    }
    return next_ms;
}

/* Tells the coordinator how a member ended, unless that follows from what it was told before. */
static void note_end(struct launch *launch, size_t index)
{
    struct member *member = &launch->members.list[index];
    char end[OPTION_ERROR_BYTES - MEMBER_NAME_BYTES], sentence[OPTION_ERROR_BYTES], kind[64];
    bool is_killed = member_was_killed(member);
    member->is_noted = true;
    if ((!is_killed && WEXITSTATUS(member->result) == 0) || launch->is_certain ||
        (launch->cause[0] != '\0' && !is_killed)) {
        return;
    }
    members_explain_end(&launch->members, index, end, sizeof(end));
    snprintf(sentence, sizeof(sentence), "%s %s", member->name, end);
    snprintf(kind, sizeof(kind), "%s %s", is_killed ? "killed" : "ended", member->name);
    tell(launch, kind, sentence, member);
    if (may_be_done_without(launch, index)) {
        launch->cause[0] = '\0'; // whatever ends the job is yet to come
        launch->culprit = NULL;
        plan_restart(launch, member);
        return;
    }
    launch->is_certain = is_killed;
    if (launch->deadline_ms == 0) {
        launch->deadline_ms =
            clock_now_ms() + (uint64_t)(1000 * (launch->options->job->lost_after + 3));
    }
}

/* Notes killed members first: the others may have ended because of them. */
static void note_ends(struct launch *launch)
{
    for (int is_killed = 1; is_killed >= 0; is_killed--) {
        for (size_t i = 1; i < launch->members.count; i++) {
            const struct member *member = &launch->members.list[i];
            if (member->is_over && !member->is_noted &&
                member_was_killed(member) == (is_killed != 0)) {
                note_end(launch, i);
            }
        }
    }
}

/* Watches the job until the coordinator has ended, or the remaining members must be killed. */
static void watch(struct launch *launch)
{
    while (!launch->members.list[0].is_over) {
        if (launch->deadline_ms != 0 && clock_now_ms() >= launch->deadline_ms) {
            break;
        }
        uint64_t deadline_ms = launch->deadline_ms != 0 ? launch->deadline_ms : UINT64_MAX;
        uint64_t restart_ms = restart_workers(launch);
        step(launch, restart_ms < deadline_ms ? restart_ms : deadline_ms);
        note_ends(launch);
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

/* Describes why there is no summary. Returns the member that the reason is about; NULL: none. */
static const struct member *explain(const struct launch *launch, enum status brought,
                                    char *ret_reason, size_t reason_size)
{
    const struct member *coordinator = &launch->members.list[0];
    char end[OPTION_ERROR_BYTES - MEMBER_NAME_BYTES];
    if (coordinator->stopped != 0) {
        process_name_signal(coordinator->stopped, end, sizeof(end));
        snprintf(ret_reason, reason_size,
                 "the coordinator was stopped by %.80s, and did not continue", end);
    } else if (launch->cause[0] != '\0' && (!coordinator->is_lost || launch->interrupts > 0)) {
        snprintf(ret_reason, reason_size, "%s", launch->cause);
        return launch->culprit;
    } else if (brought != STATUS_OK) {
        snprintf(ret_reason, reason_size, "the run folder did not arrive from %s",
                 launch->launcher->crew.links[coordinator->host].name);
        return NULL;
    } else if (!coordinator->is_over) {
        snprintf(ret_reason, reason_size, "the coordinator %s",
                 coordinator->is_started ? "does not end" : "could not be started");
    } else {
        members_explain_end(&launch->members, 0, end, sizeof(end));
        snprintf(ret_reason, reason_size, "the coordinator %s", end);
    }
    return coordinator;
}

/* The member that the coordinator's summary names as the reason; NULL if it names none. */
static const struct member *find_member(const struct launch *launch,
                                        const struct last_summary *summary)
{
    size_t servers = launch->placement.server_count;
    size_t index = summary->index + (summary->is_worker ? servers : 0);
    bool is_there = summary->has_member && index < launch->members.count;
    return is_there ? &launch->members.list[index] : NULL;
}

/* Says that the job failed, and why unless the coordinator has said it. Shows the end of the
 * culprit's log. */
static void report_failure(const struct launch *launch, const char *reason,
                           const struct member *culprit, bool is_said)
{
    log_error("the job failed%s%s; the logs: %s/logs", is_said ? "" : ": ", is_said ? "" : reason,
              launch->options->folder);
    if (culprit != NULL) {
        log_tail_print(culprit->log, stderr);
    }
}

/* Reports how the job ended. The exit code agrees with the summary. */
static enum exit_code conclude(struct launch *launch, enum status brought)
{
    const struct member *coordinator = &launch->members.list[0];
    const struct launch_options *options = launch->options;
    struct last_summary summary = {.reason = ""};
    last_summary_tidy(options->folder);
    bool is_new = last_summary_stamp(options->folder) != launch->old_summary;
    bool is_its_own = is_new && last_summary_read(options->folder, &summary) == STATUS_OK;
    const struct member *culprit = find_member(launch, &summary);
    if (!is_its_own) {
        culprit = explain(launch, brought, summary.reason, sizeof(summary.reason));
        last_summary_write(options->folder, options->job, summary.reason);
    }
    if (summary.is_completed) {
        return EXIT_COMPLETED;
    }
    bool is_said = is_its_own && options->shows_progress;
    if (launch->interrupts > 0) {
        if (!is_said) {
            log_error("the job ends: %s", summary.reason);
        }
        return EXIT_INTERRUPTED;
    }
    report_failure(launch, summary.reason, culprit, is_said);
    bool is_usage = coordinator->is_over && !coordinator->is_lost &&
                    WIFEXITED(coordinator->result) &&
                    WEXITSTATUS(coordinator->result) == EXIT_USAGE;
    return is_usage ? EXIT_USAGE : EXIT_FAILED;
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

static enum exit_code run(struct launch *launch)
{
    enum status status = start_with_keys(launch);
    if (launch->options->restarts == 0) {
        handover_end(&launch->handover); // nobody else needs the keys
    }
    if (status == STATUS_OK) {
        watch(launch);
    }
    handover_end(&launch->handover);
    bool may_close = status == STATUS_OK || status == STATUS_INTERRUPTED;
    end_all(launch, may_close ? CLOSE_MS : 0);
    enum status brought = bring_folder(launch);
    crew_listen(&launch->launcher->crew, NULL, NULL);
    return conclude(launch, brought);
}

/* Chooses each member's host, and checks whether the hosts can hold them. */
static enum status prepare(struct launch *launch)
{
    const struct launch_options *options = launch->options;
    struct launcher *launcher = launch->launcher;
    char error[OPTION_ERROR_BYTES];
    enum status status = placement_make(&launcher->hosts, options->job, launcher->coordinator,
                                        &launch->placement, error);
    if (status != STATUS_OK) {
        log_error("%s", error);
        return status;
    }
    status = launcher_recover(launcher);
    if (status != STATUS_OK) {
        return status;
    }
    status = host_limits_check(&launcher->crew, &launch->placement, options->job, error);
    if (status != STATUS_OK) {
        log_error("%s", error);
        last_summary_write(options->folder, options->job, error);
        return status;
    }
    status = members_init(&launch->members, &launcher->crew,
                          launch->placement.server_count + launch->placement.worker_count);
    launch->members.shows_lines = launcher->has_others;
    return status;
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
    launch->old_summary = last_summary_stamp(options->folder);
    enum status status = prepare(launch);
    enum exit_code code = status == STATUS_OK ? run(launch) : EXIT_FAILED;
    members_finish(&launch->members);
    free(launch);
    return status == STATUS_INTERRUPTED ? EXIT_INTERRUPTED : code;
}
