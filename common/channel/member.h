/* Handles a member's side of a job: the handshake with the coordinator, and heartbeats.
 *
 *     JOIN -> WELCOME (rank, job)     prepare
 *     READY -> START (layout, places) connect
 *     CONNECTED -> GO                 train
 *     DONE -> STOP
 *     STOP -> LEAVE of a worker, DONE of a shard
 *
 * GO comes when all are connected, so every receiver is prepared for data messages.
 *
 * Used by workers and shards. Linear and blocking; belongs to the thread of its channel. */
#ifndef COMMON_CHANNEL_MEMBER_H
#define COMMON_CHANNEL_MEMBER_H

#include "common/base/attention.h"
#include "common/base/status.h"
#include "common/channel/channel.h"
#include "common/job/job.h"
#include "common/service/notify.h"

#include <stdatomic.h>
#include <stdint.h>

#define MEMBER_HEARTBEAT_MS 500
#define MEMBER_CLOCK_MS     100 // between questions for the coordinator's clock, for a timeline
#define MEMBER_TURN_MS      250

// When the coordinator's connection closes, its last messages may still be on their way to us.
#define MEMBER_CLOSED_MS 100

// How long a connection to the next coordinator may take to come about before another one is made.
#define MEMBER_KNOCK_MS 5000

// A coordinator that was silent for so long may have been away. For so long after the silence,
// others may still ask it to come back.
#define MEMBER_SILENCE_MS (UINT64_C(2) * MEMBER_HEARTBEAT_MS)
#define MEMBER_RECENT_MS  (UINT64_C(2) * MEMBER_KNOCK_MS)

// A process that waits to join first says so after this time, or after stall_warn_ms if that is
// shorter.
#define MEMBER_FIRST_WARNING_MS 1000

struct member {
    struct channel *channel; // borrowed
    uint64_t coordinator;    // peer
    struct wire_member self; // strings borrowed from the caller
    const char *optimizer;   // of READY: what a program of its own says of its optimizer, as
                             // job_text.h has it; borrowed; NULL: nothing
    const struct optimizer_groups *groups; // likewise, of its parameters; borrowed; or NULL
    struct notify *notify;  // borrowed; is told that who waits to join is alive; may be NULL
    uint32_t stall_warn_ms; // how often it says for whom it waits to join; 0: never
    uint64_t heartbeat_sent_ms;
    struct wire_wait wait; // what the next heartbeat says of it; `given` is the caller's
    bool is_waiting;       // for that one
    uint64_t waiting_since_ms;
    struct wire_wait broken; // if has_broken: the connection to another member that was closed
    uint64_t broken_ms;      // since when that is known
    bool has_broken, tells_broken; // the last heartbeat told it

    // Of a job that is resumed: how many steps were made, and what a worker has not reported of the
    // period that they ended in.
    uint64_t begin_step;
    struct wire_report open_period;
    uint32_t open_count; // ranks that the worker carries; 0: the job is not resumed
    uint64_t open_images[WIRE_SLICES_MAX];
    double open_loss_sums[WIRE_SLICES_MAX];

    uint32_t generation; // of the job's processes, from 0
    bool is_in_place;    // servers go on from what they have: see in_place.h
    uint64_t ready_step; // of READY: steps made that a program which commits goes on from
    uint64_t made_step;  // of JOIN: steps made in the generation before. The caller sets it

    // The coordinator, as it is judged: how long it may be silent, which it says itself, and since
    // when its connection is closed; 0: it is not. Time in which we did not look does not count.
    uint64_t coordinator_heard_ms, patience_ms, closed_ms;
    struct attention attention;

