/* Digest of a parameter vector, by libsodium. */
#include "common/vector/digest.h"

#include <sodium.h>

#include <assert.h>
#include <endian.h>
#include <stddef.h>
#include <string.h>

#define DIGEST_BYTES ((DIGEST_TEXT_BYTES - 1) / 2)
#define BLOCK_FLOATS 4096

void digest_floats(const float *values, uint64_t count, char ret_text[DIGEST_TEXT_BYTES])
{
    int failed = sodium_init(); // 1: it was already
    assert(failed >= 0);
    crypto_generichash_state state;
    failed = crypto_generichash_init(&state, NULL, 0, DIGEST_BYTES);
    assert(failed == 0);
    while (count > 0) {
        uint32_t block[BLOCK_FLOATS];
        size_t block_count = count < BLOCK_FLOATS ? (size_t)count : BLOCK_FLOATS;
        memcpy(block, values, block_count * sizeof(float));
        for (size_t i = 0; i < block_count; i++) {
            block[i] = htole32(block[i]);
        }
        failed = crypto_generichash_update(&state, (const unsigned char *)block,
                                           block_count * sizeof(float));
        assert(failed == 0);
        values += block_count;
        count -= block_count;
    }
    unsigned char digest[DIGEST_BYTES];
    failed = crypto_generichash_final(&state, digest, sizeof(digest));
    assert(failed == 0);
    sodium_bin2hex(ret_text, DIGEST_TEXT_BYTES, digest, sizeof(digest));
}
