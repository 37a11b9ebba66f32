/* Lines over a file descriptor, without waiting: what has come in is cut into lines, what is to go
 * out is kept until it can. Both are bounded. */
#ifndef DEPLOY_SYSTEM_LINE_STREAM_H
#define DEPLOY_SYSTEM_LINE_STREAM_H

#include "common/base/status.h"

#include <stdbool.h>
#include <stddef.h>

#define LINE_WRITER_BYTES_MAX ((size_t)16 << 20) // that wait to be written

struct line_reader {
    int fd;      // borrowed, and made non-blocking
    char *bytes; // (line_max + 1), owned
    size_t line_max, begin, end;
    bool is_over; // nothing more will come; what came last may lie there without its newline
};

/* Lines of at most line_max bytes, without their newline. */
enum status line_reader_init(struct line_reader *reader, int fd, size_t line_max);
void line_reader_finish(struct line_reader *reader);

/* Takes what is there. STATUS_END_OF_DATA if nothing more will come. */
enum status line_reader_fill(struct line_reader *reader);

/* The next whole line, borrowed until the next call of either. NULL: there is none, yet. A line
 * that fills the buffer comes in pieces where cuts_long is set; otherwise it is STATUS_MALFORMED.
 */
enum status line_reader_next(struct line_reader *reader, bool cuts_long, char **ret_line);

struct line_writer {
    int fd;      // borrowed, and made non-blocking
    char *bytes; // owned
    size_t begin, end, size;
};

void line_writer_init(struct line_writer *writer, int fd);
void line_writer_finish(struct line_writer *writer);

/* Queues a line. STATUS_NO_MEMORY if too much waits already. */
enum status line_writer_add(struct line_writer *writer, const char *line);

/* Writes what can be written now. STATUS_IO: nobody reads any more. */
enum status line_writer_flush(struct line_writer *writer);

size_t line_writer_waiting(const struct line_writer *writer); // bytes

#endif
