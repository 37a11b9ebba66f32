/* Makes and removes the folder of --mirror memory. */
#include "deploy/launch/launch_mirror.h"

#include "common/base/log.h"
#include "deploy/hosts/launcher_options.h"
#include "deploy/system/folder.h"

#include <stdio.h>
#include <stdlib.h>

enum status launch_mirror_begin(struct launch_mirror *mirror, const char *asked)
{
    *mirror = (struct launch_mirror){.folder = ""};
    if (asked == NULL || asked[0] == '\0') {
        return STATUS_OK;
    }
    run_number_choose(mirror->run);
    mirror->is_own = launcher_mirror_is_memory(asked);
    snprintf(mirror->folder, sizeof(mirror->folder), "%s",
             mirror->is_own ? "/dev/shm/ringside-mirror-XXXXXX" : asked);
    if (mirror->is_own && mkdtemp(mirror->folder) == NULL) {
        log_error("--mirror memory: cannot make a folder in /dev/shm: %m; name one with --mirror "
                  "FOLDER");
        mirror->folder[0] = '\0';
        return STATUS_IO;
    }
    return STATUS_OK;
}

void launch_mirror_end(const struct launch_mirror *mirror)
{
    if (mirror->is_own && mirror->folder[0] != '\0') {
        folder_remove(mirror->folder);
    }
}
