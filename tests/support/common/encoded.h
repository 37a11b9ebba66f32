/* Vectors that go through an encoding, with canaries around its bytes. */
#ifndef TESTS_SUPPORT_COMMON_ENCODED_H
#define TESTS_SUPPORT_COMMON_ENCODED_H

#include "common/codec/codec.h"

#include <stddef.h>
#include <stdint.h>

// More than two tiles of error feedback, and no whole number of anything.
#define ENCODED_COUNT_MAX 9001
#define ENCODED_MARGIN    64

/* An encoding of any sort. Its bytes are at an odd address. */
struct encoded {
    size_t size;
    uint8_t room[ENCODED_MARGIN + 1 + 2 * sizeof(float) * ENCODED_COUNT_MAX + ENCODED_MARGIN];
};

// Texts of codecs of all kinds.
#define ENCODED_TEXT_COUNT 8
extern const char *const encoded_texts[ENCODED_TEXT_COUNT];

/* What the text says; fails the test if it is none. */
struct codec encoded_codec(const char *text);

/* Makes room for `size` bytes, and returns where they are to be written. */
uint8_t *encoded_prepare(struct encoded *encoded, size_t size);

uint8_t *encoded_bytes(struct encoded *encoded);

/* Fails the test if something was written around the bytes. */
void encoded_check(const struct encoded *encoded);

/* codec_encode and codec_decode, checked for what they write around. ret_values has room for one
 * more than count. */
void encoded_encode(const struct codec *codec, const float *values, size_t count,
                    struct encoded *ret_encoded);
void encoded_decode(const struct codec *codec, struct encoded *encoded, size_t count,
                    float *ret_values);

/* Both: what arrives of the values, or of a single one. */
void encoded_pass(const char *text, const float *values, size_t count, float *ret_values);
float encoded_passed(const char *text, float value);

/* Values over many magnitudes, with zeros and many that are equal but for their sign. */
void encoded_fill(float *values, size_t count, uint64_t seed);

/* With values of every kind, those that are not finite among them. */
void encoded_fill_wildly(float *values, size_t count, uint64_t seed);

uint32_t encoded_bits(float value);

#endif
