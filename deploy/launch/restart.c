/* Decides what is started again after a loss, and when. */
#include "deploy/launch/restart.h"

#include "common/base/attention.h"
#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/signals.h"
#include "common/job/carriers.h"
#include "common/job/faults.h"
#include "common/job/job_modes.h"
#include "deploy/launch/launch_ends.h"
#include "deploy/launch/restart_plans.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

// Those that are silent are given this much longer than others wait for them.
#define SILENCE_MS 1000
#define TURN_MS    1500 // signs of life are taken more often than that

bool restart_is_planned(const struct launch *launch)
{
    for (size_t i = 0; i < launch->members.count; i++) {
        if (restart_plan_is_made(&launch->members.list[i])) {
            return true;
        }
    }
    return false;
}

/* Whether the member is a process of the user's own program, and ended by itself: with an error of
 * its own, or well. */
static bool is_own_end(const struct launch *launch, const struct member *member)
{
    return launch->options->program != NULL && !member_was_killed(member);
}

/* Whether the member ended by itself, with an error that is its own. */
static bool has_failed(const struct member *member)
{
    if (!member->is_over || member_was_killed(member)) {
        return false;
    }
    int code = WEXITSTATUS(member->result);
    return code != EXIT_COMPLETED && code != EXIT_LOST && code != EXIT_INTERRUPTED;
}

/* Whether somebody has asked a process of ours to end before the job has begun: its host may be
 * needed for something else, and nobody has anything of it. */
static bool was_asked_to_end(const struct launch *launch, const struct member *member)
{
    size_t index = (size_t)(member - launch->members.list);
    bool is_own = launch->options->program != NULL && index >= launch->placement.server_count;
    return !launch->has_begun && !is_own && member->is_over && !member_was_killed(member) &&
           WEXITSTATUS(member->result) == EXIT_INTERRUPTED;
}

/* ==========================================================================================
 * A member
 * ========================================================================================== */

/* Whether a worker runs, or will, with this place on a host. */
static bool is_taken(const struct launch *launch, size_t host, uint32_t local_rank)
{
    const struct placement *placement = &launch->placement;
    for (uint32_t i = 0; i < placement->worker_count; i++) {
        const struct member *member = &launch->members.list[placement->server_count + i];
        if (placement->host_of_worker[i] == host && placement->local_rank[i] == local_rank &&
            (!member->is_over || restart_plan_is_made(member))) {
            return true;
        }
    }
    return false;
}

static uint32_t count_running(const struct launch *launch)
{
    uint32_t count = 0;
    for (size_t i = launch->placement.server_count; i < launch->members.count; i++) {
        count += !launch->members.list[i].is_over;
    }
    return count;
}

/* Finds a free slot of a host that is there. False: there is none. */
static bool find_slot(const struct launch *launch, size_t *ret_host, uint32_t *ret_slot)
{
    const struct hosts *hosts = &launch->launcher->hosts;
    for (size_t host = 0; host < hosts->count; host++) {
        if (launch->launcher->crew.links[host].state != HOST_LINK_UP) {
            continue;
        }
        for (uint32_t slot = 0; slot < hosts->list[host].slots; slot++) {
            if (!is_taken(launch, host, slot)) {
                *ret_host = host;
                *ret_slot = slot;
                return true;
            }
        }
    }
    return false;
}

/* Gives a worker a free slot of a host that is there. False: there is none. */
static bool move_worker(struct launch *launch, uint32_t rank)
{
    struct placement *placement = &launch->placement;
    size_t host;
    uint32_t slot;
    if (!find_slot(launch, &host, &slot)) {
        return false;
    }
    placement->host_of_worker[rank] = host;
    placement->local_rank[rank] = slot;
    uint32_t *size = &placement->local_size[host];
    *size = slot + 1 > *size ? slot + 1 : *size;
    return true;
}

/* Joins of --fault that still need a worker. */
static uint32_t count_joins(const struct launch *launch)
{
    const struct faults faults = faults_of(&launch->job);
    uint32_t count = faults_count_joins(&faults, UINT64_MAX);
    return count > launch->replacements ? count - launch->replacements : 0;
}

bool restart_may_start_workers(const struct launch *launch)
{
    return launch->options->restarts > 0 || count_joins(launch) > 0;
}

bool restart_lacks_slot(const struct launch *launch, const struct member *member)
{
    const struct member *coordinator = &launch->members.list[0];
    size_t host;
    uint32_t slot;
    return member->is_lost && launch->has_begun && launch->interrupts == 0 && !launch->is_ending &&
           (size_t)(member - launch->members.list) >= launch->placement.server_count &&
           !coordinator->is_over && count_running(launch) >= launch->job.min_workers &&
           (restart_plans_have_room(launch, member) || count_joins(launch) > 0) &&
           !find_slot(launch, &host, &slot);
}