    // For how long it waits for another coordinator when its own was killed, or fell silent; 0: it
    // does not. The caller sets it, before member_join if this member was in the job before, and
    // looks whether it is without one (is_alone).
    uint64_t outlast_ms;
    const char *endpoint;          // of the coordinator, from member_connect; borrowed
    bool is_alone;                 // knocks at the endpoint, until member_return or STOP
    bool must_knock;               // nothing was said yet on the connection that there is
    uint64_t alone_ms, knocked_ms; // since when; when the newest connection was made
    uint64_t step;                 // at the last tick
    uint64_t sign_ms, alone_step;  // when a sign of the coordinator was noted last; the step then
    // The sign before the last long silence, and the step then; when that ended; 0: there was none.
    uint64_t silent_since_ms, silent_step, silent_until_ms;
    uint64_t lost_ms; // of one that is alone: the coordinator's last sign
    uint32_t term;    // coordinators that have taken it in since its generation began

    // Why the coordinator ended the job, once it did.
    enum status stop_status; // STATUS_OK: completed
    uint32_t stop_newcomers; // for whose sake this generation ended
    bool is_stopped;
    char stop_text[512];
};

/* Begins to connect to the coordinator at `endpoint`, which is borrowed. */
enum status member_connect(struct member *member, const char *endpoint);

/* Joins the connected coordinator, and waits at most timeout_ms for the welcome. Logs failures,
 * with `endpoint` as the coordinator's name. STATUS_INTERRUPTED if *is_interrupted became
 * nonzero. */
enum status member_join(struct member *member, const char *endpoint, uint32_t timeout_ms,
                        const atomic_int *is_interrupted, struct job *ret_job, uint32_t *ret_rank);

/* Tells the names of the data's classes, a list in JSON of at most WIRE_CLASSES_BYTES, before
 * READY. */
enum status member_tell_classes(struct member *member, const char *classes);

/* Sends READY with what member->self, layout (NULL for a shard) and nccl (NULL: it is not used)
 * say.
 */
enum status member_ready(struct member *member, const struct layout *layout,
                         const struct wire_nccl *nccl);

/* Says that this member can take data messages. */
enum status member_connected(struct member *member);

/* Handles what all members handle alike: HEARTBEAT, STOP, REFUSE. Returns whether it was such a
 * message. */
bool member_handle(struct member *member, const struct envelope *envelope,
                   const struct message *message);

/* Whether a heartbeat is due, before which member_note_wait is to be called. */
bool member_is_due(const struct member *member, uint64_t now_ms);

/* Notes whom this member waits for, that has nothing else to do; NULL: it does not. Its `given` is
 * borrowed until the next call. */
void member_note_wait(struct member *member, const struct wire_wait *wait, uint64_t now_ms);

/* Notes that a connection to another member was closed, which is not made again in this generation.
 * Of several the last one is told. */
void member_note_broken(struct member *member, enum member_role role, uint32_t index,
                        uint64_t now_ms);

/* What the next heartbeat says: the wait, and by turns the connection that was closed, if there is
 * one. NULL: nothing. Borrowed from the member. */
const struct wire_wait *member_tell_wait(struct member *member, uint64_t now_ms);

/* Sends a heartbeat if one is due. If the coordinator has been silent for too long, or its
 * connection was closed, goes on without it, or marks the member as stopped. `step` is this
 * member's step. Call it before each receive, at least every MEMBER_TURN_MS. */
void member_tick(struct member *member, uint64_t now_ms, uint64_t step);

/* Whether what is sent to the coordinator may arrive. */
bool member_reaches(const struct member *member);

/* Says on a new connection who this is, of which job, and what it has: BACK, whose member and text
 * are filled in. Without memory it does so at the next call. */
void member_knock(struct member *member, const struct job *job, struct message *back);

/* There is a coordinator again that knows this member, by its GO. */
void member_return(struct member *member, const struct message *go);

/* What BACK says of the member itself. `running_ms`: since when its generation trains; 0: it does
 * not yet. */
void member_describe(const struct member *member, uint64_t running_ms, uint64_t now_ms,
                     struct wire_back *back);

/* The coordinator, which is there, has begun anew: this member says who it is. */
void member_come_back(struct member *member, uint64_t now_ms);

/* Gives up: tells the coordinator why. */
void member_leave(struct member *member, enum status reason, const char *text);

#endif
