/* Looks at checkpoints from the newest on, until one is whole. */
#include "common/checkpoint/checkpoint_reader.h"

#include "common/base/new_file.h"
#include "common/checkpoint/checksum.h"
#include "common/checkpoint/manifest.h"
#include "common/checkpoint/step_folders.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define REASON_BYTES 512
#define AGAIN_MAX    9 // looks at a folder in which something goes meanwhile

struct checkpoint_reader {
    char *path; // owns
    int folder;
    struct manifest manifest;
};

/* Text that grows in the caller's memory, and is cut off at its end. */
struct text {
    char *bytes;
    size_t size, at;
};

__attribute__((format(printf, 2, 3))) static void add(struct text *text, const char *format, ...)
{
    va_list args;
    if (text->at >= text->size) {
        return;
    }
    va_start(args, format);
    char *end = text->bytes + text->at;
    int wrote =
        vsnprintf(end, text->size - text->at, format, args); // NOLINT(clang-analyzer-valist.*)
    va_end(args);
    text->at += wrote > 0 ? (size_t)wrote : 0;
}

void checkpoint_reader_close(struct checkpoint_reader *reader)
{
    if (reader == NULL) {
        return;
    }
    if (reader->folder >= 0) {
        close(reader->folder);
    }
    manifest_finish(&reader->manifest);
    free(reader->path);
    free(reader);
}

static enum status read_all(int fd, char *bytes, uint64_t size, uint64_t offset)
{
    for (uint64_t at = 0; at < size;) {
        ssize_t got = pread(fd, bytes + at, size - at, (off_t)(offset + at));
        if (got == 0 || (got < 0 && errno != EINTR)) {
            errno = got == 0 ? EIO : errno;
            return STATUS_IO;
        }
        at += got > 0 ? (uint64_t)got : 0;
    }
    return STATUS_OK;
}

static enum status explain(const char *file, char ret_reason[REASON_BYTES])
{
    int error = errno;
    snprintf(ret_reason, REASON_BYTES, "%s cannot be read: %s: %s", file, strerrordesc_np(error),
             error == ENOENT ? "it is not there, so the checkpoint was never finished, or was cut "
                               "down later"
                             : step_folder_advice(error));
    return error == EPERM || error == EACCES || error == ELOOP ? STATUS_DENIED : STATUS_IO;
}

static enum status decode(const char *text, uint64_t size, struct manifest *ret_manifest,
                          char ret_reason[REASON_BYTES])
{
    char error[REASON_BYTES - 64];
    enum status status = manifest_decode(text, size, ret_manifest, error, sizeof(error));
    if (status != STATUS_OK) {
        snprintf(ret_reason, REASON_BYTES, MANIFEST_FILE " %s", error);
    }
    return status;
}

static enum status read_manifest(int folder, struct manifest *ret_manifest,
                                 char ret_reason[REASON_BYTES])
{
    uint64_t size;
    int fd = step_file_open(folder, MANIFEST_FILE, &size);
    if (fd < 0) {
        return explain(MANIFEST_FILE, ret_reason);
    }
    enum status status = STATUS_MALFORMED;
    char *text = NULL;
    if (size == 0 || size > MANIFEST_BYTES_MAX) {
        snprintf(ret_reason, REASON_BYTES,
                 MANIFEST_FILE " has %" PRIu64 " bytes, and a manifest has 1 to %zu", size,
                 MANIFEST_BYTES_MAX);
    } else if ((text = malloc(size)) == NULL) {
        snprintf(ret_reason, REASON_BYTES, "no memory for " MANIFEST_FILE);
        status = STATUS_NO_MEMORY;
    } else if (read_all(fd, text, size, 0) != STATUS_OK) {
        status = explain(MANIFEST_FILE, ret_reason);
    } else {
        status = decode(text, size, ret_manifest, ret_reason);
    }
    free(text);
    close(fd);
    return status;
}

