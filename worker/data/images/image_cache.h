/* Which files of a folder were found good, kept between jobs, so that only others have to be looked
 * at: those that are new or changed, and bad ones, which somebody may have made readable.
 *
 * It counts only where the file still has the same name, size and time of modification; nothing is
 * kept of a file that changed less than two seconds before, as its time would not show a further
 * change. The folder is RINGSIDE_CACHE/images; without that XDG_CACHE_HOME/ringside/images
 * or ~/.cache/ringside/images. Where there is none, all files are looked at each time. */
#ifndef WORKER_DATA_IMAGES_IMAGE_CACHE_H
#define WORKER_DATA_IMAGES_IMAGE_CACHE_H

#include "common/base/status.h"
#include "worker/data/images/image_list.h"

#include <stddef.h>
#include <stdint.h>

struct image_cache;

/* Takes the lock on what is kept of a folder, waiting for another process that is about to write
 * it. NULL: nothing can be kept. */
struct image_cache *image_cache_open(const char *folder);
void image_cache_close(struct image_cache *cache); // NULL is fine

/* Takes over what is known of the files of a list. */
void image_cache_read(const struct image_cache *cache, struct image_list *list);

/* Keeps what the list knows of its files; now_ns is the time of day. */
void image_cache_write(const struct image_cache *cache, const struct image_list *list,
                       int64_t now_ns);

/* The bytes of a kept file, to be freed, and back; both pure. Decoding takes what fits to the files
 * of a list. STATUS_MALFORMED: the bytes are not what was written; the list may have taken some,
 * all of them of its own files. */
enum status image_cache_encode(const struct image_list *list, int64_t now_ns, uint8_t **ret_bytes,
                               size_t *ret_size);
enum status image_cache_decode(const uint8_t *bytes, size_t size, struct image_list *list);

#endif
