/* What the coordinator tells the launcher once it listens: its endpoint, and then that its loop
 * goes round. If it takes long to get ready, it says before that it is alive. The lines, on the
 * pipe of --announce-fd:
 *
 *     ENDPOINT
 *     alive 20000    members wait so many milliseconds for it: whoever hears nothing for longer may
 *                    take it for hung
 *     busy           it does something that may take longer, until it says that it is alive again
 *     await worker 2 somebody may take the place of this member, which was lost before the start
 *     training       the job trains: before that it has nothing to go on from
 *     renewed 7      the launcher has told of ends in its first 7 lines: the job goes on without
 *                    those processes
 *     ending         the job ends: whoever is started again now comes too late
 *     recorded       the run folder says how the job has ended, and nothing more is written there
 *
 * Without a launcher (--launcher-fd) the pipe is closed after the first. A sign is left out if it
 * would have to wait: the reader may be stopped. */
#ifndef PS_SERVER_LAUNCHER_SIGNS_H
#define PS_SERVER_LAUNCHER_SIGNS_H

#include "common/base/status.h"

#include <stdbool.h>
#include <stdint.h>

struct signs {
    int fd;         // -1: nobody listens
    bool has_begun; // the endpoint was written
    uint64_t said_ms;
    uint32_t renewed;           // the number that it has last said with "renewed"
    bool is_busy, trains, ends; // it has said so
};

/* Before signs_begin: tells a launcher that the coordinator is alive, but not ready yet, as where a
 * disk gives it what it goes on from. Cheap, as signs_alive, and without effect after signs_begin.
 */
void signs_preparing(struct signs *signs, int fd, uint64_t now_ms, uint64_t patience_ms);

/* Writes the endpoint; fd -1: to nobody. Closes fd unless more follows. Logs. */
enum status signs_begin(struct signs *signs, int fd, const char *endpoint, bool goes_on);

/* The loop went round. Cheap: says so only when it is due. */
void signs_alive(struct signs *signs, uint64_t now_ms, uint64_t patience_ms);

/* It does not go round for a while. */
void signs_busy(struct signs *signs);

/* A member that was lost may be started again: `role` is "worker" or "server". Logs. */
void signs_await(struct signs *signs, const char *role, uint32_t number);

/* The job trains. Without effect when it was said. */
void signs_training(struct signs *signs);

/* The job goes on without the processes of whose ends the launcher has told in its first `heard`
 * lines. Without effect if that was said. Does not log: if nobody hears it, the next coordinator
 * waits longer for those processes. */
void signs_renewed(struct signs *signs, uint32_t heard);

/* The job ends. As signs_training. */
void signs_ending(struct signs *signs);

/* The run folder is complete. Once, at the end. Does not log: if nobody hears it, a launcher whose
 * coordinator the kernel holds does not trust the folder. */
void signs_recorded(struct signs *signs);

void signs_end(struct signs *signs); // begun or not, with fd -1

#endif