static enum status check_file(int folder, const struct manifest_vector *vector,
                              _Atomic uint64_t *read_bytes, char ret_reason[REASON_BYTES])
{
    char file[MANIFEST_NAME_BYTES], checksum[CHECKSUM_TEXT_BYTES];
    uint64_t size;
    manifest_file_name(vector->name, file);
    int fd = step_file_open(folder, file, &size);
    if (fd < 0) {
        return explain(file, ret_reason);
    }
    enum status status = STATUS_MALFORMED;
    if (size != vector->size) {
        snprintf(ret_reason, REASON_BYTES,
                 "%s has %" PRIu64 " bytes instead of %" PRIu64 ": it was cut short or changed",
                 file, size, vector->size);
    } else if (checksum_file(fd, size, read_bytes, checksum) != STATUS_OK) {
        status = explain(file, ret_reason);
    } else if (strcmp(checksum, vector->checksum) != 0) {
        snprintf(ret_reason, REASON_BYTES, "%s is damaged: its checksum differs", file);
    } else {
        status = STATUS_OK;
    }
    close(fd);
    return status;
}

/* Whether an open folder has a whole checkpoint. */
static enum status check_folder(int folder, _Atomic uint64_t *read_bytes,
                                struct manifest *ret_manifest, char ret_reason[REASON_BYTES])
{
    struct manifest manifest = {0};
    enum status status = read_manifest(folder, &manifest, ret_reason);
    for (uint32_t i = 0; i < manifest.vector_count && status == STATUS_OK; i++) {
        status = check_file(folder, &manifest.vectors[i], read_bytes, ret_reason);
    }
    if (status != STATUS_OK) {
        manifest_finish(&manifest);
        return status;
    }
    *ret_manifest = manifest;
    return STATUS_OK;
}

/* Takes the open folder (closes it on failure, too). */
static enum status open_checkpoint(int folder, const char *path, _Atomic uint64_t *read_bytes,
                                   struct checkpoint_reader **ret_reader,
                                   char ret_reason[REASON_BYTES])
{
    struct checkpoint_reader *reader = calloc(1, sizeof(*reader));
    char *copy = strdup(path);
    enum status status = STATUS_NO_MEMORY;
    if (reader == NULL || copy == NULL) {
        snprintf(ret_reason, REASON_BYTES, "no memory for it");
        close(folder);
        free(reader);
        free(copy);
        return status;
    }
    reader->path = copy;
    reader->folder = folder;
    status = check_folder(folder, read_bytes, &reader->manifest, ret_reason);
    if (status != STATUS_OK) {
        checkpoint_reader_close(reader);
        return status;
    }
    *ret_reader = reader;
    return STATUS_OK;
}

/* One of the checkpoints in a folder. */
static enum status open_step(int parent, const char *parent_path, struct step_folder candidate,
                             _Atomic uint64_t *read_bytes, struct checkpoint_reader **ret_reader,
                             char ret_reason[REASON_BYTES])
{
    char name[STEP_FOLDER_BYTES], *path;
    step_folder_name(candidate, name);
    int folder = step_folder_open(parent, name);
    if (folder < 0) {
        int error = errno;
        snprintf(ret_reason, REASON_BYTES, "%s: %s", strerrordesc_np(error),
                 step_folder_advice(error));
        return error == EPERM || error == ELOOP || error == ENOTDIR ? STATUS_DENIED : STATUS_IO;
    }
    if (asprintf(&path, "%s/%s", parent_path, name) < 0) {
        close(folder);
        snprintf(ret_reason, REASON_BYTES, "no memory for it");
        return STATUS_NO_MEMORY;
    }
    enum status status = open_checkpoint(folder, path, read_bytes, ret_reader, ret_reason);
    free(path);
    if (status == STATUS_OK && (*ret_reader)->manifest.step != candidate.step) {
        snprintf(ret_reason, REASON_BYTES,
                 MANIFEST_FILE " is that of step %" PRIu64 ": files of two checkpoints were mixed",
                 (*ret_reader)->manifest.step);
        checkpoint_reader_close(*ret_reader);
        *ret_reader = NULL;
        return STATUS_MALFORMED;
    }
    return status;
}

/* What a look at the checkpoints says. */
struct look {
    struct text *error, *notes; // borrowed
    bool has_changed;           // something went meanwhile
};

