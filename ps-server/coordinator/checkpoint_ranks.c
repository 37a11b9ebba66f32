/* Splits what a worker reports into what belongs to each of its ranks, and joins it again. */
#include "ps-server/coordinator/checkpoint_ranks.h"

#include "ps-server/coordinator/checkpoint_schedule.h"
#include "ps-server/coordinator/coordinator.h"

/* In a race a copy has as many gradients as all ranks make in its steps, and nobody knows how many
 * of each. Each rank counts with its share, so that no image counts twice when some are computed
 * again. */
static void take_share(const struct coordinator *coordinator, uint32_t rank, uint64_t steps,
                       struct results_rank *results)
{
    const struct job *job = coordinator->job;
    if (checkpoint_schedule_is_race(coordinator, steps) && job->backup == 0) {
        results_rank_share(results, steps, steps * job_batch_of(job, rank));
    }
}

bool checkpoint_ranks_take(struct coordinator *coordinator, struct rank_block ranks,
                           const struct message *snapshot)
{
    const struct wire_slices *slices = snapshot->slices;
    if (snapshot->report == NULL || slices == NULL || slices->count != ranks.count) {
        return false;
    }
    for (uint32_t i = 0; i < ranks.count; i++) {
        struct checkpoint_rank *rank = &coordinator->checkpointing.ranks[ranks.first + i];
        rank->results = coordinator->results.ranks[ranks.first + i];
        take_share(coordinator, ranks.first + i, snapshot->step, &rank->results);
        rank->open_period = *snapshot->report;
        rank->open_period.images = slices->images[i];
        rank->open_period.loss_sum = slices->loss_sums[i];
        rank->open_period.staleness = NULL; // of the scratch
        rank->open_period.staleness_bins = 0;
    }
    return true;
}

void checkpoint_ranks_give(const struct coordinator_resume *resume, struct rank_block ranks,
                           struct wire_report *ret_report, struct wire_slices *ret_slices)
{
    const struct wire_report *slowest = &resume->open_period[ranks.first];
    // Several processes may have carried these ranks: the times that count are the longest.
    for (uint32_t i = 1; i < ranks.count; i++) {
        const struct wire_report *other = &resume->open_period[ranks.first + i];
        slowest = other->total_ns > slowest->total_ns ? other : slowest;
    }
    *ret_report = *slowest;
    ret_report->images = 0;
    ret_report->loss_sum = 0;
    *ret_slices = (struct wire_slices){.count = ranks.count,
                                       .images = resume->open_images + ranks.first,
                                       .loss_sums = resume->open_loss_sums + ranks.first};
}

void checkpoint_counts_note(struct checkpointing *checkpointing, uint32_t server,
                            const struct wire_report *report)
{
    struct checkpoint_counts *counts = &checkpointing->counts[server];
    *counts = (struct checkpoint_counts){.late_count = report->late};
    staleness_add_counts(&counts->staleness, report->staleness, report->staleness_bins,
                         report->staleness_sum, report->staleness_max);
}

void checkpoint_counts_add(struct coordinator *coordinator, uint32_t servers)
{
    struct checkpointing *of = &coordinator->checkpointing;
    const struct results *before = &coordinator->results; // no server has told its own so far
    of->counted.staleness = before->staleness;
    of->counted.late_count = before->late_count;
    for (uint32_t i = 0; i < servers; i++) {
        staleness_add_all(&of->counted.staleness, &of->counts[i].staleness);
        of->counted.late_count += of->counts[i].late_count;
    }
}
