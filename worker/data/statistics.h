/* Mean and deviation of each channel of a dataset's stored bytes.
 *
 * Sums are whole numbers, so they depend neither on threads nor on the machine. Figures have four
 * digits behind the point: those that are said are those that are used. Where samples are files to
 * be decoded, the sums are kept between jobs, in RINGSIDE_CACHE/images (cache_folder.h), for these
 * files, of these sizes and times, at this size of images; processes of one host wait for the first
 * of them. */
#ifndef WORKER_DATA_STATISTICS_H
#define WORKER_DATA_STATISTICS_H

#include "common/plan/normalization.h"
#include "worker/data/dataset.h"

#include <stdbool.h>
#include <stdint.h>

struct statistics {
    uint64_t pixels; // of one channel of all samples
    uint64_t sums[PIXELS_CHANNELS_MAX], squares[PIXELS_CHANNELS_MAX];
};

/* Of the first `samples` of a dataset that stores bytes. `tells`: a long count is logged.
 * Logs what is wrong. */
enum status statistics_count(const struct dataset *dataset, uint64_t samples, bool tells,
                             struct statistics *ret_statistics);

/* What follows from the sums. STATUS_INVALID: a channel is the same everywhere; logs. Pure but for
 * that. */
enum status statistics_figures(const struct statistics *statistics, uint32_t channels,
                               struct normalization *ret_normalization);

#endif
