/* Names, opens, lists and removes the folders of checkpoints: always below an open folder, so that
 * a name that changes meanwhile leads nowhere. */
#include "common/checkpoint/step_folders.h"

#include "common/base/new_file.h"
#include "common/base/number.h"
#include "common/checkpoint/manifest.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define STEP_DIGITS 12

static const struct {
    const char *before, *behind;
} affixes[] = {
    [STEP_FOLDER_WHOLE] = {"step-", ""},
    [STEP_FOLDER_OLD] = {"step-", ".old"},
    [STEP_FOLDER_NEW] = {".step-", ".new"},
};

#define KIND_COUNT (sizeof(affixes) / sizeof(affixes[0]))

void step_folder_name(struct step_folder folder, char ret_name[STEP_FOLDER_BYTES])
{
    assert(folder.step <= MANIFEST_STEP_MAX);
    snprintf(ret_name, STEP_FOLDER_BYTES, "%s%0*" PRIu64 "%s", affixes[folder.kind].before,
             STEP_DIGITS, folder.step, affixes[folder.kind].behind);
}

bool step_folder_parse(const char *name, struct step_folder *ret_folder)
{
    for (size_t kind = 0; kind < KIND_COUNT; kind++) {
        size_t before = strlen(affixes[kind].before);
        uint64_t step;
        if (strncmp(name, affixes[kind].before, before) == 0 &&
            strnlen(name + before, STEP_DIGITS) == STEP_DIGITS &&
            number_whole(name + before, STEP_DIGITS, MANIFEST_STEP_MAX, &step) &&
            strcmp(name + before + STEP_DIGITS, affixes[kind].behind) == 0) {
            *ret_folder = (struct step_folder){step, (enum step_folder_kind)kind};
            return true;
        }
    }
    return false;
}

static int compare_newest_first(const void *a, const void *b)
{
    const struct step_folder *left = a, *right = b;
    if (left->step != right->step) {
        return left->step > right->step ? -1 : 1;
    }
    return (int)left->kind - (int)right->kind;
}

// readdir needs a stream, and a descriptor of its own that starts at the first entry.
static DIR *open_stream(int folder)
{
    int fd = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *stream = fd >= 0 ? fdopendir(fd) : NULL;
    if (stream == NULL && fd >= 0) {
        close(fd);
    }
    return stream;
}

/* The next name that is not that of the folder itself or its parent; NULL at the end, or, with
 * errno set, if it cannot be read. */
static const char *next_name(DIR *stream)
{
    for (;;) {
        errno = 0;
        // NOLINTNEXTLINE(concurrency-mt-unsafe): this call's own stream
        const struct dirent *entry = readdir(stream);
        if (entry == NULL) {
            return NULL;
        }
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0) {
            return entry->d_name;
        }
    }
}

enum status step_folders_list(int parent, struct step_folder **ret_folders, size_t *ret_count)
{
    DIR *stream = open_stream(parent);
    struct step_folder *folders = NULL, found;
    size_t count = 0, room = 0;
    if (stream == NULL) {
        return STATUS_IO;
    }
    for (const char *name; (name = next_name(stream)) != NULL;) {
        if (!step_folder_parse(name, &found)) {
            continue;
        }
        if (count == room) {
            room = room > 0 ? room * 2 : 16;
            struct step_folder *more = reallocarray(folders, room, sizeof(*folders));
            if (more == NULL) {
                break;
            }
            folders = more;
        }
        folders[count++] = found;
    }
    int error = errno;
    closedir(stream);
    if (error != 0) {
        free(folders);
        errno = error;
        return STATUS_IO;
    }
    if (count > 0) {
        qsort(folders, count, sizeof(*folders), compare_newest_first);
    }
    *ret_folders = folders;
    *ret_count = count;
    return STATUS_OK;
}

// Closes what is not to be used, and says why.
static int refuse(int fd, int error)
{
    close(fd);
    errno = error;
    return -1;
}

