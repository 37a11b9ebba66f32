/* Follows which members are ready, connected, or past a phase. */
#include "ps-server/coordinator/coordinator_handshake.h"

#include "common/base/printable.h"
#include "common/job/job_modes.h"
#include "common/optimizer/groups.h"
#include "ps-server/coordinator/agreement.h"
#include "ps-server/coordinator/choices.h"
#include "ps-server/coordinator/coordinator_port.h"
#include "ps-server/coordinator/coordinator_states.h"
#include "ps-server/coordinator/generation.h"
#include "ps-server/coordinator/newcomers.h"

#include <stdio.h>
#include <string.h>

/* Takes model and data from the first worker that is ready. The others have to agree with it. */
void handshake_take_model(struct coordinator *coordinator, const struct message *message)
{
    coordinator->layout = *message->layout;
    coordinator->has_layout = true;
    coordinator->train_samples = message->member->train_samples;
    coordinator->test_samples = message->member->test_samples;
    coordinator->data_digest = message->member->data_digest;
    coordinator->parameters = message->member->parameters;
    coordinator->tensor_count = message->member->tensor_count;
    snprintf(coordinator->tensors, sizeof(coordinator->tensors), "%s",
             message->member->tensors != NULL ? message->member->tensors : "");
    snprintf(coordinator->figures, sizeof(coordinator->figures), "%s", message->member->figures);
}

/* Whether the groups of its parameters that a program has said are some of its model and its
 * optimizer. */
static bool groups_fit(const struct job *job, const struct message *message, char *ret_why,
                       size_t why_size)
{
    const struct optimizer_groups *groups = message->groups;
    if (job->optimizer == OPTIMIZER_AUTO || !groups->is_relative ||
        !optimizer_groups_are_valid(groups, job->optimizer, message->layout->value_count)) {
        snprintf(ret_why, why_size, "what its program says is no groups of its parameters");
        return false;
    }
    if (job->remedy == REMEDY_MOMENTUM && groups->group_count > 1) {
        snprintf(ret_why, why_size,
                 "its program has %u groups of parameters, and --remedy momentum corrects one "
                 "momentum: use another remedy",
                 groups->group_count);
        return false;
    }
    return true;
}

/* Takes what a program of its own says of its optimizer, from the first worker that is ready. */
bool handshake_take_optimizer(struct coordinator *coordinator, const struct message *message,
                              char *ret_why, size_t why_size)
{
    const char *text = message->text != NULL ? message->text : "";
    struct job job = *coordinator->job;
    snprintf(ret_why, why_size, "what it says of its parameters is for programs of their own");
    if (!job_is_external(&job)) {
        return message->groups == NULL;
    }
    enum status status = job_take_optimizer(&job, text, ret_why, why_size);
    if (status == STATUS_OK && job.optimizer == OPTIMIZER_AUTO && job_servers_update(&job)) {
        snprintf(ret_why, why_size,
                 "its program makes the updates itself, and in mode %s servers do%s",
                 mode_text(job.mode).text,
                 job.mode.kind == MODE_PS_SYNC ? ", unless --server-optimizer is none" : "");
        status = STATUS_INVALID;
    }
    if (status == STATUS_OK && message->groups != NULL) {
        status = groups_fit(&job, message, ret_why, why_size) ? STATUS_OK : STATUS_INVALID;
    }
    if (status != STATUS_OK) {
        printable_make_utf8(ret_why);
        return false;
    }
    if (message->groups != NULL &&
        optimizer_groups_copy(message->groups, &coordinator->groups) != STATUS_OK) {
        snprintf(ret_why, why_size, "there is no memory for its groups of parameters");
        return false;
    }
    coordinator->told_job = job;
    coordinator->job = &coordinator->told_job;
    snprintf(coordinator->optimizer, sizeof(coordinator->optimizer), "%s", text);
    return true;
}

/* Whether the worker says how it is reached by NCCL, where that is used. */
static bool has_nccl_as_due(const struct coordinator *coordinator, const struct sender *from,
                            const struct message *message)
{
    const struct wire_nccl *nccl = message->nccl;
    return !job_has_nccl(coordinator->job) ||
           (nccl != NULL && nccl->has_gpu && nccl->has_id == (from->index == 0));
}

/* Whether all workers of a program that commits go on from the same step, which the first one
 * says. */
