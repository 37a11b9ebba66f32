/* The order in which a checkpoint comes into being: its files, their bytes on the disk, its
 * manifest, the folder's own entries on the disk, its name, and the parent's entries on the disk.
 */
#include "common/checkpoint/checkpoint_writer.h"

#include "common/base/log.h"
#include "common/checkpoint/checkpoint_folder.h"
#include "common/checkpoint/checksum.h"
#include "common/checkpoint/manifest.h"
#include "common/checkpoint/pieces.h"
#include "common/checkpoint/step_folders.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define ERROR_BYTES 1024
#define VECTOR_MAX  ((uint64_t)INT64_MAX)

struct written {
    char name[MANIFEST_NAME_BYTES];
    struct pieces pieces;
};

struct checkpoint_writer {
    char *path; // owns; of the folder, for errors
    int folder;
    ino_t inode; // of the folder
    uint32_t keep;
    int step_folder; // -1: nothing is begun
    uint64_t step;
    struct written *vectors; // owns; of the checkpoint that is begun
    uint32_t vector_count, vector_room;
    uint64_t good; // step of the last whole one; 0: none, or it was removed
    bool is_moved; // the folder, and it was not made again
    bool has_news; // of that, or of the last whole one, which nobody has taken
    char error[ERROR_BYTES];
};

static void name_of(const struct checkpoint_writer *writer, enum step_folder_kind kind,
                    char ret_name[STEP_FOLDER_BYTES])
{
    step_folder_name((struct step_folder){writer->step, kind}, ret_name);
}

void checkpoint_abandon(struct checkpoint_writer *writer)
{
    char name[STEP_FOLDER_BYTES];
    for (uint32_t i = 0; i < writer->vector_count; i++) {
        pieces_finish(&writer->vectors[i].pieces);
    }
    writer->vector_count = 0;
    if (writer->step_folder >= 0) {
        close(writer->step_folder);
        writer->step_folder = -1;
        name_of(writer, STEP_FOLDER_NEW, name);
        (void)step_folder_remove(writer->folder, name); // if not, the next writer does
    }
}

static void note_inode(struct checkpoint_writer *writer)
{
    struct stat facts;
    if (fstat(writer->folder, &facts) == 0) {
        writer->inode = facts.st_ino;
    }
}

/* Looks for the folder. False: it is not in its place. */
static bool look(struct checkpoint_writer *writer)
{
    bool is_in_place = checkpoint_folder_is_in_place(writer->path, writer->folder);
    writer->has_news = writer->has_news || (!is_in_place && !writer->is_moved);
    writer->is_moved = !is_in_place;
    return is_in_place;
}

/* Looks for the last whole one: whoever names it has to know that somebody has removed it. */
static void look_for_good(struct checkpoint_writer *writer)
{
    char name[STEP_FOLDER_BYTES], old[STEP_FOLDER_BYTES];
    step_folder_name((struct step_folder){writer->good, STEP_FOLDER_WHOLE}, name);
    step_folder_name((struct step_folder){writer->good, STEP_FOLDER_OLD}, old);
    if (writer->good > 0 && step_folder_was_removed(writer->folder, name) &&
        step_folder_was_removed(writer->folder, old)) {
        writer->good = 0;
        writer->has_news = true;
    }
}

/* The disk has failed: says so, and abandons the checkpoint. `file` may be "". */
static enum status fail(struct checkpoint_writer *writer, const char *what, const char *file)
{
    int error = errno;
    char name[STEP_FOLDER_BYTES];
    name_of(writer, STEP_FOLDER_NEW, name);
    snprintf(writer->error, sizeof(writer->error),
             "cannot %s the checkpoint of step %" PRIu64 " (%s/%s%s%s): %s: %s", what, writer->step,
             writer->path, name, file[0] != '\0' ? "/" : "", file, strerrordesc_np(error),
             step_folder_advice(error));
    checkpoint_abandon(writer);
    if (look(writer)) {
        look_for_good(writer);
    }
    errno = error;
    return STATUS_IO;
}

/* What was given cannot be taken; the checkpoint stays as it is. */
__attribute__((format(printf, 3, 4))) static enum status
refuse(struct checkpoint_writer *writer, enum status status, const char *format, ...)
{
    va_list args;
    int size = snprintf(writer->error, sizeof(writer->error),
                        "the checkpoint of step %" PRIu64 ": ", writer->step);
    va_start(args, format);
    size_t room = sizeof(writer->error) - (size_t)size;
    vsnprintf(writer->error + size, room, format, args); // NOLINT(clang-analyzer-valist.*)
    va_end(args);
    return status;
}

