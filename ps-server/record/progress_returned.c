/* Says that a job goes on below another coordinator. */
#include "ps-server/coordinator/generation.h"
#include "ps-server/record/progress.h"

#include <stdio.h>

void progress_returned(struct progress *progress, const struct coordinator *coordinator)
{
    const struct generation *generation = coordinator->generation;
    const struct recovery *last = &generation->recoveries[generation->recovery_count - 1];
    progress_break(progress);
    if (progress->is_on) {
        printf("the job goes on at step %llu, %.1f s after the coordinator's last sign, and makes "
               "none again: %s; steps made meanwhile: %llu\n",
               (unsigned long long)last->lost_step, last->seconds, last->reason,
               (unsigned long long)last->steps_meanwhile);
        fflush(stdout);
    }
}