static bool begins_alike(struct coordinator *coordinator, const struct message *message,
                         char *ret_why, size_t why_size)
{
    const struct job *job = coordinator->job;
    if (!job_may_commit(job)) {
        return true;
    }
    if (!coordinator->has_layout && message->step <= job->steps) {
        coordinator->begin_step = coordinator->commit_step = message->step;
        return true;
    }
    snprintf(ret_why, why_size,
             "its program goes on from step %llu, and the %s %llu: rank 0 has to give its state to "
             "all",
             (unsigned long long)message->step,
             coordinator->has_layout ? "others' from step" : "job's last step is",
             (unsigned long long)(coordinator->has_layout ? coordinator->begin_step : job->steps));
    return coordinator->has_layout && message->step == coordinator->begin_step;
}

/* Notes whether the model is one that nobody has agreed with who was there before. */
static void note_agreement(struct coordinator *coordinator, const struct sender *from,
                           bool is_first)
{
    if (!from->slot->is_new) {
        coordinator->doubtful.slot = NULL;
    } else if (is_first) {
        coordinator->doubtful = *from;
    }
}

/* Parts with a worker that does not agree with the first one; or with the first one, if it is new
 * and the worker is not. */
static void part_with(struct coordinator *coordinator, const struct sender *from, const char *why,
                      uint64_t now_ms)
{
    char sentence[2 * COORDINATOR_REASON_BYTES];
    const struct sender first = coordinator->doubtful;
    if (first.slot == NULL || from->slot->is_new) {
        snprintf(sentence, sizeof(sentence), "worker %u (host %s): %s", from->slot->number,
                 from->slot->host, why);
        coordinator_port_tell_refused(&coordinator->port, from->slot->peer, STATUS_MISMATCH,
                                      sentence);
        generation_give_up(coordinator, STATUS_MISMATCH, sentence, from, now_ms);
        return;
    }
    snprintf(sentence, sizeof(sentence),
             "worker %u (host %s) is new, and worker %u (host %s) does not agree with it: %s",
             first.slot->number, first.slot->host, from->slot->number, from->slot->host, why);
    coordinator_port_tell_refused(&coordinator->port, first.slot->peer, STATUS_MISMATCH, sentence);
    generation_lose(coordinator, STATUS_MISMATCH, sentence, &first, now_ms);
}

/* Whether the worker agrees with the others, and may stay. */
static bool accept_worker(struct coordinator *coordinator, const struct sender *from,
                          const struct message *message, uint64_t now_ms)
{
    char why[COORDINATOR_REASON_BYTES];
    bool is_first = !coordinator->has_layout;
    if (message->layout == NULL || !has_nccl_as_due(coordinator, from, message)) {
        return false; // not one of ours
    }
    bool agrees = coordinator->has_layout
                      ? agreement_check(coordinator, message, why, sizeof(why))
                      : agreement_check_resume(coordinator, message, why, sizeof(why));
    agrees = agrees && begins_alike(coordinator, message, why, sizeof(why));
    if (agrees && !coordinator->has_layout) {
        agrees = handshake_take_optimizer(coordinator, message, why, sizeof(why));
        if (agrees) {
            handshake_take_model(coordinator, message);
        }
    }
    if (agrees) {
        note_agreement(coordinator, from, is_first);
    } else {
        part_with(coordinator, from, why, now_ms);
    }
    return agrees;
}

static void note_worker(struct coordinator *coordinator, const struct sender *from,
                        const struct message *message)
{
    struct slot *slot = from->slot;
    const struct wire_member *member = message->member;
    snprintf(slot->digest, sizeof(slot->digest), "%s", member->params_digest);
    snprintf(slot->device, sizeof(slot->device), "%s", member->device);
    slot->choices_digest = member->choices_digest;
    if (message->nccl != NULL) {
        memcpy(slot->gpu, message->nccl->gpu, sizeof(slot->gpu));
        slot->nccl_version = message->nccl->version;
        topology_note_nccl(&coordinator->topology, from->index, message->nccl);
    }
}

/* They train together all the same: each gradient is as good, if not of the same bits. */
static void say_who_differs(const struct coordinator *coordinator)
{
    char ranks[128];
    if (choices_differ(coordinator, ranks, sizeof(ranks))) {
        coordinator_port_say(&coordinator->port, false,
                             "not all workers compute by the algorithms of worker %u: others have "
                             "rank %s (choices in job.json)",
                             coordinator->membership.workers[0].number, ranks);
    }
}

