/* Makes a temporary run folder on this host, and sends its files to the launcher. */
#include "deploy/agent/agent_folder.h"

#include "common/job/job.h"
#include "deploy/system/folder.h"

#include <sodium.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PIECE_BYTES   (48 * 1024)
#define ENCODED_BYTES (PIECE_BYTES / 3 * 4 + 1)

static void say_failed(struct agent_folder *folder, enum agent_kind kind)
{
    char text[160], error[100];
    snprintf(text, sizeof(text), "%s", strerror_r(errno, error, sizeof(error)));
    const struct agent_message answer = {.kind = kind, .path = "", .text = text};
    folder->port.say(folder->port.context, &answer);
}

static void end_walk(struct agent_folder *folder)
{
    if (folder->file >= 0) {
        close(folder->file);
        folder->file = -1;
    }
    if (folder->walk != NULL) {
        fts_close(folder->walk);
        folder->walk = NULL;
    }
}

void agent_folder_make(struct agent_folder *folder)
{
    const char *base = getenv("TMPDIR");
    agent_folder_finish(folder);
    snprintf(folder->path, sizeof(folder->path), "%.900s/ringside-run-XXXXXX",
             base != NULL && base[0] == '/' ? base : "/tmp");
    if (mkdtemp(folder->path) == NULL) {
        say_failed(folder, AGENT_MADE);
        folder->path[0] = '\0';
        return;
    }
    const struct agent_message answer = {.kind = AGENT_MADE, .path = folder->path, .text = ""};
    folder->port.say(folder->port.context, &answer);
}

/* summary.json is sent last: if it has arrived, everything has. */
static int compare_entries(const FTSENT **a, const FTSENT **b)
{
    bool is_last_a = strcmp((*a)->fts_name, "summary.json") == 0;
    bool is_last_b = strcmp((*b)->fts_name, "summary.json") == 0;
    return is_last_a != is_last_b ? is_last_a - is_last_b : strcmp((*a)->fts_name, (*b)->fts_name);
}

void agent_folder_fetch(struct agent_folder *folder)
{
    end_walk(folder);
    char *const paths[] = {folder->path, NULL};
    if (folder->path[0] != '\0') {
        folder->walk = fts_open(paths, FTS_PHYSICAL | FTS_NOCHDIR, compare_entries);
    } else {
        errno = ENOENT;
    }
    if (folder->walk == NULL) {
        say_failed(folder, AGENT_FETCHED);
    }
}

bool agent_folder_is_sending(const struct agent_folder *folder)
{
    return folder->walk != NULL;
}

/* Opens the next file. False: there is none, or it cannot be read, which is said. */
static bool open_next(struct agent_folder *folder)
{
    const FTSENT *entry;
    do {
        errno = 0;
        entry = fts_read(folder->walk);
    } while (entry != NULL &&
             (entry->fts_info != FTS_F || strcmp(entry->fts_name, JOB_RESERVE_NAME) == 0));
    if (entry == NULL && errno == 0) {
        const struct agent_message answer = {.kind = AGENT_FETCHED, .text = ""};
        folder->port.say(folder->port.context, &answer);
        return false;
    }
    if (entry != NULL) {
        folder->file = open(entry->fts_path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
        folder->offset = 0;
        snprintf(folder->name, sizeof(folder->name), "%s",
                 entry->fts_path + strlen(folder->path) + 1);
    }
    if (folder->file < 0) {
        say_failed(folder, AGENT_FETCHED);
    }
    return folder->file >= 0;
}

void agent_folder_send(struct agent_folder *folder)
{
    unsigned char bytes[PIECE_BYTES];
    char text[ENCODED_BYTES];
    if (folder->file < 0 && !open_next(folder)) {
        end_walk(folder);
        return;
    }
    ssize_t got = read(folder->file, bytes, sizeof(bytes));
    if (got < 0) {
        say_failed(folder, AGENT_FETCHED);
        end_walk(folder);
        return;
    }
    if (got > 0 || folder->offset == 0) { // an empty file is a file
        sodium_bin2base64(text, sizeof(text), bytes, (size_t)got, sodium_base64_VARIANT_ORIGINAL);
        const struct agent_message piece = {
            .kind = AGENT_FILE, .path = folder->name, .offset = folder->offset, .data = text};
        folder->port.say(folder->port.context, &piece);
        folder->offset += (uint64_t)got;
    }
    if (got == 0) {
        close(folder->file);
        folder->file = -1;
    }
}

void agent_folder_finish(struct agent_folder *folder)
{
    end_walk(folder);
    if (folder->path[0] != '\0') {
        folder_remove(folder->path);
        folder->path[0] = '\0';
    }
}