/* One look at what is there now. */
static enum status try_newest(int parent, const char *path, const struct checkpoint_place *place,
                              struct checkpoint_reader **ret_reader, struct look *look)
{
    struct step_folder *folders;
    struct text *error = look->error, *notes = look->notes;
    size_t count;
    enum status status = step_folders_list(parent, &folders, &count);
    look->has_changed = false;
    if (status != STATUS_OK) {
        add(error, "cannot list %s: %s", path, strerrordesc_np(errno));
        return status;
    }
    status = STATUS_END_OF_DATA;
    for (size_t i = 0; i < count && status != STATUS_OK; i++) {
        char name[STEP_FOLDER_BYTES], reason[REASON_BYTES];
        step_folder_name(folders[i], name);
        if (folders[i].kind == STEP_FOLDER_NEW || folders[i].step >= place->before) {
            continue;
        }
        status = open_step(parent, path, folders[i], place->read_bytes, ret_reader, reason);
        if (status != STATUS_OK) {
            look->has_changed = look->has_changed || step_folder_was_removed(parent, name);
            add(notes, "%s%s/%s is passed over: %s", notes->at > 0 ? "\n" : "", path, name, reason);
            if (error->at == 0) {
                add(error, "%s/%s: %s", path, name, reason);
            }
        }
    }
    free(folders);
    return status;
}

/* A job that goes on removes its older checkpoints, maybe all that were listed: then there are
 * newer ones. */
static enum status open_newest(int parent, const char *path, const struct checkpoint_place *place,
                               struct checkpoint_reader **ret_reader, struct text *error,
                               struct text *notes)
{
    struct look look = {.error = error, .notes = notes};
    size_t error_at = error->at, notes_at = notes->at;
    enum status status = try_newest(parent, path, place, ret_reader, &look);
    for (uint32_t i = 0; i < AGAIN_MAX && status != STATUS_OK && look.has_changed; i++) {
        error->at = error_at;
        notes->at = notes_at;
        add(notes, "%s", "");
        status = try_newest(parent, path, place, ret_reader, &look);
    }
    if (status == STATUS_END_OF_DATA) {
        error->at = 0;
        add(error,
            "there is no checkpoint in %s: expected folders step-NUMBER, as a job with "
            "--checkpoint-every writes them below its run folder",
            path);
    } else if (status != STATUS_OK) {
        add(error, "; no checkpoint in %s is whole", path);
    }
    return status;
}

/* The folder that the user named; links on the way to it are the user's own. */
static enum status open_named(const char *path, int *ret_folder, struct text *error)
{
    char reason[REASON_BYTES];
    int folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0) {
        add(error,
            "cannot open the checkpoint %s: %s: give a run folder, its folder `checkpoint`, "
            "or one checkpoint in it",
            path, strerrordesc_np(errno));
        return errno == ENOTDIR ? STATUS_INVALID : STATUS_IO;
    }
    enum status status = new_file_check_folder(path, reason, sizeof(reason));
    if (status != STATUS_OK) {
        add(error, "the checkpoints in %s cannot be trusted: %s", path, reason);
        close(folder);
        return status;
    }
    *ret_folder = folder;
    return STATUS_OK;
}

static bool has_entry(int folder, const char *name)
{
    struct stat facts;
    return fstatat(folder, name, &facts, AT_SYMLINK_NOFOLLOW) == 0;
}

static bool is_step_path(const char *path)
{
    struct step_folder folder;
    char *name = strdup(path);
    if (name == NULL) {
        return false;
    }
    for (size_t size = strlen(name); size > 1 && name[size - 1] == '/'; size--) {
        name[size - 1] = '\0';
    }
    const char *slash = strrchr(name, '/');
    bool is_step = step_folder_parse(slash != NULL ? slash + 1 : name, &folder);
    free(name);
    return is_step;
}

