/* Finds out how a job ended, and says it. */
#include "deploy/launch/launch_verdict.h"

#include "common/base/log.h"
#include "common/base/printable.h"
#include "common/job/carriers.h"
#include "deploy/launch/last_summary.h"
#include "deploy/launch/log_tail.h"
#include "deploy/system/process.h"

#include <stdio.h>
#include <sys/wait.h>

bool launch_is_completed(const struct launch *launch)
{
    const struct member *coordinator = &launch->members.list[0];
    return coordinator->is_over && !member_was_killed(coordinator) &&
           WEXITSTATUS(coordinator->result) == EXIT_COMPLETED;
}

const struct member *launch_explain(const struct launch *launch, enum status brought,
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
        const struct log_part log = member_log(culprit);
        log_tail_print(&log, reason, stderr);
    }
}

/* What would have helped where the job failed because of its coordinator, which nobody replaces. */
static void advise(const struct launch *launch, const struct member *culprit)
{
    const struct launch_options *options = launch->options;
    bool is_coordinator = culprit != NULL && culprit == &launch->members.list[0];
    if (!is_coordinator || !member_was_killed(culprit) || options->restarts > 0) {
        return;
    }
    // Programs keep checkpoints of their own; others are where the coordinator was.
    if (options->program != NULL || !launch->launcher->crew.links[culprit->host].is_local) {
        log_warn("with --restarts R, a coordinator that is lost is started again");
    } else if (launch->mirror.folder[0] != '\0' && !launch->mirror.is_own) {
        log_warn("with --restarts R, a coordinator that is lost is started again; --resume auto "
                 "--out %s goes on from the newest copy in --mirror, with the same options",
                 options->folder);
    } else if (options->job->checkpoint_every.kind == CHECKPOINT_NEVER) {
        log_warn("with --restarts R, a coordinator that is lost is started again; with "
                 "--checkpoint-every, --resume goes on with a job that has ended");
    } else {
        log_warn("with --restarts R, a coordinator that is lost is started again; --resume %s "
                 "goes on from the newest checkpoint there, with the same options",
                 options->folder);
    }
}

/* The first program of the user's own that failed after its job was completed fails it. */
static enum exit_code judge_programs(const struct launch *launch)
{
    const struct members *members = &launch->members;
    for (size_t i = launch->placement.server_count; i < members->count; i++) {
        const struct member *member = &members->list[i];
        char end[OPTION_ERROR_BYTES - MEMBER_NAME_BYTES];
        bool is_well = member->is_over && !member->is_lost && member->result == 0;
        if (is_well || member->is_missed) {
            continue;
        }
        members_explain_end(members, i, end, sizeof(end));
        char reason[OPTION_ERROR_BYTES + MEMBER_NAME_BYTES];
        snprintf(reason, sizeof(reason), "training was completed, but %s %s", member->name, end);
        printable_make_utf8(reason);
        last_summary_fail(launch->options->folder, reason);
        log_error("%s", reason);
        const struct log_part log = member_log(member);
        log_tail_print(&log, reason, stderr);
        return launch->interrupts > 0 ? EXIT_INTERRUPTED : EXIT_FAILED;
    }
    return EXIT_COMPLETED;
}

void launch_dismiss_late(struct launch *launch)
{
    struct members *members = &launch->members;
    for (size_t i = launch->placement.server_count; i < members->count; i++) {
        struct member *member = &members->list[i];
        uint32_t number = (uint32_t)(i - launch->placement.server_count);
        // Another process may have its number by now.
        member->is_missed = member->is_given_up;
        if (!job_may_commit(&launch->job) ||
            last_summary_has_worker(launch->options->folder, number)) {
            continue;
        }
        member->is_missed |= member->is_over ? member_was_killed(member) : member->is_again;
        if (!member->is_over && member->is_again) {
            members_signal(members, i, SIGTERM);
        }
    }
}

enum exit_code launch_conclude(struct launch *launch, enum status brought)
{
    const struct member *coordinator = &launch->members.list[0];
    const struct launch_options *options = launch->options;
    struct last_summary summary = {.reason = ""};
    bool is_new = last_summary_stamp(options->folder) != launch->old_summary;
    // A coordinator that ends well without a new one found that nothing was left to do.
    bool is_its_own = (is_new || launch_is_completed(launch)) &&
                      last_summary_read(options->folder, &summary) == STATUS_OK;
    const struct member *culprit = find_member(launch, &summary);
    if (!is_its_own) {
        culprit = launch_explain(launch, brought, summary.reason, sizeof(summary.reason));
    }
    last_summary_tidy(options->folder); // which makes room for what is written now
    if (!is_its_own) {
        last_summary_write(options->folder, options->job, summary.reason);
    }
    if (summary.is_completed) {
        return options->program != NULL ? judge_programs(launch) : EXIT_COMPLETED;
    }
    bool is_said = is_its_own && options->shows_progress;
    if (launch->interrupts > 0) {
        if (!is_said) {
            log_error("the job ends: %s", summary.reason);
        }
        return EXIT_INTERRUPTED;
    }
    report_failure(launch, summary.reason, culprit, is_said);
    advise(launch, culprit);
    bool is_usage = coordinator->is_over && !coordinator->is_lost &&
                    WIFEXITED(coordinator->result) &&
                    WEXITSTATUS(coordinator->result) == EXIT_USAGE;
    return is_usage ? EXIT_USAGE : EXIT_FAILED;
}

enum exit_code launch_conclude_held(const struct launch *launch)
{
    char reason[OPTION_ERROR_BYTES];
    (void)launch_explain(launch, STATUS_OK, reason, sizeof(reason));
    log_error("the job %s: %s; what the run folder lacks is not written: %s",
              launch->interrupts > 0 ? "ends" : "failed", reason, launch->options->folder);
    return launch->interrupts > 0 ? EXIT_INTERRUPTED : EXIT_FAILED;
}
