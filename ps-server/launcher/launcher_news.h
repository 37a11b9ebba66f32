/* What the launcher tells the coordinator while the job runs.
 *
 * The launcher is the first to know for certain how a member ended. It writes one line for each
 * such event to a pipe (--launcher-fd), and keeps the pipe open for as long as it lives. If the
 * pipe ends, the launcher is gone. The lines:
 *
 *     interrupted SENTENCE       somebody wants the job to end
 *     failed SENTENCE            the job cannot go on
 *     ended worker 3 SENTENCE    the member ended by itself, with an error
 *     killed server 1 SENTENCE   the member was killed: errors that others report follow from it
 *     again worker 2 SENTENCE    the same, and the launcher can start it again
 *     newcomer worker 1 SENTENCE as ended, of one that was started in the place of a lost one
 *
 * `newcomer` is told of a program that commits (--on-loss commit). The launcher does not know
 * whether the process takes part in the job; only then is it missed.
 *
 * Between member and sentence the launcher says which of its starts the process was: `launch 17`
 * (common/service/launch_number.h). The line and what processes say come by different ways, and the
 * line may be the slower one: whoever has the place by then may be another process.
 *
 * A coordinator that was started in the place of a lost one also hears, until training goes on
 * (ps-server/returning/ended.h):
 *
 *     lost worker 1 SENTENCE     as killed, and the job may still count on it
 *     over worker 0 SENTENCE     it does not run, and the job had gone on without it
 *
 * If a member that was killed can be replaced, because the job has not begun, the coordinator
 * answers by --announce-fd, and the launcher starts it again:
 *
 *     await worker 2 */
#ifndef PS_SERVER_LAUNCHER_LAUNCHER_NEWS_H
#define PS_SERVER_LAUNCHER_LAUNCHER_NEWS_H

#include "ps-server/coordinator/coordinator.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LAUNCHER_LINE_BYTES 1024

enum launcher_news_kind {
    LAUNCHER_INTERRUPTED,
    LAUNCHER_FAILED,
    LAUNCHER_ENDED,
    LAUNCHER_KILLED,
    LAUNCHER_AGAIN,
    LAUNCHER_NEWCOMER,
    LAUNCHER_LOST,
    LAUNCHER_OVER,
    LAUNCHER_GONE, // the pipe has ended
};

struct launcher_news {
    enum launcher_news_kind kind;
    enum member_role role; // for those that name a member
    uint32_t index;        // the same
    uint32_t launch;       // of the process that ended; 0: not known
    const char *sentence;  // borrowed until the next call
    bool is_counted;       // among the lost workers, by a coordinator before: the caller knows
};

struct launcher_pipe {
    int fd;         // -1: there is no launcher, or it is gone
    uint32_t taken; // lines
    size_t begin, end;
    char bytes[LAUNCHER_LINE_BYTES];
};

/* -1: there is none. */
void launcher_pipe_init(struct launcher_pipe *pipe, int fd);

/* Takes the next line, or the end of the pipe. Returns false if there is neither. Does not wait.
 * Skips lines of unknown kinds. */
bool launcher_pipe_next(struct launcher_pipe *pipe, struct launcher_news *ret_news);

/* Finds the member that has ended: that process, or the place that it was started for, if nobody
 * has that. The slot is NULL if there is none. False: another process has the place, so the news
 * comes late. */
bool launcher_news_find(const struct launcher_news *news, const struct coordinator *coordinator,
                        struct sender *ret_member);

/* Ends the job if the news requires it. A member that was killed becomes the reason of a failed
 * job, whatever was reported before, unless the job was interrupted. Pure. */
void launcher_news_apply(const struct launcher_news *news, struct coordinator *coordinator,
                         uint64_t now_ms);

#endif
