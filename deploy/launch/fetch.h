/* Brings the run folder of a coordinator on another host to this one. */
#ifndef DEPLOY_LAUNCH_FETCH_H
#define DEPLOY_LAUNCH_FETCH_H

#include "common/base/status.h"
#include "deploy/hosts/crew.h"

#include <stdbool.h>
#include <stddef.h>

/* Whether an agent may name the path: it is below the folder, a few levels deep, and no dots lead
 * out of it. Pure. */
bool fetch_path_is_fine(const char *path);

/* Has the agent of `host` make a folder. It exists until the agent ends, or makes the next one.
 * Logs. */
enum status fetch_make_folder(struct crew *crew, size_t host, char *ret_path, size_t path_size);

/* Copies what is in that folder to `folder`. Logs. */
enum status fetch_folder(struct crew *crew, size_t host, const char *folder);

#endif
