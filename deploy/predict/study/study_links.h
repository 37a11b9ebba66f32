/* What goes over each link of a predicted job in a step, and links that are alike as one group. */
#ifndef DEPLOY_PREDICT_STUDY_STUDY_LINKS_H
#define DEPLOY_PREDICT_STUDY_STUDY_LINKS_H

#include "common/base/status.h"
#include "deploy/predict/basis/basis.h"
#include "deploy/predict/study/study.h"

#include <jansson.h>

#include <stdio.h>

/* Fills in links of a job in small that no simulated process uses. A link of a host gets the mean
 * of hosts with the same bandwidth and as many workers and servers; in ring mode, if only one way
 * of a link is known, the other way has as much. Links of switches are known if a simulated process
 * sent over them. The rest stays NAN. `basis` is that of the point. */
enum status study_links_complete(const struct basis *basis, double *link_bytes);

/* A list of all links that carry something: `link`, `bytes_per_step` (null if not known), and,
 * where they have a bandwidth, `busy_percent`. NULL: the point has none. */
json_t *study_links_json(const struct study *study, const struct study_point *point);

/* Prints, for each point, a line for each group of links: those of hosts with the same bandwidth
 * and as many workers and servers, and those of switches with the same bandwidth below the same
 * switch. Switches that carry nothing are a group of their own. */
void study_links_print(const struct study *study, FILE *stream);

#endif