int step_folder_open(int parent, const char *name)
{
    struct stat facts;
    int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) {
        return -1;
    }
    if (fstat(fd, &facts) != 0) {
        return refuse(fd, errno);
    }
    return new_file_is_ours(facts.st_uid) ? fd : refuse(fd, EPERM);
}

int step_file_open(int folder, const char *name, uint64_t *ret_size)
{
    struct stat facts;
    // Opening a pipe would wait for its other end.
    int fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0) {
        return -1;
    }
    if (fstat(fd, &facts) != 0) {
        return refuse(fd, errno);
    }
    if (!S_ISREG(facts.st_mode)) {
        return refuse(fd, S_ISDIR(facts.st_mode) ? EISDIR : EINVAL);
    }
    if (!new_file_is_ours(facts.st_uid)) {
        return refuse(fd, EPERM);
    }
    *ret_size = (uint64_t)facts.st_size;
    return fd;
}

bool step_folder_sync(int folder)
{
    return fsync(folder) == 0 || errno == EINVAL;
}

bool step_folder_sync_name(int folder)
{
    int parent = openat(folder, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool is_synced = parent >= 0 && step_folder_sync(parent);
    int error = errno;
    if (parent >= 0) {
        close(parent);
    }
    errno = error;
    return is_synced;
}

static bool remove_files(int folder)
{
    DIR *stream = open_stream(folder);
    bool is_gone = stream != NULL;
    for (const char *name; is_gone && (name = next_name(stream)) != NULL;) {
        is_gone = unlinkat(folder, name, 0) == 0;
    }
    is_gone = is_gone && errno == 0;
    int error = errno;
    if (stream != NULL) {
        closedir(stream);
    }
    errno = error;
    return is_gone;
}

bool step_folder_remove(int parent, const char *name)
{
    if (unlinkat(parent, name, 0) == 0 || errno == ENOENT) {
        return true;
    }
    if (errno != EISDIR && errno != EPERM) {
        return false;
    }
    int folder = step_folder_open(parent, name);
    if (folder < 0) {
        return false;
    }
    // Without its manifest first, what a crash leaves of it is no checkpoint.
    bool is_gone = unlinkat(folder, MANIFEST_FILE, 0) == 0 || errno == ENOENT;
    is_gone = is_gone && remove_files(folder);
    int error = errno;
    close(folder);
    errno = error;
    return is_gone && unlinkat(parent, name, AT_REMOVEDIR) == 0;
}

void step_folders_remove_all(int parent)
{
    struct step_folder *folders;
    size_t count;
    if (step_folders_list(parent, &folders, &count) != STATUS_OK) {
        return;
    }
    for (size_t i = 0; i < count; i++) {
        char name[STEP_FOLDER_BYTES];
        step_folder_name(folders[i], name);
        (void)step_folder_remove(parent, name);
    }
    free(folders);
}

bool step_folder_was_removed(int parent, const char *path)
{
    struct stat facts;
    int folder = step_folder_open(parent, path);
    if (folder < 0) {
        return errno == ENOENT;
    }
    bool was_removed =
        fstatat(folder, MANIFEST_FILE, &facts, AT_SYMLINK_NOFOLLOW) != 0 && errno == ENOENT;
    close(folder);
    return was_removed;
}

const char *step_folder_advice(int error)
{
    switch (error) {
    case ENOSPC:
    case EDQUOT:
        return "the disk or the quota is full; make room there";
    case EROFS:
        return "the disk is mounted read-only; check it, and mount it for writing";
    case EIO:
        return "the disk itself fails; replace it, or write to another one";
    case EFBIG:
        return "files may not become that large; raise the limit (ulimit -f)";
    case EACCES:
    case EPERM:
        return "it belongs to another user, or its mode forbids it; give it to yourself";
    case ELOOP:
    case ENOTDIR:
    case EISDIR:
    case EINVAL: // a pipe or a device: see step_file_open
        return "something else is in its place, such as a link, which is not followed; remove it";
    case ENOENT:
        return "it is not there; was it moved or removed?";
    default:
        return "check the disk and the folder";
    }
}
