/* The user's folder of what is kept between jobs, and can be made anew. */
#ifndef COMMON_BASE_CACHE_FOLDER_H
#define COMMON_BASE_CACHE_FOLDER_H

#include <stdbool.h>
#include <stddef.h>

#define CACHE_FOLDER_BYTES 4096 // of a path

/* Where things of a kind are kept, with 64 bytes left for a file's name: RINGSIDE_CACHE/KIND, or
 * ringside/KIND in XDG_CACHE_HOME or ~/.cache. False: nowhere. */
bool cache_folder_find(const char *kind, char ret_path[CACHE_FOLDER_BYTES]);

/* Whether it is there, and nobody but this user can change what is in it. */
bool cache_folder_is_safe(const char *path);

/* Makes it, and what is above it. Returns whether it is safe. */
bool cache_folder_make(char *path);

/* Takes the lock of a file there, PATH.lock, and waits for whoever has it. A descriptor, to be
 * closed when the lock is given back; -1: there is none to be had. */
int cache_folder_lock(const char *path);

/* All of a file that is nobody's link, with '\0' behind; the caller frees it. NULL if there is
 * none, or it is empty or longer than size_max. */
char *cache_folder_read(const char *path, size_t size_max, size_t *ret_size);

#endif