void restart_plan_worker(struct launch *launch, struct member *member)
{
    size_t index = (size_t)(member - launch->members.list),
           servers = launch->placement.server_count;
    bool is_replacement = count_joins(launch) > 0;
    if (launch->is_ending || count_running(launch) < launch->job.min_workers) {
        return; // the job fails
    }
    if ((!restart_plans_have_room(launch, member) && !is_replacement) || index < servers ||
        has_failed(member) || is_own_end(launch, member) ||
        (member->is_lost && !move_worker(launch, (uint32_t)(index - servers)))) {
        return;
    }
    launch->replacements += is_replacement;
    member->is_replacement = is_replacement;
    uint32_t before = is_replacement ? 0 : restart_plans_before(launch, member);
    restart_plans_make(launch, member, before + 1);
}

bool restart_find_place(struct launch *launch, struct member *member)
{
    const struct member *coordinator = &launch->members.list[0];
    size_t index = (size_t)(member - launch->members.list),
           servers = launch->placement.server_count;
    bool may_follow = member_was_killed(member) || was_asked_to_end(launch, member);
    if (!may_follow || coordinator->is_over || coordinator->stopped != 0 ||
        launch->interrupts > 0 || launch->is_ending || !restart_plans_have_room(launch, member)) {
        return false;
    }
    bool has_place =
        !member->is_lost || (index >= servers && move_worker(launch, (uint32_t)(index - servers)));
    member->is_offered = has_place && (!launch->has_begun || launch->is_returning);
    return has_place;
}

/* The member that a line names; NULL: it names none that has ended. */
static struct member *find_awaited(const struct launch *launch, const char *line)
{
    char expected[MEMBER_NAME_BYTES + 8];
    for (size_t i = 1; i < launch->members.count; i++) {
        struct member *member = &launch->members.list[i];
        snprintf(expected, sizeof(expected), "await %s", member->name);
        if (member->is_over && strcmp(expected, line) == 0) {
            return member;
        }
    }
    return NULL;
}

bool restart_take_answer(struct launch *launch, const char *line)
{
    if (strcmp(line, "training") == 0) {
        launch->has_begun = true;
        launch->is_returning = false;
        restart_plans_end_offers(launch);
        return true;
    }
    if (strncmp(line, "renewed ", strlen("renewed ")) == 0) {
        launch_settle_ends(launch, (uint32_t)strtoul(line + strlen("renewed "), NULL, 10));
        restart_plans_end_offers(launch);
        return true;
    }
    if (strcmp(line, "ending") == 0) {
        restart_plans_forget(launch);
        return true;
    }
    if (strcmp(line, "recorded") == 0) {
        launch->is_recorded = true;
        return true;
    }
    if (strncmp(line, "await ", strlen("await ")) != 0) {
        return false;
    }
    struct member *awaited = find_awaited(launch, line);
    if (awaited == NULL || launch->interrupts > 0 || !restart_plans_have_room(launch, awaited)) {
        return true; // or it is the answer of a coordinator that has come back since
    }
    awaited->is_offered = false;
    // The coordinator knows of the loss, and with it all others wait.
    bool is_same = restart_plans_are_one_loss(launch, awaited);
    restart_plans_make(launch, awaited, is_same ? 0 : restart_plans_before(launch, awaited));
    launch_forget_ends(launch, false);
    return true;
}

static enum status start_again(struct launch *launch, size_t index)
{
    size_t servers = launch->placement.server_count;
    return index < servers ? launch_start_server(launch, (uint32_t)index)
                           : launch_start_worker(launch, (uint32_t)(index - servers));
}

uint64_t restart_members(struct launch *launch)
{
    uint64_t next_ms = UINT64_MAX, now_ms = clock_now_ms();
    const struct placement *placement = &launch->placement;
    size_t servers = placement->server_count;
    for (size_t i = 1; i < launch->members.count; i++) {
        const struct member *member = &launch->members.list[i];
        if (restart_plan_is_made(member) && now_ms >= member->restart_ms) {
            size_t host =
                i < servers ? placement->host_of_server[i] : placement->host_of_worker[i - servers];
            bool has_moved = host != member->host;
            log_warn("%s is started again%s%s%s", member->name, has_moved ? ", on " : "",
                     has_moved ? launch->launcher->crew.links[host].name : "",
                     member->is_replacement ? ", and joins after the step that --fault names" : "");
            if (!member->is_replacement) {
                launch->restarts++;
                restart_plans_note_member(launch, member);
            }
            // What cannot be started was said, and is missing as it was before.
            (void)start_again(launch, i);
            launch->members.list[i].is_again = true;
        } else if (restart_plan_is_made(member) && member->restart_ms < next_ms) {
            next_ms = member->restart_ms;
        }
    }
    return next_ms;
}

