/* The k values of largest magnitude, and where they are.
 *
 *     float value x k, in the order of the vector
 *     then the shorter of   uint32 index x k, ascending
 *                           a bit for each value of the vector, lowest first; 0 up to a whole byte
 *
 * k and the form follow from the count and the share, so neither is sent.
 *
 * Which those are: as integers, the bits of magnitudes are in the order of magnitudes. The k-th
 * largest, the cut, is found by its digits, highest first, as a radix sort would: count how many of
 * the values that agree with the digits so far have which next digit, then go down from the highest
 * until k values are passed. Everything above the cut is sent, and as many of those that equal it
 * as are wanted, lowest index first. That is one pass for each digit, without any memory that grows
 * with the vector, whereas quickselect needs a copy.
 *
 * Counting is slow beside finding the largest of some values, which is done by whole vectors. So
 * values are looked at in groups, and a group whose largest is below the floor, which is known not
 * to be above the cut, is passed over. The first floor comes from the largest of each group alone:
 * if k groups have one that is as large, so have k values. */
#include "common/codec/codec_rules.h"
#include "common/vector/vector.h"

#include <assert.h>

// The highest digit has the exponent and the first places behind it.
#define DIGIT_BITS_MAX 11
#define DIGIT_MAX      (1u << DIGIT_BITS_MAX)

// Histograms side by side: counting the same digit again and again would wait for itself.
#define LANES 4

struct digit {
    uint32_t bits, shift;
};

static const struct digit high_digit = {DIGIT_BITS_MAX, 20};
static const struct digit middle_digit = {10, 10};
static const struct digit low_digit = {10, 0};

// Values that are looked at or passed over together. With no more than 16 compilers unroll the loop
// first, and then do not vectorise it.
#define GROUP 32

/* Of the cut, so far. */
struct known {
    uint32_t prefix; // its digits
    uint32_t floor;  // a magnitude that it is not below
};

struct cut {
    uint32_t magnitude;
    size_t equal_count; // of those that equal it, so many are sent
};

static size_t sent_count(const struct codec *codec, size_t count)
{
    // At most 2^32 times 10^6.
    uint64_t millionths = (uint64_t)count * codec->share_millionths;
    return (size_t)((millionths + CODEC_SHARE_MAX - 1) / CODEC_SHARE_MAX);
}

static size_t bitmap_bytes(size_t count)
{
    return (count + 7) / 8;
}

static bool has_bitmap(const struct codec *codec, size_t count)
{
    return bitmap_bytes(count) < sent_count(codec, count) * sizeof(uint32_t);
}

static size_t bytes_of(const struct codec *codec, size_t count)
{
    size_t indices = sent_count(codec, count) * sizeof(uint32_t);
    return sent_count(codec, count) * sizeof(float) +
           (has_bitmap(codec, count) ? bitmap_bytes(count) : indices);
}

/* The largest magnitude of the group that begins at `start`. */
VARIANT_BODY uint32_t group_largest(const float *values, size_t count, size_t start)
{
    return count - start >= GROUP ? codec_largest(values + start, GROUP)
                                  : codec_largest(values + start, count - start);
}

static size_t group_end(size_t count, size_t start)
{
    return count - start >= GROUP ? start + GROUP : count;
}

/* Goes down from the highest digit until `wanted` are passed: which digit that is, and how many are
 * wanted among those that have it. There must be as many. */
static uint32_t digit_of(const uint32_t *counts, uint32_t bits, size_t *wanted)
{
    uint32_t digit = (1u << bits) - 1;
    while (counts[digit] < *wanted) {
        *wanted -= counts[digit];
        digit--;
    }
    return digit;
}

/* Something that at least k values are not below; 0 if that cannot be said. */
VARIANT_BODY uint32_t first_floor(const float *values, size_t count, size_t k)
{
    if (count / GROUP < k) {
        return 0;
    }
    uint32_t counts[DIGIT_MAX] = {0};
    for (size_t start = 0; start < count; start += GROUP) {
        counts[group_largest(values, count, start) >> high_digit.shift]++;
    }
    return digit_of(counts, high_digit.bits, &k) << high_digit.shift;
}