void handshake_ready(struct coordinator *coordinator, const struct sender *from,
                     const struct message *message, uint64_t now_ms)
{
    struct membership *membership = &coordinator->membership;
    struct slot *slot = from->slot;
    if (slot->state != SLOT_JOINED || coordinator->state != COORDINATOR_GATHERING) {
        return;
    }
    if (from->role == ROLE_WORKER) {
        if (!accept_worker(coordinator, from, message, now_ms)) {
            return;
        }
        note_worker(coordinator, from, message);
        choices_note_ready(coordinator, from);
    }
    snprintf(slot->place, sizeof(slot->place), "%s", message->member->endpoints);
    slot->is_awaited = slot->is_new = false; // whoever answers is not the lost one
    slot_enter(membership, slot, SLOT_READY, now_ms);
    if (!membership_everybody_is(membership, SLOT_READY)) {
        return;
    }
    say_who_differs(coordinator);
    topology_begin(coordinator->job, membership, &coordinator->topology, &coordinator->needs_trial);
    coordinator_enter(coordinator, COORDINATOR_CONNECTING, now_ms);
}

/* Whether every worker is in the state. */
static bool all_workers_are(const struct membership *membership, enum slot_state state)
{
    return membership_count(membership->workers, membership->worker_count, state) ==
           membership->worker_count;
}

void handshake_tried(struct coordinator *coordinator, const struct sender *from,
                     const struct message *message, uint64_t now_ms)
{
    struct membership *membership = &coordinator->membership;
    struct slot *slot = from->slot;
    if (from->role != ROLE_WORKER || slot->state != SLOT_READY ||
        coordinator->state != COORDINATOR_CONNECTING) {
        return;
    }
    slot_enter(membership, slot, SLOT_TRIED, now_ms);
    topology_note(&coordinator->topology, from->index, message);
    if (message->reason != STATUS_OK) {
        coordinator_port_say(&coordinator->port, false,
                             "host %s, pid %llu cannot map the memory of the other workers: %s",
                             slot->host, (unsigned long long)slot->process_id,
                             status_text(message->reason));
    }
    if (!all_workers_are(membership, SLOT_TRIED)) {
        return;
    }
    if (topology_decide(coordinator->job, &coordinator->layout, &coordinator->topology) !=
        STATUS_OK) {
        uint32_t rank = coordinator->topology.refuser;
        const struct sender refuser = {&membership->workers[rank], ROLE_WORKER, rank};
        coordinator_fail(coordinator, STATUS_UNREACHABLE, &refuser, now_ms,
                         "worker %u (host %s, pid %llu) cannot map the memory of the other "
                         "workers, and --transport shm allows no messages instead; run all workers "
                         "in one container as one user, or use --transport auto",
                         refuser.slot->number, refuser.slot->host,
                         (unsigned long long)refuser.slot->process_id);
        return;
    }
    coordinator->needs_trial = false;
    coordinator_enter(coordinator, COORDINATOR_CONNECTING, now_ms);
}

void handshake_connected(struct coordinator *coordinator, const struct sender *from,
                         uint64_t now_ms)
{
    struct membership *membership = &coordinator->membership;
    if (from->slot->state != SLOT_READY || coordinator->state != COORDINATOR_CONNECTING) {
        return;
    }
    slot_enter(membership, from->slot, SLOT_CONNECTED, now_ms);
    if (membership_everybody_is(membership, SLOT_CONNECTED)) {
        coordinator_enter(coordinator, COORDINATOR_TRAINING, now_ms);
    }
}

/* Notes that a worker is done with a phase. Once all are, the next one begins. */
void handshake_passed(struct coordinator *coordinator, const struct sender *from,
                      const struct message *message, uint64_t now_ms)
{
    struct membership *membership = &coordinator->membership;
    if (from->role != ROLE_WORKER || from->slot->state != SLOT_CONNECTED ||
        coordinator->state != COORDINATOR_TRAINING ||
        message->passed->phase != coordinator->phase_index + 1) {
        return;
    }
    slot_enter(membership, from->slot, SLOT_READY, now_ms);
    tuning_note(&coordinator->tuning, coordinator->phase_index, message->passed->step_ns);
    if (!all_workers_are(membership, SLOT_READY)) {
        return;
    }
    for (uint32_t i = 0; i < membership->server_count; i++) {
        slot_enter(membership, &membership->servers[i], SLOT_READY, now_ms);
    }
    results_end_phase(&coordinator->results);
    coordinator->phase_index++;
    coordinator_enter(coordinator, COORDINATOR_CONNECTING, now_ms);
}
