/* Reads and writes the number of a run. */
#include "common/checkpoint/mirror_owner.h"

#include "common/base/log.h"
#include "common/base/new_file.h"
#include "common/checkpoint/tree_file.h"

#include <jansson.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define PATH_BYTES 4200

static void path_of(const char *folder, char ret_path[PATH_BYTES])
{
    snprintf(ret_path, PATH_BYTES, "%.4096s/" MIRROR_FILE, folder);
}

static void copy_text(const json_t *tree, const char *name, char *ret_text, size_t size)
{
    const char *text = json_string_value(json_object_get(tree, name));
    snprintf(ret_text, size, "%s", text != NULL ? text : "");
}

enum status mirror_owner_read(const char *folder, struct mirror_owner *ret_owner)
{
    char path[PATH_BYTES];
    *ret_owner = (struct mirror_owner){.run = ""};
    path_of(folder, path);
    FILE *file = new_file_read(path);
    if (file == NULL) {
        return errno == ENOENT || errno == ENOTDIR ? STATUS_OK : STATUS_IO;
    }
    json_t *tree = json_loadf(file, 0, NULL);
    fclose(file);
    copy_text(tree, "run", ret_owner->run, sizeof(ret_owner->run));
    copy_text(tree, "other", ret_owner->other, sizeof(ret_owner->other));
    ret_owner->is_made = json_is_true(json_object_get(tree, "made"));
    json_decref(tree);
    return STATUS_OK;
}

enum status mirror_owner_write(const char *folder, const struct mirror_owner *owner)
{
    char path[PATH_BYTES];
    path_of(folder, path);
    json_t *tree = json_pack("{s:s, s:s, s:b}", "run", owner->run, "other", owner->other, "made",
                             owner->is_made);
    return tree_file_replace(path, tree, 0); // with paths as they are: requeue.sbatch reads them
}

enum status mirror_owner_leave(const char *run_folder)
{
    struct mirror_owner owner = {.is_made = false};
    run_number_choose(owner.run);
    return mirror_owner_write(run_folder, &owner);
}

void mirror_owner_forget(void *folder)
{
    char path[PATH_BYTES];
    path_of(folder, path);
    if (unlink(path) != 0 && errno != ENOENT) {
        log_warn("cannot remove %s, which says that the run has a mirror: %m", path);
    }
    free(folder);
}
