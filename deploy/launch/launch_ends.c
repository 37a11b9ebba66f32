/* Tells the coordinator of each member that has ended, and how. */
#include "deploy/launch/launch_ends.h"

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/job/carriers.h"
#include "deploy/launch/join_line.h"
#include "deploy/launch/own_program.h"
#include "deploy/launch/restart.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#define SUBJECT_BYTES (MEMBER_NAME_BYTES + 24)

/* A line, which the coordinator counts likewise. */
static void tell_line(struct launch *launch, const char *line)
{
    launch->told++;
    members_tell(&launch->members, 0, line);
}

void launch_tell(struct launch *launch, const char *kind, const char *cause,
                 const struct member *culprit)
{
    char line[OPTION_ERROR_BYTES + 64];
    launch->culprit = culprit;
    snprintf(launch->cause, sizeof(launch->cause), "%s", cause);
    snprintf(line, sizeof(line), "%s %s", kind, launch->cause);
    tell_line(launch, line);
}

/* Whether the coordinator may let the job go on without the member. Then it is the coordinator that
 * says when the job is over. */
static bool may_be_done_without(const struct launch *launch, size_t index)
{
    return job_may_go_on(&launch->job) && index > 0;
}

/* Whether the member is a process of a program that goes on from its commits, and ended well. It
 * may have made its last step before the others, or come too late to be needed. One that vanished
 * from the job is missed there. */
static bool is_done(const struct launch *launch, bool is_own, bool is_well)
{
    return is_own && is_well && job_may_commit(&launch->job);
}

/* Whether the member was started in the place of a lost one, and its program, which goes on from
 * its commits, failed. If it had no part in the job so far, nobody misses it. */
static bool may_be_given_up(const struct launch *launch, size_t index)
{
    const struct member *member = &launch->members.list[index];
    return index >= launch->placement.server_count && job_may_commit(&launch->job) &&
           launch->has_begun && !launch->is_ending && member->is_again &&
           !member_was_killed(member);
}

/* Whether a worker runs, or is to run. A coordinator that has lost all of them cannot go on. */
static bool is_anybody_left(const struct launch *launch)
{
    for (size_t i = launch->placement.server_count; i < launch->members.count; i++) {
        if (!launch->members.list[i].is_over) {
            return true;
        }
    }
    return restart_is_planned(launch);
}

/* "worker 3 launch 17": the member, and which of the processes that were started for it. */
static void name_process(const struct member *member, char ret_subject[SUBJECT_BYTES])
{
    if (member->launch == 0) {
        snprintf(ret_subject, SUBJECT_BYTES, "%s", member->name);
        return;
    }
    snprintf(ret_subject, SUBJECT_BYTES, "%s launch %u", member->name, member->launch);
}

/* Tells a coordinator that has come back of a member that the job had gone on without. */
static void tell_over(struct launch *launch, const struct member *member)
{
    char subject[SUBJECT_BYTES], line[SUBJECT_BYTES + MEMBER_NAME_BYTES + 64];
    name_process(member, subject);
    snprintf(line, sizeof(line), "over %s %s was lost before the coordinator", subject,
             member->name);
    tell_line(launch, line);
}

/* Says once that a lost worker is not started again, and what can be done. */
static void say_unplaced(const struct launch *launch, struct member *member)
{
    char *join = malloc(JOIN_LINE_BYTES);
    if (!member->is_unplaced) {
        bool may_join = join != NULL && join_line_write(launch, join);
        log_warn("%s is not started again: %s, where it ran, is lost, and no other host has a free "
                 "slot; the job goes on without it. Hosts with more slots (HOST:SLOTS) leave room "
                 "for that%s%s",
                 member->name, launch->launcher->crew.links[member->host].name,
                 may_join ? "; " : "", may_join ? join : "");
    }
    member->is_unplaced = true;
    free(join);
}

