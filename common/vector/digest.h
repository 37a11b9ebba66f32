/* Digest of a parameter vector: BLAKE2b-256 of its little-endian floats, as 64 hex digits. */
#ifndef COMMON_VECTOR_DIGEST_H
#define COMMON_VECTOR_DIGEST_H

#include <stdint.h>

#define DIGEST_TEXT_BYTES 65 // terminator included

void digest_floats(const float *values, uint64_t count, char ret_text[DIGEST_TEXT_BYTES]);

#endif
