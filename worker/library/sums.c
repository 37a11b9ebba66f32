/* Collectives by the coordinator's sums, where processes do not share memory. */
#include "worker/library/together.h"

#include <stdlib.h>
#include <string.h>

#define COUNT_MAX 65536 // numbers of one sum
#define WORD      sizeof(uint32_t)

static double *make_numbers(uint64_t count)
{
    return calloc(count < COUNT_MAX ? count + 1 : COUNT_MAX, sizeof(double));
}

/* The bytes of `to` become their sum over all processes, taken as words. */
static enum status sum_words(struct ringside *ringside, unsigned char *to, size_t size)
{
    double *numbers = make_numbers(size / WORD + 1);
    enum status status = numbers != NULL ? STATUS_OK : STATUS_NO_MEMORY;
    for (size_t at = 0; at < size && status == STATUS_OK;) {
        size_t part = size - at < COUNT_MAX * WORD ? size - at : COUNT_MAX * WORD;
        uint32_t count = (uint32_t)((part + WORD - 1) / WORD);
        for (uint32_t i = 0; i < count; i++) {
            uint32_t word = 0;
            size_t begin = i * WORD;
            memcpy(&word, to + at + begin, part - begin < WORD ? part - begin : WORD);
            numbers[i] = (double)word;
        }
        status = link_sum(ringside->link, numbers, count);
        for (uint32_t i = 0; i < count && status == STATUS_OK; i++) {
            if (!(numbers[i] >= 0 && numbers[i] <= UINT32_MAX)) {
                status = STATUS_MALFORMED; // others give what they like
                break;
            }
            uint32_t word = (uint32_t)numbers[i];
            size_t begin = i * WORD;
            memcpy(to + at + begin, &word, part - begin < WORD ? part - begin : WORD);
        }
        at += part;
    }
    free(numbers);
    return status;
}

enum status sums_gather(struct ringside *ringside, void *all, size_t own_bytes)
{
    unsigned char *parts = all;
    size_t begin = ringside->rank * own_bytes, end = begin + own_bytes;
    memset(parts, 0, begin);
    memset(parts + end, 0, ringside->job.workers * own_bytes - end);
    return sum_words(ringside, parts, ringside->job.workers * own_bytes);
}

enum status sums_check(struct ringside *ringside, const struct call_options *call, uint64_t bytes,
                       struct team_fault *ret_fault)
{
    struct team_header *headers = calloc(ringside->job.workers, sizeof(*headers));
    if (headers == NULL) {
        return STATUS_NO_MEMORY;
    }
    const struct team_header *own = &headers[ringside->rank];
    call_header(call, bytes, &headers[ringside->rank]);
    enum status status = sums_gather(ringside, headers, sizeof(*headers));
    for (uint32_t i = 0; i < ringside->job.workers && status == STATUS_OK; i++) {
        if (memcmp(&headers[i], own, sizeof(*own)) != 0) {
            *ret_fault = team_fault_of_call(i, &headers[i]);
            status = STATUS_MISMATCH;
        }
    }
    free(headers);
    return status;
}

enum status sums_broadcast(struct ringside *ringside, void *bytes, size_t size, uint32_t root)
{
    if (ringside->rank != root && size > 0) {
        memset(bytes, 0, size);
    }
    return sum_words(ringside, bytes, size);
}

/* The coordinator adds in doubles, in the order of ranks. */
static enum status add_up_floats(struct ringside *ringside, float *values, size_t count,
                                 float divisor)
{
    double *numbers = make_numbers(count);
    enum status status = numbers != NULL ? STATUS_OK : STATUS_NO_MEMORY;
    for (size_t at = 0; at < count && status == STATUS_OK; at += COUNT_MAX) {
        uint32_t part = count - at < COUNT_MAX ? (uint32_t)(count - at) : COUNT_MAX;
        for (uint32_t i = 0; i < part; i++) {
            numbers[i] = (double)values[at + i];
        }
        status = link_sum(ringside->link, numbers, part);
        for (uint32_t i = 0; i < part && status == STATUS_OK; i++) {
            values[at + i] = (float)numbers[i] / divisor;
        }
    }
    free(numbers);
    return status;
}

enum status sums_all_reduce(struct ringside *ringside, const struct call_values *values)
{
    uint32_t workers = ringside->job.workers;
    size_t bytes = values->count * fold_size(values->type);
    bool is_sum = values->operation == FOLD_SUM || values->operation == FOLD_MEAN;
    if (values->type == FOLD_FLOAT32 && is_sum) {
        return add_up_floats(ringside, values->values, values->count,
                             values->operation == FOLD_MEAN ? (float)workers : 1.0f);
    }
    unsigned char *all = malloc(workers * bytes + 1);
    const void **sources = calloc(workers, sizeof(const void *));
    enum status status = all != NULL && sources != NULL ? STATUS_OK : STATUS_NO_MEMORY;
    if (status == STATUS_OK && bytes > 0) {
        memcpy(all + ringside->rank * bytes, values->values, bytes);
        status = sums_gather(ringside, all, bytes);
    }
    for (uint32_t i = 0; status == STATUS_OK && i < workers; i++) {
        sources[i] = all + i * bytes;
    }
    if (status == STATUS_OK) {
        fold(values->type, values->operation, sources, workers, values->values, values->count);
    }
    free(sources);
    free(all);
    return status;
}