bool checkpoint_writer_take_news(struct checkpoint_writer *writer)
{
    bool has_news = writer->has_news;
    writer->has_news = false;
    return has_news;
}

enum status checkpoint_writer_open(const char *folder, uint32_t keep,
                                   struct checkpoint_writer **ret_writer)
{
    assert(keep > 0);
    struct checkpoint_writer *writer = calloc(1, sizeof(*writer));
    char *path = strdup(folder);
    if (writer == NULL || path == NULL) {
        free(writer);
        free(path);
        log_error("no memory for checkpoints");
        return STATUS_NO_MEMORY;
    }
    *writer =
        (struct checkpoint_writer){.path = path, .folder = -1, .keep = keep, .step_folder = -1};
    enum status status =
        checkpoint_folder_open(path, &writer->folder, writer->error, sizeof(writer->error));
    if (status != STATUS_OK) {
        log_error("%s", writer->error);
        checkpoint_writer_close(writer);
        return status;
    }
    note_inode(writer);
    *ret_writer = writer;
    return STATUS_OK;
}

void checkpoint_writer_close(struct checkpoint_writer *writer)
{
    if (writer == NULL) {
        return;
    }
    checkpoint_abandon(writer);
    if (writer->folder >= 0) {
        close(writer->folder);
    }
    free(writer->vectors);
    free(writer->path);
    free(writer);
}

const char *checkpoint_writer_error(const struct checkpoint_writer *writer)
{
    return writer->error;
}

enum status checkpoint_begin(struct checkpoint_writer *writer, uint64_t step)
{
    char name[STEP_FOLDER_BYTES];
    assert(step <= MANIFEST_STEP_MAX);
    checkpoint_abandon(writer);
    writer->step = step;
    if (!look(writer)) {
        if (checkpoint_folder_make_again(writer->path, writer->inode, &writer->folder,
                                         writer->error, sizeof(writer->error)) != STATUS_OK) {
            return STATUS_IO;
        }
        note_inode(writer);
        writer->is_moved = false;
        writer->has_news = true;
    }
    name_of(writer, STEP_FOLDER_NEW, name);
    if (!step_folder_remove(writer->folder, name) || mkdirat(writer->folder, name, 0777) != 0) {
        return fail(writer, "begin", "");
    }
    writer->step_folder = step_folder_open(writer->folder, name);
    return writer->step_folder >= 0 ? STATUS_OK : fail(writer, "begin", "");
}

static struct written *find(const struct checkpoint_writer *writer, const char *vector)
{
    for (uint32_t i = 0; i < writer->vector_count; i++) {
        if (strcmp(writer->vectors[i].name, vector) == 0) {
            return &writer->vectors[i];
        }
    }
    return NULL;
}

/* A vector that is new, and its empty file. */
static enum status add_vector(struct checkpoint_writer *writer, const char *vector,
                              struct written **ret_vector)
{
    char file[MANIFEST_NAME_BYTES];
    if (!manifest_is_name(vector) || writer->vector_count == MANIFEST_VECTORS_MAX) {
        return refuse(writer, STATUS_MALFORMED,
                      "it cannot have a vector called %.80s, or not so "
                      "many of them",
                      vector);
    }
    if (writer->vector_count == writer->vector_room) {
        uint32_t room = writer->vector_room > 0 ? writer->vector_room * 2 : 16;
        struct written *vectors = reallocarray(writer->vectors, room, sizeof(*vectors));
        if (vectors == NULL) {
            return refuse(writer, STATUS_NO_MEMORY, "no memory for a list of its vectors");
        }
        writer->vectors = vectors;
        writer->vector_room = room;
    }
    manifest_file_name(vector, file);
    int fd = openat(writer->step_folder, file, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0) {
        return fail(writer, "write", file);
    }
    close(fd);
    struct written *added = &writer->vectors[writer->vector_count++];
    *added = (struct written){0};
    snprintf(added->name, sizeof(added->name), "%s", vector);
    *ret_vector = added;
    return STATUS_OK;
}

static bool write_all(int fd, const void *bytes, uint64_t size, uint64_t offset)
{
    for (uint64_t at = 0; at < size;) {
        ssize_t wrote = pwrite(fd, (const char *)bytes + at, size - at, (off_t)(offset + at));
        if (wrote <= 0 && errno != EINTR) {
            return false;
        }
        at += wrote > 0 ? (uint64_t)wrote : 0;
    }
    return true;
}

