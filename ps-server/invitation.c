/* Finds the worker beside this program, and quotes what a shell would take for something else. */
#include "ps-server/invitation.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// Each character may take four: '\''
#define QUOTED_BYTES (4 * PATH_MAX + 3)

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

/* As a shell takes it whole. */
static void quote(const char *text, char ret_quoted[QUOTED_BYTES])
{
    static const char safe[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                               "@%+=:,./_-";
    if (text[strspn(text, safe)] == '\0') {
        snprintf(ret_quoted, QUOTED_BYTES, "%s", text);
        return;
    }
    char *at = ret_quoted;
    *at++ = '\'';
    for (; *text != '\0'; text++) {
        if (*text == '\'') {
            // NOLINTNEXTLINE(bugprone-not-null-terminated-result): the end comes last
            memcpy(at, "'\\'", 3);
            at += 3;
        }
        *at++ = *text;
    }
    memcpy(at, "'", 2);
}

/* The path of the file from anywhere; what is read from standard input has none. */
static void find_keys(const char *keys, char ret_path[PATH_MAX])
{
    if (strcmp(keys, "-") == 0 || realpath(keys, ret_path) == NULL) {
        snprintf(ret_path, PATH_MAX, "FILE");
    }
}

void invitation_write(const struct invitation *invitation, char ret_text[INVITATION_BYTES])
{
    char path[PATH_MAX], worker[QUOTED_BYTES], keys[QUOTED_BYTES] = "";
    find_worker(path);
    quote(path, worker);
    if (invitation->keys[0] != '\0') {
        find_keys(invitation->keys, path);
        quote(path, keys);
    }
    snprintf(ret_text, INVITATION_BYTES, "waiting for %u worker%s: %.*s --server %s%s%.*s%s",
             invitation->workers, invitation->workers == 1 ? "" : "s", INVITATION_BYTES / 3, worker,
             invitation->endpoint, keys[0] != '\0' ? " --keys " : "", INVITATION_BYTES / 3, keys,
             invitation->is_insecure ? " --insecure" : "");
}
