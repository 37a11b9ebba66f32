/* What goes over each link of a predicted job in a step, and links that are alike as one group. */
#ifndef DEPLOY_PREDICT_STUDY_STUDY_LINKS_H
#define DEPLOY_PREDICT_STUDY_STUDY_LINKS_H

#include "common/base/status.h"
#include "deploy/predict/basis/basis.h"
#include "deploy/predict/study/study.h"

#include <jansson.h>

#include <stdio.h>

/* In a job that was made in small, links that no simulated process has get the mean of those of
 * hosts with the same bandwidth and as many workers and servers; in ring mode, where one way of a
 * link is known, the other has as much. Switches are known if something simulated went over them.
 * The rest stays NAN. The basis is that of the point. */
enum status study_links_complete(const struct basis *basis, double *link_bytes);

/* A list of all links over which something goes: `link`, `bytes_per_step`, and, where they have a
 * bandwidth, `busy_percent`; bytes of null are not known. NULL: the point has none. */
json_t *study_links_json(const struct study *study, const struct study_point *point);

/* A line for each point: hosts with the same bandwidth and as many workers and servers are a group,
 * and so are switches of one bandwidth below the same one, apart from those
 * that carry nothing. */
void study_links_print(const struct study *study, FILE *stream);

#endif
