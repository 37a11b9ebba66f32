/* Encodings of float vectors that take fewer bytes on the wire, most of them lossy. Pure.
 *
 *     kind        bytes of n values            what of a value arrives
 *     none        4 n                          all of it
 *     fp16        2 n                          IEEE half: 11 significant bits, up to 65504
 *     bf16        2 n                          the upper half of a float: 8 significant bits
 *     int8        n + 4 ceil(n / 256)          a multiple of 1/127 of its block's largest
 *     topk:SHARE  4 k + min(4 k, ceil(n / 8))  all, if among the k = ceil(SHARE n) largest, or 0
 *
 * int8 is the blockwise form of QSGD (Alistarh et al. 2017), as Dettmers 2016 has it, without the
 * dice; topk is that of deep gradient compression (Lin et al. 2018).
 *
 * What such an encoding loses of a gradient it must not lose for ever, or training may not
 * converge. Error feedback (Seide et al. 2014, for one bit; Karimireddy et al. 2019, for any
 * encoding) keeps it in a residual, and adds that to the next gradient:
 *
 *     sum = values + residual;  bytes = encode(sum);  residual = sum - decode(bytes)
 *
 * Rounding is to nearest, ties to even, and the same in every bit on all machines. Finite values
 * stay finite: beyond the largest value of an encoding they become that value. Infinities and NaN
 * stay what they are (int8: all values of their block become NaN; topk: they count as larger than
 * any finite value), so that a broken gradient arrives as one. */
#ifndef COMMON_CODEC_CODEC_H
#define COMMON_CODEC_CODEC_H

#include "common/base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CODEC_COUNT_MAX       UINT32_MAX // values that may be encoded at once
#define CODEC_VALUE_BYTES_MAX 5          // no code takes more for each of its values
#define CODEC_TEXT_BYTES      16         // of the longest text, with its terminating 0
#define CODEC_SHARE_MAX       1000000    // millionths: all of the values

enum codec_kind {
    CODEC_NONE,
    CODEC_FP16,
    CODEC_BF16,
    CODEC_INT8,
    CODEC_TOPK,
    CODEC_KIND_COUNT,
};

/* All zero: none. */
struct codec {
    enum codec_kind kind;
    uint32_t share_millionths; // topk: of the values, at least 1; a whole number, so that all
                               // machines come to the same k. 0 for the others
};

/* Reads "fp16", "topk:0.01". STATUS_INVALID: ret_why says what would be right. */
enum status codec_parse(const char *text, struct codec *ret_codec, char *ret_why, size_t why_size);

bool codec_is_same(const struct codec *one, const struct codec *other);

/* The text of which codec_parse makes this codec. */
void codec_text(const struct codec *codec, char ret_text[CODEC_TEXT_BYTES]);

/* What `count` values take once encoded: never more, never less. */
size_t codec_bytes(const struct codec *codec, size_t count);

/* Writes codec_bytes of them to ret_bytes, which may be at any address, and returns how many those
 * are. `values` (count) stay as they are. */
size_t codec_encode(const struct codec *codec, const float *values, size_t count, void *ret_bytes);

/* The same for values + residual; the residual (count), at first 0, becomes the loss of that sum.
 * Where the sum or what arrives of it is not finite it becomes 0. */
size_t codec_encode_with_feedback(const struct codec *codec, const float *values, float *residual,
                                  size_t count, void *ret_bytes);

/* STATUS_MALFORMED if `bytes`, a peer's, are no encoding of `count` values: what codec_decode looks
 * at before it writes. */
enum status codec_check(const struct codec *codec, const void *bytes, size_t size, size_t count);

/* `bytes` are a peer's. STATUS_MALFORMED, with nothing written, if they are no encoding of `count`
 * values; what the values are is not looked at. */
enum status codec_decode(const struct codec *codec, const void *bytes, size_t size, size_t count,
                         float *ret_values);

/* The same, but to[i] += what was decoded; where topk sent nothing, to[i] is not touched. */
enum status codec_decode_add(const struct codec *codec, const void *bytes, size_t size,
                             size_t count, float *to);

#endif
