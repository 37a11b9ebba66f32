/* The checksum of a file: BLAKE2b of its bytes, as hex digits. */
#ifndef COMMON_CHECKPOINT_CHECKSUM_H
#define COMMON_CHECKPOINT_CHECKSUM_H

#include "common/base/status.h"
#include "common/checkpoint/manifest.h"

#include <stdint.h>

/* Of the first `size` bytes. STATUS_IO and errno, STATUS_END_OF_DATA (EIO) if there are fewer. Adds
 * what it has read so far to *read_bytes, for another thread; NULL: nobody asks. */
enum status checksum_file(int fd, uint64_t size, _Atomic uint64_t *read_bytes,
                          char ret_text[CHECKSUM_TEXT_BYTES]);

#endif
