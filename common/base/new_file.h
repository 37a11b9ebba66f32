/* Creates files without following what somebody else may have put in their place.
 *
 * A run folder may lie where other users can write. If one of them plants a symbolic or a
 * hard link at the name of a file that is about to be written, the file behind it must not be
 * overwritten. */
#ifndef COMMON_BASE_NEW_FILE_H
#define COMMON_BASE_NEW_FILE_H

#include "common/base/status.h"

#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

/* Opens a new file for writing (O_APPEND, close on exec). A name that exists is removed first if
 * `replaces`, which removes a link and not its target; otherwise that is an error. -1 and errno. */
int new_file_open(const char *path, bool replaces);

/* The same as a stream; NULL and errno. */
FILE *new_file_stream(const char *path, bool replaces);

/* Creates a file of `bytes` zeros, which takes that much of the disk. Where it cannot be written in
 * full, it is removed again: STATUS_IO and errno. */
enum status new_file_fill(const char *path, size_t bytes);

/* Puts a file of these bytes in the place of `path`: it appears whole, once it is on the disk, or
 * not at all. Meanwhile it is PATH.part. STATUS_IO and errno. */
enum status new_file_replace(const char *path, const void *bytes, size_t size);

/* Opens a file to append to, new or not, but no link of either kind, nor anything else that is no
 * file: errno is ELOOP then. */
int new_file_append(const char *path);

/* Opens a file that is there for reading, and nothing else, such as a pipe, which would wait for
 * its other end. NULL and errno. */
FILE *new_file_read(const char *path);

/* Whether an open file, or folder, still has this path, and not by a symbolic link. */
bool new_file_is_at(int fd, const char *path);

/* Whether the owner of a file is this user or root, whom nobody is safe from. */
bool new_file_is_ours(uid_t owner);

/* Whether a folder that exists is safe to write to: STATUS_DENIED and a sentence if it belongs to
 * another user, or if any user may replace what is in it. */
enum status new_file_check_folder(const char *folder, char *ret_error, size_t error_size);

#endif
