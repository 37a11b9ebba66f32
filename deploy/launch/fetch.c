/* Writes the files that an agent sends, piece by piece. */
#include "deploy/launch/fetch.h"

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/new_file.h"

#include <sodium.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PATH_BYTES  4096
#define DEPTH_MAX   4
#define QUIET_MS    10000 // without a piece
#define PIECE_BYTES (192 * 1024)

struct fetch {
    size_t host;
    const char *folder; // on this host; NULL: only a folder on the other host is asked for
    char *path;         // of the folder there
    size_t path_size;
    uint64_t heard_ms;
    bool is_over;
    enum status status;
};

bool fetch_path_is_fine(const char *path)
{
    unsigned depth = 0;
    for (const char *at = path;; at++) {
        size_t size = strcspn(at, "/");
        if (size == 0 || at[0] == '.' || ++depth > DEPTH_MAX || size > 255) {
            return false;
        }
        for (size_t i = 0; i < size; i++) {
            if ((unsigned char)at[i] < 0x20 || at[i] == 0x7F) {
                return false;
            }
        }
        at += size;
        if (*at == '\0') {
            return strlen(path) < PATH_BYTES / 2;
        }
    }
}

static void fail(struct fetch *fetch, enum status status)
{
    fetch->is_over = true;
    fetch->status = status;
}

/* Makes the folders above a file. */
static void make_parents(char *path, size_t from)
{
    for (char *slash = strchr(path + from, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(path, 0777); // an error will show when the file is opened
        *slash = '/';
    }
}

/* Writes behind the first `offset` bytes of a file that is as long. Sets errno if it fails. */
static enum status write_behind(int fd, uint64_t offset, const char *bytes, size_t size)
{
    struct stat facts;
    if (fstat(fd, &facts) != 0 || (uint64_t)facts.st_size != offset) {
        errno = ESPIPE;
        return STATUS_MALFORMED;
    }
    for (size_t done = 0; done < size;) {
        ssize_t wrote = pwrite(fd, bytes + done, size - done, (off_t)(offset + done));
        if (wrote <= 0 && errno != EINTR) {
            return STATUS_IO;
        }
        done += wrote > 0 ? (size_t)wrote : 0;
    }
    return STATUS_OK;
}

static enum status append(const char *path, uint64_t offset, const void *bytes, size_t size)
{
    int fd = offset == 0 ? new_file_open(path, true)
                         : open(path, O_WRONLY | O_APPEND | O_CLOEXEC | O_NOFOLLOW);
    enum status status = fd >= 0 ? write_behind(fd, offset, bytes, size) : STATUS_IO;
    if (status != STATUS_OK) {
        log_error("cannot write %s: %m", path);
    }
    if (fd >= 0) {
        close(fd);
    }
    return status;
}

static void take_piece(struct fetch *fetch, const struct agent_message *piece)
{
    unsigned char bytes[PIECE_BYTES];
    char path[PATH_BYTES];
    size_t size = 0;
    if (!fetch_path_is_fine(piece->path) ||
        sodium_base642bin(bytes, sizeof(bytes), piece->data, strlen(piece->data), NULL, &size, NULL,
                          sodium_base64_VARIANT_ORIGINAL) != 0) {
        log_error("the coordinator's host sends a file with an impossible path: '%.100s'",
                  piece->path);
        fail(fetch, STATUS_MALFORMED);
        return;
    }
    snprintf(path, sizeof(path), "%.2000s/%.2000s", fetch->folder, piece->path);
    make_parents(path, strlen(fetch->folder) + 1);
    enum status status = append(path, piece->offset, bytes, size);
    if (status != STATUS_OK) {
        fail(fetch, status);
    }
}

static void take(void *context, size_t host, const struct agent_message *message)
{
    struct fetch *fetch = context;
    if (host != fetch->host || fetch->is_over) {
        return;
    }
    fetch->heard_ms = clock_now_ms();
    if (message->kind == AGENT_FILE && fetch->folder != NULL) {
        take_piece(fetch, message);
    } else if (message->kind == AGENT_FETCHED || message->kind == AGENT_MADE) {
        fetch->is_over = true;
        fetch->status = message->text[0] == '\0' ? STATUS_OK : STATUS_IO;
        if (fetch->status != STATUS_OK) {
            log_error("the run folder on the coordinator's host: %s", message->text);
        } else if (message->kind == AGENT_MADE && fetch->path != NULL) {
            snprintf(fetch->path, fetch->path_size, "%s", message->path);
        }
    }
}

static enum status ask(struct crew *crew, struct fetch *fetch, enum agent_kind kind)
{
    const struct agent_message message = {.kind = kind};
    fetch->heard_ms = clock_now_ms();
    crew_listen(crew, take, fetch);
    crew_say(crew, fetch->host, &message);
    while (!fetch->is_over) {
        uint64_t deadline_ms = fetch->heard_ms + QUIET_MS;
        bool is_refused = crew->interrupts > 1; // the user asked twice to end
        if (crew->links[fetch->host].state == HOST_LINK_LOST || is_refused ||
            clock_now_ms() >= deadline_ms) {
            log_error("the run folder did not arrive from %s", crew->links[fetch->host].name);
            fail(fetch, STATUS_UNREACHABLE);
            break;
        }
        crew_step(crew, deadline_ms);
    }
    crew_listen(crew, NULL, NULL);
    return fetch->status;
}

enum status fetch_make_folder(struct crew *crew, size_t host, char *ret_path, size_t path_size)
{
    struct fetch fetch = {.host = host, .path = ret_path, .path_size = path_size};
    return ask(crew, &fetch, AGENT_FOLDER);
}

enum status fetch_folder(struct crew *crew, size_t host, const char *folder)
{
    struct fetch fetch = {.host = host, .folder = folder};
    return ask(crew, &fetch, AGENT_FETCH);
}
