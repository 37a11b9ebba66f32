/* What the run folder's files say, as JSON. The keys are the contract with scripts. */
#ifndef PS_SERVER_RECORD_SUMMARY_H
#define PS_SERVER_RECORD_SUMMARY_H

#include "ps-server/coordinator/coordinator.h"
#include "ps-server/record/metrics.h"

#include <jansson.h>

/* Each returns a tree that the caller owns, or NULL if there is no memory. */
json_t *summary_metrics_json(uint32_t rank, const struct metrics_line *line);
json_t *summary_json(const struct coordinator *coordinator);

/* Steps that the job made; if it was not completed, the mean of its workers. */
uint64_t summary_steps(const struct coordinator *coordinator);

/* What the contract of summary.json has no key for. */
json_t *summary_details_json(const struct coordinator *coordinator);

#endif
