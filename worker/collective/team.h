/* The processes of a job that share memory, for collectives and messages between any of them.
 *
 * Each process makes a region: a seat that says where it is, a bell that wakes it, and two pipes
 * from each of the others, one for collectives and one for messages. All map the regions of all. So
 * two processes can talk without a third, and without the job's coordinator.
 *
 * A process that waits here takes in meanwhile what messages come, so that a sender never waits for
 * a receiver that waits for something else: up to a limit, beyond which senders wait, unless it
 * sends itself, since then they may wait for each other. It does not wait for one that will not
 * come: that has left, waits itself for what this process has not done, or waits with it in a
 * circle. */
#ifndef WORKER_COLLECTIVE_TEAM_H
#define WORKER_COLLECTIVE_TEAM_H

#include "common/base/region.h"
#include "common/base/status.h"
#include "worker/collective/circle.h"
#include "worker/collective/pipe.h"
#include "worker/exchange/shared/bell.h"

#include <stdbool.h>
#include <stdint.h>

#define TEAM_SIZE_MAX    CIRCLE_SIZE_MAX
#define TEAM_LABEL_BYTES CIRCLE_TEXT_BYTES

struct team;

/* How others find what a process has made: sent to all as it lies in memory. */
struct team_place {
    struct region_key key;
};

/* Where a process is. */
enum team_presence {
    TEAM_PRESENT,
    TEAM_STARTING, // it waits until all start to train
    TEAM_STARTED,
    TEAM_LEFT, // it makes no more calls
};

enum team_pipe { TEAM_CALLS, TEAM_MESSAGES, TEAM_PIPE_COUNT };

/* In front of what goes through a pipe: both sides have to mean the same. */
struct team_header {
    uint64_t ranks_digest; // of the processes that take part
    uint64_t bytes;
    char label[TEAM_LABEL_BYTES]; // the call, in words
};

enum team_fault_kind {
    TEAM_DESERTED, // the other process has left, or needs gradients: `presence`, `needs_step`
    TEAM_DIFFERS,  // it makes another call: `other`
    TEAM_CIRCLE,   // it waits, too, for `after`: in `other`, or for gradients: `needs_step`
};

/* Why a call cannot end. */
struct team_fault {
    uint32_t rank; // the other process
    enum team_fault_kind kind;
    enum team_presence presence;
    uint64_t needs_step;                 // it waits for gradients of so many steps; 0: for none
    uint32_t after;                      // this process, or one that waits for it by way of others
    enum team_pipe own_pipe, other_pipe; // of what the two wait for
    struct team_header other;            // of a circle: the label only
};

/* That another process makes the call `other`, which is text from outside. */
struct team_fault team_fault_of_call(uint32_t rank, const struct team_header *other);

struct team_options {
    uint32_t rank, world;           // world at most TEAM_SIZE_MAX
    size_t intake_max;              // bytes of the messages of each that are taken in; 0: 1 GiB
    bool (*is_over)(void *context); // whether the job is; asked now and then in waits
    void *context;
};

/* Makes this process's region. Logs. */
enum status team_create(const struct team_options *options, struct team_place *ret_place,
                        struct team **ret_team);

/* Maps the regions of all: places (world). STATUS_UNREACHABLE: one cannot be mapped. Does not log.
 * Nothing is sent before all have done it. */
enum status team_map(struct team *team, const struct team_place *places);

void team_destroy(struct team *team); // NULL is fine

/* Say where this process is; how many steps' gradients it has given (UINT64_MAX: all that anybody
 * needs, for good), and needs of all others before it can go on (0: of none). */
void team_say_presence(struct team *team, enum team_presence presence);
void team_say_steps(struct team *team, uint64_t given, uint64_t needed);

/* The pipe between two processes, of which this is one. */
struct pipe_end team_pipe(const struct team *team, enum team_pipe which, uint32_t from,
                          uint32_t to);
void team_wake(const struct team *team, uint32_t rank);

uint32_t team_rank(const struct team *team);
uint32_t team_world(const struct team *team);
size_t team_capacity(const struct team *team); // of a pipe for calls

/* Takes a transfer of the messages of a process, those first that were taken in. */
bool team_take_message(struct team *team, uint32_t from, struct transfer *transfer);

/* What has to come from another process. */
enum team_need {
    TEAM_NEEDS_NOTHING,
    TEAM_NEEDS_ROOM,  // it has to take something, and no more
    TEAM_NEEDS_BYTES, // it has to send something
};

/* What a wait is for. */
struct team_work {
    bool (*move)(void *context); // does what can be done; whether that was anything
    bool (*is_complete)(const void *context);
    enum team_need (*needs)(const void *context, uint32_t rank);
    void *context;
    enum team_pipe pipe; // through which bytes come
    const char *label;   // the call, in words
};

/* Works until it is complete. STATUS_INTERRUPTED: the job is over. STATUS_UNREACHABLE: somebody who
 * is awaited does not come; *ret_fault says who. STATUS_NO_MEMORY: of a process that sends, for the
 * messages that others send to it. */
enum status team_run(struct team *team, const struct team_work *work, struct team_fault *ret_fault);

#endif