/* Each fault of --fault strikes once. */
static void forget_fault(struct launch *launch)
{
    const struct faults faults = faults_of(&launch->job);
    const struct fault *kill = faults_next_kill(&faults);
    if (kill == NULL) {
        return;
    }
    size_t servers = launch->placement.server_count;
    size_t index = kill->place == FAULT_AT_SHARD
                       ? job_first_server(&launch->job) + kill->number % launch->job.servers
                       : servers + carriers_process(job_carriers(&launch->job), kill->number);
    if (index < launch->members.count && member_was_killed(&launch->members.list[index])) {
        faults_forget_kill(&launch->job);
    }
}

/* ==========================================================================================
 * The coordinator
 * ========================================================================================== */

/* Members that were lost and have to be there before the job begins. */
static uint32_t count_awaited(const struct launch *launch)
{
    uint32_t count = 0;
    for (size_t i = 1; i < launch->members.count; i++) {
        const struct member *member = &launch->members.list[i];
        count += member_was_killed(member) || was_asked_to_end(launch, member);
    }
    return count;
}

/* Whether the others are there when a coordinator comes back, and may still be all that the job
 * needs. Before it begins, what was killed with the coordinator is started again, too, and a
 * program that has not begun has nothing to go on from. */
static bool are_others_there(const struct launch *launch)
{
    uint32_t left = launch->options->restarts - launch->restarts; // with the coordinator's own
    return launch->has_begun ? launch->deadline_ms == 0
                             : job_may_begin_anew(&launch->job) && count_awaited(launch) < left;
}

bool restart_may_return(const struct launch *launch)
{
    const struct member *coordinator = &launch->members.list[0];
    return launch->interrupts == 0 && coordinator->is_over && member_was_killed(coordinator) &&
           !coordinator->is_lost && launch->endpoint[0] != '\0' &&
           launch->restarts < launch->options->restarts && job_outlasts_coordinator(&launch->job) &&
           count_running(launch) > 0 && are_others_there(launch);
}

const char *restart_others_do(const struct launch *launch)
{
    return !launch->has_begun               ? "the others, which have not begun, join it"
           : job_trains_alone(&launch->job) ? "training goes on"
                                            : "the others wait for it";
}

/* Since when the coordinator gives no sign of life; UINT64_MAX: that is not so, or not known. Signs
 * come from another host as everything does that is heard from there: who hears nothing from the
 * host does not judge. */
static uint64_t silent_since_ms(const struct launch *launch, uint64_t *now_ms)
{
    const struct member *coordinator = &launch->members.list[0];
    const struct host_link *link = &launch->launcher->crew.links[coordinator->host];
    if (coordinator->stopped != 0) {
        return coordinator->stopped_ms;
    }
    if (coordinator->alive_ms == 0) {
        return UINT64_MAX;
    }
    *now_ms = link->is_local || link->heard_ms > *now_ms ? *now_ms : link->heard_ms;
    return coordinator->alive_ms;
}

/* Members miss it after what it tells them: see deadlines_patience_ms. */
static uint64_t most_silent_ms(const struct launch *launch)
{
    uint64_t told_ms = launch->members.list[0].patience_ms;
    return SILENCE_MS + (told_ms > 0 ? told_ms : (uint64_t)(2000 * launch->job.lost_after));
}

static void end_coordinator(struct launch *launch, double silent_s)
{
    struct member *coordinator = &launch->members.list[0];
    char *why = launch->why_ended;
    snprintf(why, sizeof(launch->why_ended),
             coordinator->stopped != 0 ? "has stood still for %.1f s"
                                       : "has given no sign of life for %.1f s",
             silent_s);
    log_warn("the coordinator %s: it is killed, so that another one can take its place", why);
    coordinator->stopped = 0; // so that this is said and done once
    coordinator->alive_ms = 0;
    members_signal(&launch->members, 0, SIGKILL);
}

