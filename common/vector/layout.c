/* Spans, buckets and the digest of the flat parameter vector. */
#include "common/vector/layout.h"

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

// The same on every machine: vectors are mapped by others.
#define PAGE_BYTES 65536

#define FNV_PRIME UINT64_C(0x100000001B3)

// The first bucket is the one that nothing overlaps yet: a smaller one starts the exchange earlier.
#define FIRST_BUCKET_DIVISOR 4

struct span span_part(struct span whole, uint32_t part_count, uint32_t index)
{
    assert(index < part_count);
    uint64_t base = whole.count / part_count;
    uint64_t rest = whole.count % part_count;
    return (struct span){
        .offset = whole.offset + index * base + (index < rest ? index : rest),
        .count = base + (index < rest ? 1 : 0),
    };
}

uint64_t layout_stride(uint64_t value_count)
{
    uint64_t page = PAGE_BYTES / sizeof(float);
    return (value_count + page - 1) / page * page;
}

struct span span_intersect(struct span a, struct span b)
{
    struct span low = a.offset <= b.offset ? a : b;
    struct span high = a.offset <= b.offset ? b : a;
    uint64_t gap = high.offset - low.offset;
    if (gap >= low.count) {
        return (struct span){.offset = high.offset, .count = 0};
    }
    uint64_t rest = low.count - gap;
    return (struct span){
        .offset = high.offset,
        .count = rest < high.count ? rest : high.count,
    };
}

enum status layout_check(const struct layout *layout)
{
    if (layout->value_count == 0 || layout->value_count > LAYOUT_VALUES_MAX ||
        layout->bucket_count == 0 || layout->bucket_count > LAYOUT_BUCKETS_MAX) {
        return STATUS_MALFORMED;
    }
    uint64_t end = layout->value_count;
    for (uint32_t i = 0; i < layout->bucket_count; i++) {
        struct span bucket = layout->buckets[i];
        // Written without a sum, which a hostile offset would wrap.
        if (bucket.count == 0 || bucket.count > end || bucket.offset != end - bucket.count) {
            return STATUS_MALFORMED;
        }
        end = bucket.offset;
    }
    return end == 0 ? STATUS_OK : STATUS_MALFORMED;
}

/* Ascending, none empty, no gaps; writes the length of the vector. */
static enum status check_tensors(const struct span *tensors, uint32_t tensor_count,
                                 uint64_t *ret_value_count)
{
    uint64_t end = 0;
    for (uint32_t i = 0; i < tensor_count; i++) {
        if (tensors[i].offset != end || tensors[i].count == 0 ||
            tensors[i].count > LAYOUT_VALUES_MAX - end) {
            return STATUS_INVALID;
        }
        end += tensors[i].count;
    }
    if (end == 0) {
        return STATUS_INVALID;
    }
    *ret_value_count = end;
    return STATUS_OK;
}

/* By its bytes from the lowest, so that machines of either byte order agree. */
static uint64_t digest_add_number(uint64_t digest, uint64_t number)
{
    for (unsigned shift = 0; shift < 64; shift += 8) {
        unsigned char byte = (unsigned char)(number >> shift);
        digest = layout_digest_add(digest, &byte, 1);
    }
    return digest;
}

static uint64_t digest_of_tensors(const struct span *tensors, uint32_t tensor_count)
{
    uint64_t digest = LAYOUT_DIGEST_SEED;
    for (uint32_t i = 0; i < tensor_count; i++) {
        digest = digest_add_number(digest, tensors[i].offset);
        digest = digest_add_number(digest, tensors[i].count);
    }
    return digest;
}

/* Whether the bucket that comes behind so many others may be closed. */
static bool has_enough(uint32_t bucket_count, uint64_t value_count, uint64_t bucket_bytes)
{
    uint64_t bytes_min = bucket_count == 0 ? bucket_bytes / FIRST_BUCKET_DIVISOR : bucket_bytes;
    return value_count * sizeof(float) >= bytes_min;
}

