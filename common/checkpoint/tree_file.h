/* Files with one JSON object. */
#ifndef COMMON_CHECKPOINT_TREE_FILE_H
#define COMMON_CHECKPOINT_TREE_FILE_H

#include "common/base/status.h"

#include <jansson.h>

#include <stddef.h>

/* Writes a file as a whole or not at all. Takes the tree in any case; NULL: there was no memory for
 * it. `flags`: of json_dumps. STATUS_IO and errno. */
enum status tree_file_replace(const char *path, json_t *tree, size_t flags);

#endif
