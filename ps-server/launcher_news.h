/* What the coordinator's launcher tells it while the job runs, and that the launcher has gone.
 *
 * The launcher learns first, and for certain, how a member has ended. It writes a line for each
 * thing that matters to a pipe (--launcher-fd), and holds that open for as long as it lives:
 *
 *     interrupted SENTENCE       somebody wants the job to end
 *     failed SENTENCE            the job cannot go on
 *     ended worker 3 SENTENCE    the member has ended by itself, with an error
 *     killed server 1 SENTENCE   the member was killed: what others say of it is a consequence
 */
#ifndef PS_SERVER_LAUNCHER_NEWS_H
#define PS_SERVER_LAUNCHER_NEWS_H

#include "ps-server/coordinator.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LAUNCHER_LINE_BYTES 1024

enum launcher_news_kind {
    LAUNCHER_INTERRUPTED,
    LAUNCHER_FAILED,
    LAUNCHER_ENDED,
    LAUNCHER_KILLED,
    LAUNCHER_GONE, // the pipe has ended
};

struct launcher_news {
    enum launcher_news_kind kind;
    enum member_role role; // of ended and killed
    uint32_t index;        // the same
    const char *sentence;  // borrowed until the next call
};

struct launcher_pipe {
    int fd; // -1: there is no launcher, or it has gone
    size_t begin, end;
    char bytes[LAUNCHER_LINE_BYTES];
};

/* -1: there is none. */
void launcher_pipe_init(struct launcher_pipe *pipe, int fd);

/* The next line, or the end. False: there is nothing. Does not wait. Lines that say none of the
 * above are passed over. */
bool launcher_pipe_next(struct launcher_pipe *pipe, struct launcher_news *ret_news);

/* What follows for the job. That a member was killed is the reason of a job that fails, whatever
 * others have said about it before. Pure. */
void launcher_news_apply(const struct launcher_news *news, struct coordinator *coordinator,
                         uint64_t now_ms);

#endif