/* Counts which of `count` values with the digits so far have which digit next. */
VARIANT_BODY void count_group(const float *values, size_t count, struct digit digit,
                              uint32_t prefix, uint32_t lanes[LANES][DIGIT_MAX + 1])
{
    uint32_t mask = (1u << digit.bits) - 1;
    for (size_t i = 0; i < count; i++) {
        uint32_t upper = codec_magnitude(values[i]) >> digit.shift;
        // Others are counted behind all digits, which avoids an unpredictable branch.
        uint32_t place = upper >> digit.bits == prefix ? upper & mask : DIGIT_MAX;
        lanes[i % LANES][place]++;
    }
}

/* What is known with the next digit; *wanted are so many of the values that have all of them. */
VARIANT_BODY struct known with_digit(const float *values, size_t count, struct known known,
                                     struct digit digit, size_t *wanted)
{
    uint32_t lanes[LANES][DIGIT_MAX + 1] = {0};
    for (size_t start = 0; start < count; start += GROUP) {
        if (group_largest(values, count, start) < known.floor) {
            continue; // smaller than the values that are looked for
        }
        if (count - start >= GROUP) {
            count_group(values + start, GROUP, digit, known.prefix, lanes);
        } else {
            count_group(values + start, count - start, digit, known.prefix, lanes);
        }
    }
    for (uint32_t i = 0; i < DIGIT_MAX; i++) {
        lanes[0][i] += lanes[1][i] + lanes[2][i] + lanes[3][i];
    }
    known.prefix = known.prefix << digit.bits | digit_of(lanes[0], digit.bits, wanted);
    uint32_t floor = known.prefix << digit.shift;
    known.floor = floor > known.floor ? floor : known.floor;
    return known;
}

/* Of the k largest; k > 0. */
VARIANT_BODY struct cut find_cut(const float *values, size_t count, size_t k)
{
    struct known known = {.floor = first_floor(values, count, k)};
    known = with_digit(values, count, known, high_digit, &k);
    known = with_digit(values, count, known, middle_digit, &k);
    known = with_digit(values, count, known, low_digit, &k);
    return (struct cut){.magnitude = known.prefix, .equal_count = k};
}

/* Where the next value goes. */
struct writer {
    uint8_t *values, *positions;
    size_t written;
    bool has_bitmap;
};

/* Always writes the value; the next one overwrites it if it is not sent. */
static inline void put(struct writer *writer, const float *values, size_t i, bool is_sent)
{
    memcpy(writer->values + writer->written * sizeof(float), &values[i], sizeof(float));
    if (writer->has_bitmap) {
        writer->positions[i / 8] |= (uint8_t)((unsigned)is_sent << i % 8);
    } else {
        uint32_t index = (uint32_t)i;
        memcpy(writer->positions + writer->written * sizeof(index), &index, sizeof(index));
    }
    writer->written += is_sent;
}

VARIANT_BODY void topk_encode_body(const struct codec *codec, const float *values, size_t count,
                                   uint8_t *ret_bytes)
{
    size_t k = sent_count(codec, count);
    if (k == 0) {
        return;
    }
    struct cut cut = find_cut(values, count, k);
    struct writer writer = {ret_bytes, ret_bytes + k * sizeof(float), 0, has_bitmap(codec, count)};
    if (writer.has_bitmap) {
        memset(writer.positions, 0, bitmap_bytes(count));
    }
    for (size_t start = 0; start < count; start += GROUP) {
        if (group_largest(values, count, start) < cut.magnitude) {
            continue;
        }
        for (size_t i = start; i < group_end(count, start) && writer.written < k; i++) {
            uint32_t magnitude = codec_magnitude(values[i]);
            bool is_equal = (magnitude == cut.magnitude) & (cut.equal_count > 0);
            cut.equal_count -= is_equal;
            put(&writer, values, i, (magnitude > cut.magnitude) | is_equal);
        }
    }
    assert(writer.written == k);
}