uint64_t restart_end_silent(struct launch *launch)
{
    struct member *coordinator = &launch->members.list[0];
    uint64_t now_ms = clock_now_ms(), most_ms = most_silent_ms(launch), heard_until_ms = now_ms;
    uint64_t away_ms = attention_away_ms(&launch->attention, now_ms, TURN_MS);
    if (coordinator->alive_ms != 0) { // time in which nobody looked is no silence
        coordinator->alive_ms = attention_excuse(coordinator->alive_ms, away_ms, now_ms);
    }
    uint64_t since_ms = silent_since_ms(launch, &heard_until_ms);
    if (since_ms == UINT64_MAX || coordinator->is_over || launch->interrupts > 0 ||
        launch->restarts >= launch->options->restarts || !job_outlasts_coordinator(&launch->job)) {
        return UINT64_MAX;
    }
    if (heard_until_ms < since_ms + most_ms) {
        // If nothing is heard from its host either, that is looked at again.
        return now_ms < since_ms + most_ms ? since_ms + most_ms : now_ms + SILENCE_MS;
    }
    end_coordinator(launch, (double)(heard_until_ms - since_ms) / 1000);
    return UINT64_MAX;
}

void restart_explain_end(const struct launch *launch, char *ret_reason, size_t reason_size)
{
    char end[OPTION_ERROR_BYTES - 32];
    if (launch->why_ended[0] != '\0') {
        snprintf(ret_reason, reason_size, "the coordinator %s, and was killed", launch->why_ended);
        return;
    }
    members_explain_end(&launch->members, 0, end, sizeof(end));
    snprintf(ret_reason, reason_size, "the coordinator %s", end);
}

uint64_t restart_due(struct launch *launch)
{
    uint64_t start_ms = restart_members(launch), end_ms = restart_end_silent(launch);
    return start_ms < end_ms ? start_ms : end_ms;
}

void restart_begin_return(struct launch *launch, const char *reason)
{
    forget_fault(launch);
    snprintf(launch->restart_reason, sizeof(launch->restart_reason), "%s", reason);
    launch->why_ended[0] = '\0';
    launch->restarts++;
    launch->returns++;
    launch->told = 0;
    restart_plans_drop(launch);
    restart_plans_end_offers(launch);
    launch->is_ending = launch->is_recorded = false;
    restart_plans_note(launch);
    launch->is_returning = launch->has_begun;
    launch_forget_ends(launch, launch->has_begun); // the one before may not have heard of them
}

/* ==========================================================================================
 * The whole job
 * ========================================================================================== */

/* Whether a program failed that was started again, and nobody has gone on without it since. */
static bool has_given_up(const struct launch *launch)
{
    bool has_any = false;
    for (size_t i = 1; i < launch->members.count; i++) {
        const struct member *member = &launch->members.list[i];
        has_any |= member->is_given_up && !member->is_settled;
    }
    return has_any;
}

static bool is_loss(const struct launch *launch)
{
    const struct member *coordinator = &launch->members.list[0];
    if (!coordinator->is_started || !coordinator->is_over) {
        return false;
    }
    if (member_was_killed(coordinator)) {
        return true;
    }
    if (has_given_up(launch)) {
        return false;
    }
    if (launch->options->program != NULL) {
        // Its processes end with errors of their own once another one is lost. Where it goes on
        // from commits, those errors are the reason, and are the launcher's cause.
        bool is_certain =
            launch->is_certain || (job_may_commit(&launch->job) && launch->cause[0] == '\0');
        return is_certain && WEXITSTATUS(coordinator->result) == EXIT_LOST;
    }
    for (size_t i = 1; i < launch->members.count; i++) {
        if (has_failed(&launch->members.list[i])) {
            return false;
        }
    }
    return WEXITSTATUS(coordinator->result) == EXIT_LOST;
}

bool restart_may_follow(const struct launch *launch)
{
    return launch->interrupts == 0 && launch->restarts < launch->options->restarts &&
           members_all_over(&launch->members) && is_loss(launch);
}

uint64_t restart_delay_ms(const struct launch *launch, char ret_when[RESTART_WHEN_BYTES])
{
    uint64_t pause = restart_plans_pause_ms(restart_plans_recent(launch));
    if (pause == 0) {
        snprintf(ret_when, RESTART_WHEN_BYTES, "at once");
    } else {
        snprintf(ret_when, RESTART_WHEN_BYTES, "in %.1f s", (double)pause / 1000);
    }
    return pause;
}

void restart_begin(struct launch *launch, const char *reason)
{
    forget_fault(launch);
    if (launch->members.list[0].is_lost) {
        launch->folder[0] = '\0'; // with its host
    }
    snprintf(launch->restart_reason, sizeof(launch->restart_reason), "%s", reason);
    launch->restarts++;
    restart_plans_note(launch);
    launch->attempts++;
    launch->endpoint[0] = '\0';
    launch->returns = launch->told = 0;
    launch->deadline_ms = 0;
    launch->cause[0] = launch->why_ended[0] = '\0';
    launch->is_certain = launch->has_begun = launch->is_returning = false;
    launch->is_ending = launch->is_recorded = false;
    launch->culprit = NULL;
    members_finish(&launch->members);
}