enum status layout_make_buckets(const struct span *tensors, const unsigned char *may_close,
                                uint32_t tensor_count, uint64_t bucket_bytes,
                                struct layout *ret_layout)
{
    uint64_t value_count;
    enum status status = check_tensors(tensors, tensor_count, &value_count);
    if (status != STATUS_OK) {
        return status;
    }

    uint32_t bucket_count = 0;
    uint64_t end = value_count; // of the bucket being filled
    for (uint32_t i = tensor_count; i-- > 0;) {
        uint64_t count = end - tensors[i].offset;
        bool is_full = may_close[i] != 0 && has_enough(bucket_count, count, bucket_bytes) &&
                       bucket_count < LAYOUT_BUCKETS_MAX - 1;
        // The rest makes the last bucket, however small, or large once buckets run out.
        if (is_full || i == 0) {
            ret_layout->buckets[bucket_count++] = (struct span){tensors[i].offset, count};
            end = tensors[i].offset;
        }
    }
    ret_layout->value_count = value_count;
    ret_layout->bucket_count = bucket_count;
    ret_layout->digest = digest_of_tensors(tensors, tensor_count);
    assert(layout_check(ret_layout) == STATUS_OK);
    return STATUS_OK;
}

/* How many parts a bucket is cut into. */
static uint64_t part_count_of(struct span bucket, uint64_t bucket_bytes)
{
    uint64_t bytes = bucket.count * sizeof(float);
    if (bucket_bytes < sizeof(float) || bytes <= bucket_bytes ||
        bytes - bucket_bytes <= bucket_bytes / 2) {
        return 1;
    }
    return (bytes + bucket_bytes - 1) / bucket_bytes;
}

/* How many parts all buckets are cut into. */
static uint64_t count_parts(const struct layout *layout, uint64_t bucket_bytes)
{
    uint64_t count = 0;
    for (uint32_t i = 0; i < layout->bucket_count; i++) {
        count += part_count_of(layout->buckets[i], bucket_bytes);
    }
    return count;
}

void layout_split_buckets(struct layout *layout, uint64_t bucket_bytes)
{
    struct span whole[LAYOUT_BUCKETS_MAX];
    uint32_t whole_count = layout->bucket_count, count = 0;
    memcpy(whole, layout->buckets, whole_count * sizeof(whole[0]));
    while (count_parts(layout, bucket_bytes) > LAYOUT_BUCKETS_MAX) {
        bucket_bytes *= 2; // less than the vector has
    }
    for (uint32_t i = 0; i < whole_count; i++) {
        uint64_t part_count = part_count_of(whole[i], bucket_bytes);
        // From the end, as buckets are.
        for (uint64_t part = part_count; part-- > 0;) {
            layout->buckets[count++] = span_part(whole[i], (uint32_t)part_count, (uint32_t)part);
        }
    }
    layout->bucket_count = count;
    assert(layout_check(layout) == STATUS_OK);
}

void layout_merge(const struct layout *fine, uint64_t bucket_bytes, struct layout *ret_layout)
{
    ret_layout->value_count = fine->value_count;
    ret_layout->digest = fine->digest;
    uint32_t count = 0;
    uint64_t end = fine->value_count; // of the bucket being filled
    for (uint32_t i = 0; i < fine->bucket_count; i++) {
        uint64_t offset = fine->buckets[i].offset;
        if (has_enough(count, end - offset, bucket_bytes) || i + 1 == fine->bucket_count) {
            ret_layout->buckets[count++] = (struct span){offset, end - offset};
            end = offset;
        }
    }
    ret_layout->bucket_count = count;
    assert(layout_check(ret_layout) == STATUS_OK);
}

uint64_t layout_digest_add(uint64_t digest, const void *bytes, uint64_t size)
{
    const unsigned char *byte = bytes;
    for (uint64_t i = 0; i < size; i++) {
        digest = (digest ^ byte[i]) * FNV_PRIME;
    }
    return digest;
}
