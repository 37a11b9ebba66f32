/* What the workers that a job has lost have cost it, as JSON. */
#ifndef PS_SERVER_RECORD_RECOVERIES_H
#define PS_SERVER_RECORD_RECOVERIES_H

#include "ps-server/coordinator/coordinator.h"

#include <jansson.h>

/* An entry for each loss that the job went on after; docs/RUN-FOLDER.md has its keys. The caller
 * owns it. */
json_t *recoveries_json(const struct coordinator *coordinator);

#endif
