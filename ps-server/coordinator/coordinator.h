/* Runs a job from its members' arrival to its verdict.
 *
 * A pure state machine: messages and ticks in, messages out through the port. It opens no socket,
 * reads no clock (time is an argument, in milliseconds), and writes no file; server.c does all of
 * that. */
#ifndef PS_SERVER_COORDINATOR_COORDINATOR_H
#define PS_SERVER_COORDINATOR_COORDINATOR_H

#include "common/base/status.h"
#include "common/channel/long_text.h"
#include "common/channel/wire.h"
#include "common/job/carriers.h"
#include "common/job/job.h"
#include "common/job/job_text.h"
#include "common/plan/headway.h"
#include "common/vector/layout.h"
#include "ps-server/coordinator/checkpointing.h"
#include "ps-server/coordinator/choices.h"
#include "ps-server/coordinator/in_place.h"
#include "ps-server/coordinator/membership.h"
#include "ps-server/coordinator/newcomers.h"
#include "ps-server/coordinator/topology.h"
#include "ps-server/coordinator/tuning.h"
#include "ps-server/results/results.h"
#include "ps-server/results/sums.h"

#include <stdbool.h>
#include <stdint.h>

#define COORDINATOR_REASON_BYTES MEMBERSHIP_ERROR_BYTES
#define COORDINATOR_LOSSES_MAX   8 // beside the one that is the reason

// clang-format off
/* The states, and what leads from one to the next:
 *
 *     state        begins when                        sends          ends when
 *     GATHERING    the process starts                 WELCOME        everybody is READY
 *     CONNECTING   everybody is READY                 TRY or START   everybody is CONNECTED
 *     TRAINING     everybody is CONNECTED             GO             every worker PASSED or is DONE
 *     RENEWING     the next generation is to follow                  the loop has gone round
 *     CLOSING      the verdict is known               STOP           all have answered, or the time
 *                                                                    for answers is up
 *     OVER         the process may end, or the next
 *                  generation has begun
 *
 *     GATHERING ──► CONNECTING ──► TRAINING ──► CLOSING ──► OVER
 *                    ▲  │  ▲          │            ▲          ▲
 *                    └──┘  └──────────┘            │          │
 *                   all TRIED    all PASSED        │          │
 *                                                  │          │
 *     from any state before it: the job fails ─────┤          │
 *     from any state before it: it goes on ──► RENEWING ──────┘
 *
 * In RENEWING none of those that are left has been told yet. All that has happened by the end of
 * the loop's turn, losses that came together above all, still counts as it did before, so the job
 * may fail after all. Where gradients race, a few more turns pass until servers have said what they
 * have (in_place.h). STOP with the reason AGAIN is sent when that is known
 * (coordinator_call_back), and holds. If the next generation cannot begin then, CLOSING comes after
 * OVER, for those that were told to join it (coordinator_fail_to_renew).
 *
 * CONNECTING begins with TRY where workers have to find out what is possible between them, and
 * again with START when all have TRIED. It begins once more when every worker has passed a phase of
 * the job (see phases.h) and another one comes. coordinator_states.c has what entering a state
 * means, membership.h the states of a
 * slot. */
// clang-format on
enum coordinator_state {
    COORDINATOR_GATHERING,
    COORDINATOR_CONNECTING,
    COORDINATOR_TRAINING,
    COORDINATOR_RENEWING,
    COORDINATOR_CLOSING,
    COORDINATOR_OVER,
};

/* What the coordinator asks its owner to do or look up. None of the functions may call back into
 * the coordinator. */
struct coordinator_port {
    void *context;
    enum presence (*look)(void *context, struct sighting *sighting); // as presence_look; or NULL
    void (*send)(void *context, uint64_t peer, const struct message *message);
    void (*log)(void *context, bool is_error, const char *sentence);
    void (*started)(void *context);  // training begins: layout and samples are known
    void (*switched)(void *context); // training goes on in the phase of phase_index
    void (*reported)(void *context, uint32_t rank, const struct message *message);
    void (*period_closed)(void *context, uint32_t epoch);

    /* The launcher may start the member again: its place is kept. Or NULL. */
    void (*await_again)(void *context, enum member_role role, uint32_t number);

    /* Of checkpoints; the message is borrowed for the call. */
    void (*checkpoint)(void *context, enum checkpoint_task task, uint64_t peer,
                       const struct message *message);
};

/* What a job that is resumed begins with, from its checkpoint. */
struct coordinator_resume {
    uint64_t step; // steps that were made
    uint64_t value_count, layout_digest, data_digest;
    uint64_t train_samples, test_samples;
    uint64_t bucket_bytes;                 // that --bucket-mb auto has chosen; 0: none
    const struct wire_report *open_period; // (workers), borrowed; what was not reported of it
    const uint64_t *open_images;           // (workers) of those, again; borrowed
    const double *open_loss_sums;          // (workers) likewise
    double seconds;                        // of training before
    uint32_t restarts;                     // with this one
    uint32_t passed_over;                  // newer checkpoints, which it cannot go on from
};

/* The processes that carry a job's ranks until one of them is lost: see generation.h. */
struct generation;

/* A member that is lost, and how that is known. */
struct loss {
    struct sender lost;
    char sentence[COORDINATOR_REASON_BYTES];
};