static enum status open_single(int folder, const struct checkpoint_place *place,
                               struct checkpoint_reader **ret_reader, struct text *error)
{
    const char *path = place->folder;
    char reason[REASON_BYTES];
    int own = fcntl(folder, F_DUPFD_CLOEXEC, 0);
    if (own < 0) {
        add(error, "cannot open %s: %s", path, strerrordesc_np(errno));
        return STATUS_IO;
    }
    enum status status = open_checkpoint(own, path, place->read_bytes, ret_reader, reason);
    if (status != STATUS_OK) {
        add(error, "%s: %s; give its parent folder to use the newest whole one there", path,
            reason);
    }
    return status;
}

/* The folder of checkpoints of a run. */
static enum status open_run(int run, const struct checkpoint_place *place,
                            struct checkpoint_reader **ret_reader, struct text *error,
                            struct text *notes)
{
    const char *path = place->folder;
    char *below;
    int folder = step_folder_open(run, STEP_FOLDERS_OF_RUN);
    if (folder < 0) {
        add(error, "cannot open %s/" STEP_FOLDERS_OF_RUN ": %s: %s", path, strerrordesc_np(errno),
            step_folder_advice(errno));
        return STATUS_DENIED;
    }
    if (asprintf(&below, "%s/" STEP_FOLDERS_OF_RUN, path) < 0) {
        close(folder);
        return STATUS_NO_MEMORY;
    }
    enum status status = open_newest(folder, below, place, ret_reader, error, notes);
    free(below);
    close(folder);
    return status;
}

enum status checkpoint_open_before(const struct checkpoint_place *place,
                                   struct checkpoint_reader **ret_reader, char *ret_error,
                                   size_t error_size, char *ret_notes, size_t notes_size)
{
    const char *folder = place->folder;
    struct text error = {ret_error, error_size, 0}, notes = {ret_notes, notes_size, 0};
    struct checkpoint_reader *reader = NULL;
    int fd;
    add(&error, "%s", "");
    add(&notes, "%s", "");
    enum status status = open_named(folder, &fd, &error);
    if (status != STATUS_OK) {
        return status;
    }
    if (has_entry(fd, MANIFEST_FILE) || is_step_path(folder)) {
        status = open_single(fd, place, &reader, &error);
    } else if (has_entry(fd, STEP_FOLDERS_OF_RUN)) {
        status = open_run(fd, place, &reader, &error, &notes);
    } else {
        status = open_newest(fd, folder, place, &reader, &error, &notes);
    }
    close(fd);
    if (status == STATUS_OK) {
        *ret_reader = reader;
    }
    return status;
}

enum status checkpoint_open(const char *folder, struct checkpoint_reader **ret_reader,
                            char *ret_error, size_t error_size, char *ret_notes, size_t notes_size)
{
    const struct checkpoint_place place = {.folder = folder, .before = UINT64_MAX};
    return checkpoint_open_before(&place, ret_reader, ret_error, error_size, ret_notes, notes_size);
}

uint64_t checkpoint_step(const struct checkpoint_reader *reader)
{
    return reader->manifest.step;
}

const char *checkpoint_path(const struct checkpoint_reader *reader)
{
    return reader->path;
}

const json_t *checkpoint_job_part(const struct checkpoint_reader *reader)
{
    return reader->manifest.job;
}

bool checkpoint_has(const struct checkpoint_reader *reader, const char *vector, uint64_t *ret_size)
{
    const struct manifest_vector *found = manifest_find(&reader->manifest, vector);
    if (found != NULL) {
        *ret_size = found->size;
    }
    return found != NULL;
}

enum status checkpoint_read(struct checkpoint_reader *reader, const char *vector, uint64_t offset,
                            void *ret_bytes, uint64_t size)
{
    char file[MANIFEST_NAME_BYTES];
    const struct manifest_vector *found = manifest_find(&reader->manifest, vector);
    uint64_t file_size;
    if (found == NULL || offset > found->size || size > found->size - offset) {
        return STATUS_INVALID;
    }
    if (size == 0) {
        return STATUS_OK;
    }
    manifest_file_name(vector, file);
    int fd = step_file_open(reader->folder, file, &file_size);
    if (fd < 0) {
        return STATUS_IO;
    }
    enum status status = read_all(fd, ret_bytes, size, offset);
    int error = errno;
    close(fd);
    errno = error;
    return status;
}
