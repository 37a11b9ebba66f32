/* Writes JSON to files. */
#include "common/checkpoint/tree_file.h"

#include "common/base/new_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum status tree_file_replace(const char *path, json_t *tree, size_t flags)
{
    char *text = tree != NULL ? json_dumps(tree, flags) : NULL;
    enum status status = STATUS_IO;
    if (text != NULL) {
        status = new_file_replace(path, text, strlen(text));
    } else {
        errno = ENOMEM;
    }
    int error = errno;
    free(text);
    json_decref(tree);
    errno = error;
    return status;
}
