/* Reads a file whole, then decodes it. */
#include "deploy/trace/trace_bytes.h"

#include "common/base/log.h"

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static enum status read_all(int fd, struct trace_bytes *file)
{
    struct stat facts;
    if (fstat(fd, &facts) != 0 || !S_ISREG(facts.st_mode)) {
        return STATUS_IO;
    }
    file->size = (size_t)facts.st_size;
    file->bytes = malloc(file->size + 1);
    if (file->bytes == NULL) {
        return STATUS_NO_MEMORY;
    }
    for (size_t done = 0; done < file->size;) {
        ssize_t got = read(fd, file->bytes + done, file->size - done);
        if (got <= 0) {
            return STATUS_IO;
        }
        done += (size_t)got;
    }
    return STATUS_OK;
}

enum status trace_bytes_open(const char *path, struct trace_bytes *ret_file)
{
    ret_file->bytes = NULL;
    ret_file->size = ret_file->at = 0;
    snprintf(ret_file->path, sizeof(ret_file->path), "%s", path);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    enum status status = fd >= 0 ? read_all(fd, ret_file) : STATUS_IO;
    if (status == STATUS_NO_MEMORY) {
        log_error("no memory to read %s, which has %zu bytes", path, ret_file->size);
    } else if (status != STATUS_OK) {
        log_error("cannot read %s: %m", path);
    }
    if (fd >= 0) {
        close(fd);
    }
    if (status != STATUS_OK) {
        trace_bytes_close(ret_file);
    }
    return status;
}

void trace_bytes_close(struct trace_bytes *file)
{
    free(file->bytes);
    file->bytes = NULL;
    file->size = file->at = 0;
}

enum status trace_bytes_next(struct trace_bytes *file, struct trace_packet *ret_packet)
{
    size_t used;
    if (file->at == file->size) {
        return STATUS_END_OF_DATA;
    }
    enum status status = trace_packet_decode(file->bytes + file->at, file->size - file->at,
                                             &file->scratch, &used, ret_packet);
    if (status != STATUS_OK) {
        log_error("%s is damaged at byte %zu of %zu: %s", file->path, file->at, file->size,
                  status == STATUS_END_OF_DATA ? "it ends within a packet"
                                               : "no packet of a trace begins there");
        return STATUS_MALFORMED;
    }
    file->at += used;
    return STATUS_OK;
}
