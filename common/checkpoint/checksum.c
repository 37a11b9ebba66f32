/* Sums up a file in blocks that stay in the cache, by libsodium. */
#include "common/checkpoint/checksum.h"

#include <sodium.h>

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#define BLOCK_BYTES ((size_t)256 * 1024)

static enum status sum_up(int fd, uint64_t size, _Atomic uint64_t *read_bytes, unsigned char *block,
                          crypto_generichash_state *state)
{
    for (uint64_t at = 0; at < size;) {
        size_t part = size - at < BLOCK_BYTES ? (size_t)(size - at) : BLOCK_BYTES;
        ssize_t got = pread(fd, block, part, (off_t)at);
        if (got < 0 && errno != EINTR) {
            return STATUS_IO;
        }
        if (got == 0) {
            errno = EIO;
            return STATUS_END_OF_DATA;
        }
        if (got > 0) {
            int failed = crypto_generichash_update(state, block, (size_t)got);
            assert(failed == 0);
            at += (uint64_t)got;
            if (read_bytes != NULL) {
                *read_bytes += (uint64_t)got;
            }
        }
    }
    return STATUS_OK;
}

enum status checksum_file(int fd, uint64_t size, _Atomic uint64_t *read_bytes,
                          char ret_text[CHECKSUM_TEXT_BYTES])
{
    unsigned char checksum[CHECKSUM_BYTES], *block = malloc(BLOCK_BYTES);
    crypto_generichash_state state;
    if (block == NULL) {
        errno = ENOMEM;
        return STATUS_NO_MEMORY;
    }
    int failed = sodium_init(); // 1: it was already
    assert(failed >= 0);
    failed = crypto_generichash_init(&state, NULL, 0, sizeof(checksum));
    assert(failed == 0);
    enum status status = sum_up(fd, size, read_bytes, block, &state);
    free(block);
    if (status == STATUS_OK) {
        failed = crypto_generichash_final(&state, checksum, sizeof(checksum));
        assert(failed == 0);
        sodium_bin2hex(ret_text, CHECKSUM_TEXT_BYTES, checksum, sizeof(checksum));
    }
    return status;
}
