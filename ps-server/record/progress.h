/* What a person sees of a job: on a terminal a line that is rewritten, and one for each rank on
 * request; plain lines otherwise; and a closing summary. On standard output. */
#ifndef PS_SERVER_RECORD_PROGRESS_H
#define PS_SERVER_RECORD_PROGRESS_H

#include "ps-server/coordinator/coordinator.h"
#include "ps-server/record/live_line.h"

#include <stdbool.h>
#include <stdint.h>

struct progress {
    bool is_on;
    bool is_terminal;
    bool has_ranks;      // on a terminal: a line for each rank
    bool has_blocks;     // the terminal shows characters beyond ASCII
    uint32_t rank_lines; // above the line that will be rewritten
    struct live_line_curve curve;
    bool has_line; // a line that will be rewritten is on the terminal
    uint64_t shown_ms;
};

void progress_init(struct progress *progress, bool is_on, bool has_ranks);

/* `asked`: the job, before a program of its own has said its optimizer. */
void progress_started(struct progress *progress, const struct coordinator *coordinator,
                      const struct job *asked);

void progress_switched(struct progress *progress, const struct coordinator *coordinator);

/* In the place of a job that is complete already; with more --epochs it may go on. */
void progress_nothing_left(struct progress *progress, const char *folder, bool may_go_on);

/* After the loss of the coordinator before, which the workers have outlasted. */
void progress_returned(struct progress *progress, const struct coordinator *coordinator);

/* After the loss of a worker. */
void progress_gone_on(struct progress *progress, const struct coordinator *coordinator);
void progress_reported(struct progress *progress, const struct coordinator *coordinator,
                       uint64_t now_ms);
void progress_period(struct progress *progress, const struct coordinator *coordinator,
                     uint32_t epoch);

/* Ends the line, so that something else can be printed. */
void progress_break(struct progress *progress);
void progress_closing(struct progress *progress, const struct coordinator *coordinator);

#endif
