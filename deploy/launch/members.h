/* The processes of a job as the launcher sees them: their hosts, how they ended, what they
 * wrote. */
#ifndef DEPLOY_LAUNCH_MEMBERS_H
#define DEPLOY_LAUNCH_MEMBERS_H

#include "common/base/status.h"
#include "common/job/faults.h"
#include "deploy/agent/agent_message.h"
#include "deploy/hosts/crew.h"
#include "deploy/launch/log_tail.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MEMBER_NAME_BYTES 32
#define MEMBER_LOG_BYTES  4096

struct member {
    char name[MEMBER_NAME_BYTES]; // "worker 3"
    char log[MEMBER_LOG_BYTES];   // its log, in the run folder
    uint64_t log_from;            // byte of it; before that are lines of processes before this one
    size_t host;
    bool is_started, is_over;
    bool is_lost;         // over because its host was lost
    uint32_t pid;         // on its host; 0: not known
    uint32_t launch;      // which of the launcher's starts it is (launch_number.h); 0: none
    int stopped;          // by this signal; 0: it runs
    uint64_t stopped_ms;  // since when
    uint64_t alive_ms;    // its last sign of life; 0: none is due
    uint64_t patience_ms; // how long others wait for the next one, as it says
    int result;           // as waitpid gives it, if it is over and not lost
    int log_fd;           // where its lines go; -1: its agent writes the log itself
    bool is_noted;        // its end has been looked at
    uint32_t told;        // if so: launch->told at that time
    bool is_settled;      // the job has gone on without it
    uint64_t restart_ms;  // when it is started again; 0: it is not
    bool is_replacement;  // then, for a join of --fault
    bool is_same_loss;    // and it was lost together with the coordinator, which is back
    bool is_offered;      // the coordinator was told that it can be started again; no answer yet
    bool is_again;        // it was started again
    bool is_unplaced;     // it was said that no host has a slot for it
    bool is_missed;       // its program's job was completed without it
    bool is_given_up;     // it was started again, and its program failed: the coordinator knows
                          // whether the job goes on without it
    // The last stop of --fault that was told; "": none.
    char stood_still[FAULT_TEXT_BYTES];
};

struct members {
    struct crew *crew;   // borrowed
    struct member *list; // (count), owned
    size_t count;
    uint32_t first_id; // of member 0; the others follow
    size_t shown_from; // lines of members from this one on also go to the terminal
};

/* What it has written to its log. Borrows the member. */
struct log_part member_log(const struct member *member);

enum status members_init(struct members *members, struct crew *crew, size_t count);
void members_finish(struct members *members);

/* How a member is started: see agent_message.h. Secrets go into `input`, which nobody else on
 * either host can see, and never into argv or environment. */
struct member_start {
    const char *name, *log; // "worker 3", "FOLDER/logs/worker-3.log"
    size_t host;
    const char *const *argv;        // ends with NULL
    const char *const *environment; // ends with NULL
    const char *endpoint;           // of the coordinator that it is to join; NULL: it is that one
    const char *input;              // of its standard input; NULL: none
    bool announces, listens, is_told, has_terminal;
};

/* Starts a member. Logs why it cannot be started. */
enum status members_start(struct members *members, size_t index, const struct member_start *start);

/* Handles output and exits. What a member writes to --announce-fd goes to ret_announcement, unless
 * that is NULL. Returns false if the message is about something else. */
bool members_take(struct members *members, size_t host, const struct agent_message *message,
                  char *ret_announcement, size_t announcement_size);

/* Notes that members on lost hosts are over. */
void members_take_losses(struct members *members);

void members_signal(struct members *members, size_t index, int signal_number);

/* Sends a line to a member that was started with is_told. */
void members_tell(struct members *members, size_t index, const char *line);
bool members_all_over(const struct members *members);

/* Whether a member is over but did not end by itself. */
bool member_was_killed(const struct member *member);

/* Describes how a member that is over ended: as process_describe_end does, with the last error of
 * its log if it ended by itself; or "was lost with node2: no sign of life for 10 s". */
void members_explain_end(const struct members *members, size_t index, char *ret_text,
                         size_t text_size);

#endif
