/* The run folder of a coordinator on another host, brought here. */
#ifndef DEPLOY_LAUNCH_FETCH_H
#define DEPLOY_LAUNCH_FETCH_H

#include "common/base/status.h"
#include "deploy/hosts/crew.h"

#include <stdbool.h>
#include <stddef.h>

/* A path that an agent may name: below the folder, a few levels deep, without dots that lead out of
 * it. Pure. */
bool fetch_path_is_fine(const char *path);

/* Has the agent of `host` make a folder, which lives as long as the agent, or until the next one.
 * Logs. */
enum status fetch_make_folder(struct crew *crew, size_t host, char *ret_path, size_t path_size);

/* Copies what is in it below `folder`. Logs. */
enum status fetch_folder(struct crew *crew, size_t host, const char *folder);

#endif