/* Opens a file that is there already; a file closed in between keeps descriptors few. */
static int open_again(const struct checkpoint_writer *writer, const char *file, int flags)
{
    return openat(writer->step_folder, file, flags | O_NOFOLLOW | O_CLOEXEC);
}

static enum status write_piece(struct checkpoint_writer *writer, const char *file, uint64_t offset,
                               const void *bytes, uint64_t size)
{
    int fd = open_again(writer, file, O_WRONLY);
    bool is_written = fd >= 0 && write_all(fd, bytes, size, offset);
    int error = errno;
    // Some file systems say only here that there was no room.
    if (fd >= 0 && close(fd) != 0 && is_written) {
        is_written = false;
        error = errno;
    }
    errno = error;
    return is_written ? STATUS_OK : fail(writer, "write", file);
}

enum status checkpoint_write(struct checkpoint_writer *writer, const char *vector, uint64_t offset,
                             const void *bytes, uint64_t size)
{
    char file[MANIFEST_NAME_BYTES];
    if (writer->step_folder < 0) {
        return STATUS_IO; // what failed before has been said
    }
    struct written *written = find(writer, vector);
    if (written == NULL) {
        enum status status = add_vector(writer, vector, &written);
        if (status != STATUS_OK) {
            return status;
        }
    }
    if (size > VECTOR_MAX || offset > VECTOR_MAX - size) {
        return refuse(writer, STATUS_MALFORMED, "a piece of %s ends behind what a file can have",
                      vector);
    }
    if (size == 0) {
        return STATUS_OK;
    }
    enum status status = pieces_add(&written->pieces, offset, offset + size);
    if (status != STATUS_OK) {
        return refuse(writer, status, "bytes %" PRIu64 " .. %" PRIu64 " of %s cannot be added: %s",
                      offset, offset + size - 1, vector,
                      status == STATUS_MALFORMED ? "some are there, or there are too many gaps"
                                                 : status_text(status));
    }
    manifest_file_name(vector, file);
    return write_piece(writer, file, offset, bytes, size);
}

static enum status check_vector(struct checkpoint_writer *writer,
                                const struct checkpoint_vector *vector)
{
    struct written *written = find(writer, vector->name);
    if (written == NULL) {
        if (vector->size == 0) {
            return add_vector(writer, vector->name, &written);
        }
        return refuse(writer, STATUS_MALFORMED,
                      "nothing was written of %s, which has %" PRIu64 " bytes", vector->name,
                      vector->size);
    }
    uint64_t gap = pieces_first_gap(&written->pieces), end = pieces_end(&written->pieces);
    if (gap != end || end != vector->size) {
        return refuse(writer, STATUS_MALFORMED,
                      "%s has %" PRIu64 " bytes, and what was written ends at %" PRIu64
                      ", with a gap at %" PRIu64,
                      vector->name, vector->size, end, gap);
    }
    return STATUS_OK;
}

static enum status check_vectors(struct checkpoint_writer *writer,
                                 const struct checkpoint_vector *vectors, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        enum status status = check_vector(writer, &vectors[i]);
        if (status != STATUS_OK) {
            return status;
        }
    }
    // All that are expected are there, so another number means that there are others.
    if (writer->vector_count != count) {
        return refuse(writer, STATUS_MALFORMED,
                      "%" PRIu32 " vectors were written, and not %" PRIu32, writer->vector_count,
                      count);
    }
    return STATUS_OK;
}

/* Brings a file's bytes to the disk; its checksum. */
static enum status settle(struct checkpoint_writer *writer, const struct written *written,
                          struct manifest_vector *ret_vector)
{
    char file[MANIFEST_NAME_BYTES];
    uint64_t size = pieces_end(&written->pieces);
    manifest_file_name(written->name, file);
    int fd = open_again(writer, file, O_RDONLY);
    bool is_good = fd >= 0 && fsync(fd) == 0 &&
                   checksum_file(fd, size, NULL, ret_vector->checksum) == STATUS_OK;
    int error = errno;
    if (fd >= 0) {
        close(fd);
    }
    errno = error;
    if (!is_good) {
        return fail(writer, "write", file);
    }
    snprintf(ret_vector->name, sizeof(ret_vector->name), "%s", written->name);
    ret_vector->size = size;
    return STATUS_OK;
}

