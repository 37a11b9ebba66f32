/* A trace file in memory, read packet by packet. */
#ifndef DEPLOY_TRACE_TRACE_BYTES_H
#define DEPLOY_TRACE_TRACE_BYTES_H

#include "common/base/status.h"
#include "common/trace/trace_packet.h"

#include <stddef.h>

#define TRACE_BYTES_PATH_MAX 4200

struct trace_bytes {
    char path[TRACE_BYTES_PATH_MAX];
    unsigned char *bytes; // (size), owned
    size_t size, at;      // the next packet
    struct trace_scratch scratch;
};

/* Logs what cannot be read. */
enum status trace_bytes_open(const char *path, struct trace_bytes *ret_file);
void trace_bytes_close(struct trace_bytes *file); // zeroed is fine

/* The next packet, which borrows from the file until the next call. STATUS_END_OF_DATA behind the
 * last. STATUS_MALFORMED: the file is damaged, which is logged with the place. */
enum status trace_bytes_next(struct trace_bytes *file, struct trace_packet *ret_packet);

#endif
