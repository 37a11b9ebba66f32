/* Finds the worker beside this program, and the keys, and writes both as a shell takes them. */
#include "ps-server/invitation.h"

#include "common/base/shell_word.h"
#include "common/security/keys.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define WORD_BYTES (INVITATION_BYTES / 3)

// From the folder of this program: as they are built, as they are installed.
static const char *const places[] = {"../worker/worker", "worker"};

/* The path of the worker; its bare name, for PATH to find, if there is none beside this program. */
static void find_worker(char ret_path[PATH_MAX])
{
    char self[PATH_MAX], place[2 * PATH_MAX];
    ssize_t size = readlink("/proc/self/exe", self, sizeof(self) - 1);
    self[size > 0 ? size : 0] = '\0';
    char *slash = strrchr(self, '/');
    if (slash != NULL) {
        *slash = '\0';
    }
    for (size_t i = 0; slash != NULL && i < sizeof(places) / sizeof(places[0]); i++) {
        snprintf(place, sizeof(place), "%s/%s", self, places[i]);
        if (access(place, X_OK) == 0 && realpath(place, ret_path) != NULL) {
            return;
        }
    }
    snprintf(ret_path, PATH_MAX, "worker");
}

void invitation_write(const struct invitation *invitation, char ret_text[INVITATION_BYTES])
{
    char path[PATH_MAX], worker[WORD_BYTES], keys[WORD_BYTES] = "";
    find_worker(path);
    shell_word_quote(path, worker, sizeof(worker));
    if (invitation->keys[0] != '\0') {
        keys_path(invitation->keys, path);
        shell_word_quote(path, keys, sizeof(keys));
    }
    snprintf(ret_text, INVITATION_BYTES, "waiting for %u worker%s: %s --server %.1000s%s%s%s",
             invitation->workers, invitation->workers == 1 ? "" : "s", worker, invitation->endpoint,
             keys[0] != '\0' ? " --keys " : "", keys, invitation->is_insecure ? " --insecure" : "");
}