static bool write_manifest(const struct checkpoint_writer *writer, const char *text, size_t size)
{
    int fd =
        openat(writer->step_folder, MANIFEST_FILE, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    bool is_written = fd >= 0 && write_all(fd, text, size, 0) && fsync(fd) == 0;
    int error = errno;
    if (fd >= 0) {
        close(fd);
    }
    errno = error;
    return is_written;
}

static enum status make_whole(struct checkpoint_writer *writer, struct manifest *manifest)
{
    char *text;
    size_t size;
    for (uint32_t i = 0; i < writer->vector_count; i++) {
        enum status status = settle(writer, &writer->vectors[i], &manifest->vectors[i]);
        if (status != STATUS_OK) {
            return status;
        }
    }
    enum status status = manifest_encode(manifest, &text, &size);
    if (status != STATUS_OK) {
        status = refuse(writer, status, "its manifest cannot be made: %s", status_text(status));
        checkpoint_abandon(writer);
        return status;
    }
    bool is_written = write_manifest(writer, text, size) && step_folder_sync(writer->step_folder);
    int error = errno;
    free(text);
    errno = error;
    return is_written ? STATUS_OK : fail(writer, "write", MANIFEST_FILE);
}

static bool move(const struct checkpoint_writer *writer, const char *from, const char *to)
{
    return renameat(writer->folder, from, writer->folder, to) == 0;
}

/* Gives the checkpoint its name. One of the same step, from before the job went back, steps aside
 * under a name that readers know, too. */
static enum status publish(struct checkpoint_writer *writer)
{
    char name[STEP_FOLDER_BYTES], old[STEP_FOLDER_BYTES], new[STEP_FOLDER_BYTES];
    struct stat facts;
    name_of(writer, STEP_FOLDER_WHOLE, name);
    name_of(writer, STEP_FOLDER_OLD, old);
    name_of(writer, STEP_FOLDER_NEW, new);
    if (fstatat(writer->folder, name, &facts, AT_SYMLINK_NOFOLLOW) == 0) {
        if (!step_folder_remove(writer->folder, old) || !move(writer, name, old)) {
            return fail(writer, "replace", "");
        }
    }
    if (!move(writer, new, name)) {
        return fail(writer, "publish", "");
    }
    close(writer->step_folder);
    writer->step_folder = -1;
    checkpoint_abandon(writer); // forgets the vectors
    writer->good = writer->step;
    if (!step_folder_sync(writer->folder)) {
        return fail(writer, "publish", "");
    }
    return STATUS_OK;
}

/* What cannot be removed stays, which harms nobody but the disk. */
static void remove_others(const struct checkpoint_writer *writer)
{
    struct step_folder *folders;
    size_t count;
    uint32_t kept = 0;
    if (step_folders_list(writer->folder, &folders, &count) != STATUS_OK) {
        return;
    }
    for (size_t i = 0; i < count; i++) {
        char name[STEP_FOLDER_BYTES];
        bool is_kept = folders[i].kind == STEP_FOLDER_WHOLE && folders[i].step <= writer->step &&
                       kept < writer->keep;
        kept += is_kept ? 1 : 0;
        step_folder_name(folders[i], name);
        if (!is_kept) {
            (void)step_folder_remove(writer->folder, name);
        }
    }
    free(folders);
}

enum status checkpoint_commit(struct checkpoint_writer *writer,
                              const struct checkpoint_vector *vectors, uint32_t count,
                              const json_t *job_part)
{
    assert(json_is_object(job_part) && count > 0);
    if (writer->step_folder < 0) {
        return STATUS_IO;
    }
    enum status status = check_vectors(writer, vectors, count);
    if (status != STATUS_OK) {
        return status;
    }
    struct manifest manifest = {.step = writer->step,
                                .vectors = calloc(count, sizeof(manifest.vectors[0])),
                                .vector_count = count,
                                .job = json_deep_copy(job_part)};
    if (manifest.vectors == NULL || manifest.job == NULL) {
        manifest_finish(&manifest);
        status = refuse(writer, STATUS_NO_MEMORY, "no memory for its manifest");
        checkpoint_abandon(writer);
        return status;
    }
    status = make_whole(writer, &manifest);
    manifest_finish(&manifest);
    if (status == STATUS_OK) {
        status = publish(writer);
    }
    if (status == STATUS_OK) {
        remove_others(writer);
    }
    return status;
}
