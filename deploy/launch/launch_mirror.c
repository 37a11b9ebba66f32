/* Makes and removes the folder of --mirror memory. */
#include "deploy/launch/launch_mirror.h"

#include "common/base/log.h"
#include "deploy/system/folder.h"

#include <sodium.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum status launch_mirror_begin(struct launch_mirror *mirror, const char *asked)
{
    unsigned char bytes[16];
    *mirror = (struct launch_mirror){.folder = ""};
    if (asked == NULL || asked[0] == '\0') {
        return STATUS_OK;
    }
    randombytes_buf(bytes, sizeof(bytes));
    sodium_bin2hex(mirror->run, sizeof(mirror->run), bytes, sizeof(bytes));
    mirror->is_own = strcmp(asked, "memory") == 0;
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
