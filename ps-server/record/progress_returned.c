/* Says that a job goes on below another coordinator. */
#include "ps-server/coordinator/generation.h"
#include "ps-server/record/progress.h"

#include <stdio.h>

void progress_returned(struct progress *progress, const struct coordinator *coordinator)
{
    const struct recovery *last = &coordinator->generation->recoveries[0];
    progress_break(progress);
    if (progress->is_on) {
        printf("the job goes on at step %llu, and makes none again: %s\n",
               (unsigned long long)last->lost_step, last->reason);
        fflush(stdout);
    }
}