/* Tells the coordinator how a member ended, unless that follows from what it was told before. */
static void note_end(struct launch *launch, size_t index)
{
    struct member *member = &launch->members.list[index];
    const struct member *coordinator = &launch->members.list[0];
    char end[OPTION_ERROR_BYTES - MEMBER_NAME_BYTES], sentence[OPTION_ERROR_BYTES];
    char kind[SUBJECT_BYTES + 16], subject[SUBJECT_BYTES];
    bool is_killed = member_was_killed(member);
    bool is_well = !is_killed && WEXITSTATUS(member->result) == 0;
    bool is_own = index >= launch->placement.server_count && launch->options->program != NULL;
    member->is_noted = true;
    if (member->is_settled) {
        tell_over(launch, member);
        return;
    }
    if ((is_well && !is_own) || is_done(launch, is_own, is_well) || launch->is_certain ||
        (launch->cause[0] != '\0' && !is_killed)) {
        return;
    }
    members_explain_end(&launch->members, index, end, sizeof(end));
    snprintf(sentence, sizeof(sentence), "%s %s", member->name,
             is_well ? OWN_PROGRAM_LEFT_NOT : end);
    if (job_may_go_on(&launch->job) && restart_lacks_slot(launch, member)) {
        size_t used = strlen(sentence);
        snprintf(sentence + used, sizeof(sentence) - used,
                 "; it is not started again, as no other host has a free slot");
        say_unplaced(launch, member);
    }
    member->is_given_up = may_be_given_up(launch, index);
    if (member->is_given_up) {
        log_warn("%s; it is not started once more, and the job goes on if it had no part in it",
                 sentence);
    }
    // A program's own failure is no loss that the others go on from.
    bool is_loss = is_killed || !job_may_commit(&launch->job) || member->is_given_up;
    bool may_go_on = may_be_done_without(launch, index) && is_loss;
    name_process(member, subject);
    snprintf(kind, sizeof(kind), "%s %s",
             restart_find_place(launch, member)              ? "again"
             : launch->is_returning && may_go_on && !is_well ? "lost"
             : is_killed                                     ? "killed"
             : member->is_given_up                           ? "newcomer"
                                                             : "ended",
             subject);
    launch_tell(launch, kind, sentence, member);
    if (may_go_on) {
        launch->cause[0] = '\0'; // whatever ends the job is yet to come
        launch->culprit = NULL;
        if (!coordinator->is_over && coordinator->stopped == 0) {
            restart_plan_worker(launch, member);
        }
        if (coordinator->stopped == 0 && is_anybody_left(launch)) {
            return; // the coordinator decides
        }
    }
    launch->is_certain = is_killed && !may_go_on;
    if (is_well) {
        launch->cause[0] = '\0'; // the coordinator knows whether it had left the job
        launch->culprit = NULL;
    } else if (launch->deadline_ms == 0) {
        launch->deadline_ms =
            clock_now_ms() + (uint64_t)(1000 * (launch->options->job->lost_after + 3));
    }
}

/* Notes killed members first: the others may have ended because of them. */
void launch_note_ends(struct launch *launch)
{
    for (int is_killed = 1; is_killed >= 0; is_killed--) {
        for (size_t i = 1; i < launch->members.count; i++) {
            const struct member *member = &launch->members.list[i];
            if (member->is_over && !member->is_noted &&
                member_was_killed(member) == (is_killed != 0)) {
                note_end(launch, i);
                launch->members.list[i].told = launch->told;
            }
        }
    }
}

void launch_settle_ends(struct launch *launch, uint32_t heard)
{
    for (size_t i = 1; i < launch->members.count; i++) {
        struct member *member = &launch->members.list[i];
        bool is_heard = member->is_over && member->is_noted && member->told <= heard;
        member->is_settled = member->is_settled || is_heard;
    }
}

void launch_forget_ends(struct launch *launch, bool with_planned)
{
    launch->cause[0] = '\0';
    launch->culprit = NULL;
    launch->is_certain = false;
    launch->deadline_ms = 0;
    for (size_t i = 1; i < launch->members.count; i++) {
        struct member *member = &launch->members.list[i];
        member->is_noted = member->is_over && member->restart_ms != 0 && !with_planned;
    }
}
