/* Reads and writes lines on descriptors that do not block. */
#include "deploy/system/line_stream.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void make_nonblocking(int fd)
{
    int flags = fcntl(fd, F_GETFL);
    if (flags >= 0) {
        fcntl(fd, F_SETFL, flags | O_NONBLOCK);
    }
}

enum status line_reader_init(struct line_reader *reader, int fd, size_t line_max)
{
    *reader = (struct line_reader){.fd = fd, .line_max = line_max, .bytes = malloc(line_max + 1)};
    make_nonblocking(fd);
    return reader->bytes != NULL ? STATUS_OK : STATUS_NO_MEMORY;
}

/* Lines may hold keys. */
static void wipe_and_free(char *bytes, size_t size)
{
    if (bytes != NULL) {
        explicit_bzero(bytes, size);
    }
    free(bytes);
}

void line_reader_finish(struct line_reader *reader)
{
    wipe_and_free(reader->bytes, reader->line_max + 1);
    *reader = (struct line_reader){.fd = -1};
}

enum status line_reader_fill(struct line_reader *reader)
{
    if (reader->begin > 0) {
        memmove(reader->bytes, reader->bytes + reader->begin, reader->end - reader->begin);
        reader->end -= reader->begin;
        explicit_bzero(reader->bytes + reader->end, reader->begin);
        reader->begin = 0;
    }
    while (!reader->is_over && reader->end < reader->line_max) {
        ssize_t got = read(reader->fd, reader->bytes + reader->end, reader->line_max - reader->end);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0 && errno == EAGAIN) {
            break;
        }
        reader->is_over = got <= 0;
        reader->end += got > 0 ? (size_t)got : 0;
    }
    return reader->is_over ? STATUS_END_OF_DATA : STATUS_OK;
}

enum status line_reader_next(struct line_reader *reader, bool cuts_long, char **ret_line)
{
    char *line = reader->bytes + reader->begin;
    size_t size = reader->end - reader->begin;
    char *newline = size > 0 ? memchr(line, '\n', size) : NULL;
    *ret_line = NULL;
    if (newline != NULL) {
        *newline = '\0';
        reader->begin += (size_t)(newline - line) + 1;
        *ret_line = line;
        return STATUS_OK;
    }
    bool is_full = size == reader->line_max;
    if (is_full && !cuts_long) {
        return STATUS_MALFORMED;
    }
    if (is_full || (reader->is_over && size > 0)) {
        line[size] = '\0'; // there is room for it
        reader->begin = reader->end;
        *ret_line = line;
    }
    return STATUS_OK;
}

void line_writer_init(struct line_writer *writer, int fd)
{
    *writer = (struct line_writer){.fd = fd};
    make_nonblocking(fd);
}

void line_writer_finish(struct line_writer *writer)
{
    wipe_and_free(writer->bytes, writer->size);
    *writer = (struct line_writer){.fd = -1};
}

size_t line_writer_waiting(const struct line_writer *writer)
{
    return writer->end - writer->begin;
}

/* Room for so many bytes more. */
static enum status make_room(struct line_writer *writer, size_t more)
{
    size_t waiting = line_writer_waiting(writer);
    if (more > LINE_WRITER_BYTES_MAX || waiting > LINE_WRITER_BYTES_MAX - more) {
        return STATUS_NO_MEMORY;
    }
    if (writer->size - writer->end >= more) {
        return STATUS_OK;
    }
    size_t size = 2 * (waiting + more);
    char *bytes = malloc(size);
    if (bytes == NULL) {
        return STATUS_NO_MEMORY;
    }
    if (waiting > 0) {
        memcpy(bytes, writer->bytes + writer->begin, waiting);
    }
    wipe_and_free(writer->bytes, writer->size);
    writer->bytes = bytes;
    writer->begin = 0;
    writer->end = waiting;
    writer->size = size;
    return STATUS_OK;
}

enum status line_writer_add(struct line_writer *writer, const char *line)
{
    size_t size = strlen(line);
    enum status status = make_room(writer, size + 1);
    if (status == STATUS_OK) {
        memcpy(writer->bytes + writer->end, line, size);
        writer->bytes[writer->end + size] = '\n';
        writer->end += size + 1;
    }
    return status;
}

enum status line_writer_flush(struct line_writer *writer)
{
    while (writer->begin < writer->end) {
        ssize_t wrote =
            write(writer->fd, writer->bytes + writer->begin, writer->end - writer->begin);
        if (wrote < 0 && errno == EINTR) {
            continue;
        }
        if (wrote < 0 && errno == EAGAIN) {
            return STATUS_OK;
        }
        if (wrote <= 0) {
            return STATUS_IO;
        }
        writer->begin += (size_t)wrote;
    }
    if (writer->end > 0) {
        explicit_bzero(writer->bytes, writer->end);
    }
    writer->begin = writer->end = 0;
    return STATUS_OK;
}