#define DEFINE_ENCODE(variant, target)                                                       \
    target static void topk_encode_##variant(const struct codec *codec, const float *values, \
                                             size_t count, uint8_t *ret_bytes)               \
    {                                                                                        \
        topk_encode_body(codec, values, count, ret_bytes);                                   \
    }

DEFINE_ENCODE(portable, )
DEFINE_ENCODE(avx2, VARIANT_TARGET_AVX2)
DEFINE_ENCODE(avx512, VARIANT_TARGET_AVX512)

static uint32_t index_at(const uint8_t *positions, size_t place)
{
    uint32_t index;
    memcpy(&index, positions + place * sizeof(index), sizeof(index));
    return index;
}

static bool bitmap_is_valid(const uint8_t *bitmap, size_t count, size_t k)
{
    size_t sent = 0;
    for (size_t i = 0; i < bitmap_bytes(count); i++) {
        sent += (size_t)__builtin_popcount(bitmap[i]);
    }
    bool has_surplus = count % 8 != 0 && bitmap[count / 8] >> count % 8 != 0;
    return sent == k && !has_surplus;
}

static bool indices_are_valid(const uint8_t *positions, size_t count, size_t k)
{
    uint64_t above = 0; // the least that the next may be
    for (size_t place = 0; place < k; place++) {
        uint32_t index = index_at(positions, place);
        if (index < above || index >= count) {
            return false;
        }
        above = (uint64_t)index + 1;
    }
    return true;
}

static bool is_valid(const struct codec *codec, const uint8_t *bytes, size_t count)
{
    size_t k = sent_count(codec, count);
    const uint8_t *positions = bytes + k * sizeof(float);
    return has_bitmap(codec, count) ? bitmap_is_valid(positions, count, k)
                                    : indices_are_valid(positions, count, k);
}

static void use_value(const uint8_t *bytes, size_t place, enum codec_use use, float *to)
{
    float value;
    memcpy(&value, bytes + place * sizeof(value), sizeof(value));
    *to = codec_used(use, *to, value);
}

static void clear_not_finite(float *values, size_t count)
{
    if (!vector_is_finite(values, count)) {
        for (size_t i = 0; i < count; i++) {
            values[i] = codec_used(CODEC_KEEP_REST, values[i], 0);
        }
    }
}

static void topk_decode(const struct codec *codec, const uint8_t *bytes, size_t count,
                        enum codec_use use, float *to)
{
    size_t k = sent_count(codec, count);
    const uint8_t *positions = bytes + k * sizeof(float);
    if (use == CODEC_SET) {
        memset(to, 0, count * sizeof(float));
    }
    if (has_bitmap(codec, count)) {
        size_t place = 0;
        for (size_t i = 0; i < bitmap_bytes(count); i++) {
            for (unsigned left = positions[i]; left != 0; left &= left - 1) {
                use_value(bytes, place++, use, &to[i * 8 + (size_t)__builtin_ctz(left)]);
            }
        }
    } else {
        for (size_t place = 0; place < k; place++) {
            use_value(bytes, place, use, &to[index_at(positions, place)]);
        }
    }
    if (use == CODEC_KEEP_REST) {
        clear_not_finite(to, count);
    }
}

const struct codec_rule codec_rule_topk = {
    .name = "topk",
    .has_share = true,
    .bytes = bytes_of,
    .is_valid = is_valid,
    // Scattered values gain nothing from wider vectors.
    .loops =
        {
            [VARIANT_PORTABLE] = {topk_encode_portable, topk_decode},
            [VARIANT_AVX2] = {topk_encode_avx2, topk_decode},
            [VARIANT_AVX512] = {topk_encode_avx512, topk_decode},
        },
};