struct coordinator {
    const struct job *job; // borrowed; or told_job, so a coordinator is never copied or moved
    struct job told_job;   // with the optimizer that a program of its own has said
    char optimizer[JOB_OPTIMIZER_TEXT_BYTES]; // what it has said
    struct optimizer_groups *groups;          // of its parameters, as it has said; owned; or NULL
    struct carriers carriers;      // of its ranks: worker i of the membership is process i
    const char *job_text;          // as it goes into WELCOME; borrowed
    const unsigned char *seal_key; // also for WELCOME, if the job's data travel in clear; or NULL
    struct coordinator_port port;
    enum coordinator_state state;
    struct membership membership;
    struct results results;
    struct sums sums;
    struct checkpointing checkpointing;
    struct newcomers newcomers;
    const struct coordinator_resume *resume; // borrowed; NULL: the job begins
    const struct generation *generation;     // borrowed; NULL: the first one
    bool calls_back; // members that are not here were told to join, and hear the verdict if they do
    uint64_t created_ms, started_ms, ended_ms; // ended: the verdict was known
    uint64_t stopped_ms, told_ms;              // STOP was sent to all; last to any
    bool awaits_knocks;                        // of members that have left before they heard it
    bool says_awaited;                         // for whom the process stays
    uint64_t stall_warned_ms, silence_warned_ms, heartbeat_sent_ms;
    uint64_t fetched_bytes;                // of what the job goes on from, that members were given
    uint64_t absence_ms, absence_ended_ms; // the coordinator's own last long absence; 0: none
    uint64_t deaf_ms; // the last sign of anybody before nothing was heard of all; 0: that is not so

    struct layout layout;       // of the first worker that was ready
    struct layout phase_layout; // the same with the buckets of the phase
    bool has_layout;
    struct sender doubtful; // the first one, if it is a newcomer and nobody has agreed with it
                            // who was there before; its slot is NULL: that is not so
    uint64_t tensor_count;  // of a program of its own
    char tensors[WIRE_TENSORS_BYTES];
    uint64_t train_samples, test_samples, data_digest;
    char figures[WIRE_FIGURES_BYTES]; // of the first worker: M,M,M/D,D,D of pixels; "": it has none
    struct long_text classes; // names of the data's, a list in JSON; nothing: they have none
    uint64_t parameters;      // of the model, as its authors count them
    uint32_t phase_index;     // of the job's phases
    struct choices choices;   // of worker 0, in computing
    struct topology topology; // of ring phases
    bool needs_trial;         // some workers have yet to find out what is possible between them
    struct tuning tuning;     // of buckets

    bool is_launched; // a launcher says how members end, and whether it starts them again
    char vacated[COORDINATOR_REASON_BYTES]; // the last loss of one whose place is free; "": none is

    struct in_place in_place; // how the next generation begins, while this one is RENEWING

    struct headway headway; // of this generation, until what was lost is made again
    uint64_t made_before; // the most steps that a joining worker had made in the generation before

    // Of a program that commits (--on-loss commit).
    uint64_t begin_step;  // steps made that this generation goes on from, as its workers say
    uint64_t commit_step; // steps of the last commit
    uint32_t admitted;    // newcomers for whose sake this generation ends

    // The verdict.
    enum status verdict; // STATUS_OK: completed; AGAIN: the next generation goes on
    char reason[COORDINATOR_REASON_BYTES];
    struct sender culprit; // the member that the reason is about; its slot is NULL: none
    struct loss losses[COORDINATOR_LOSSES_MAX]; // others that are judged together with it
    uint32_t loss_count;
    char params_digest[MEMBERSHIP_DIGEST_BYTES]; // "" unless completed
    uint32_t workers_lost;                       // in all generations, of those that took part
    bool is_returned;         // its members trained before it was there: see ps-server/returning
    uint32_t term;            // then: how many coordinators have taken them in, with this one
    uint32_t restarts_before; // of processes before this one, as far as its run folder knows
    uint64_t diverged_step;   // from 1: a loss was not finite there; 0: none was
};

enum status coordinator_init(struct coordinator *coordinator, const struct job *job,
                             const char *job_text, const struct coordinator_port *port,
                             uint64_t now_ms);
void coordinator_finish(struct coordinator *coordinator);

void coordinator_receive(struct coordinator *coordinator, uint64_t peer,
                         const struct message *message, uint64_t now_ms);

/* Describes the all-reduce of the job's ring phases in one line, once the job has started. Returns
 * false, and writes nothing, if it has no ring phase or only one worker. */
bool coordinator_all_reduce(const struct coordinator *coordinator, char *ret_text,
                            size_t text_size);

/* Checks deadlines. Call it several times a second, after receiving all waiting messages, so that
 * no member that has sent something counts as silent. away_ms: by how much the call is late. */
void coordinator_tick(struct coordinator *coordinator, uint64_t now_ms, uint64_t away_ms);

/* Ends the job from outside (a signal, a full disk). */
void coordinator_stop(struct coordinator *coordinator, enum status status, const char *reason,
                      uint64_t now_ms);

/* Corrects the verdict of a job that has ended, once more is known. The reason is about `culprit`,
 * or about no member if that is NULL. */
void coordinator_amend(struct coordinator *coordinator, enum status verdict, const char *reason,
                       const struct sender *culprit);

#endif
