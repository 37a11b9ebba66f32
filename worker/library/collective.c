/* Collectives by the coordinator's sums. Bytes travel as sums, too: four of them are a number that
 * a double holds exactly, and all ranks but one give zeros. */
#include "worker/library/handle.h"

#include <stdlib.h>
#include <string.h>

#define COUNT_MAX 65536 // numbers of one sum

#define STATES (~(unsigned)HANDLE_BROKEN)

static double *make_numbers(uint64_t count)
{
    return calloc(count < COUNT_MAX ? count + 1 : COUNT_MAX, sizeof(double));
}

enum ringside_status ringside_all_reduce(struct ringside *ringside, float *values, uint64_t count)
{
    enum ringside_status entered = handle_enter(ringside, STATES, "ringside_all_reduce");
    if (entered != RINGSIDE_OK) {
        return entered;
    }
    double *numbers = make_numbers(count);
    enum status status = numbers != NULL ? STATUS_OK : STATUS_NO_MEMORY;
    for (uint64_t at = 0; at < count && status == STATUS_OK; at += COUNT_MAX) {
        uint32_t part = count - at < COUNT_MAX ? (uint32_t)(count - at) : COUNT_MAX;
        for (uint32_t i = 0; i < part; i++) {
            numbers[i] = (double)values[at + i];
        }
        status = link_sum(ringside->link, numbers, part);
        for (uint32_t i = 0; i < part && status == STATUS_OK; i++) {
            values[at + i] = (float)numbers[i];
        }
    }
    free(numbers);
    return handle_exit(ringside, status);
}

/* The bytes of `root`, to all. */
static enum status spread(struct ringside *ringside, unsigned char *bytes, uint64_t size,
                          uint32_t root)
{
    uint64_t words = size / sizeof(uint32_t) + 1;
    double *numbers = make_numbers(words);
    enum status status = numbers != NULL ? STATUS_OK : STATUS_NO_MEMORY;
    for (uint64_t at = 0; at < size && status == STATUS_OK;) {
        uint64_t left = size - at, most = (uint64_t)COUNT_MAX * sizeof(uint32_t);
        uint64_t part = left < most ? left : most;
        uint32_t count = (uint32_t)((part + sizeof(uint32_t) - 1) / sizeof(uint32_t));
        for (uint32_t i = 0; i < count; i++) {
            uint32_t word = 0;
            uint64_t begin = (uint64_t)i * sizeof(word);
            if (ringside->rank == root) {
                memcpy(&word, bytes + at + begin,
                       part - begin < sizeof(word) ? part - begin : sizeof(word));
            }
            numbers[i] = (double)word;
        }
        status = link_sum(ringside->link, numbers, count);
        for (uint32_t i = 0; i < count && status == STATUS_OK; i++) {
            uint32_t word = (uint32_t)numbers[i];
            uint64_t begin = (uint64_t)i * sizeof(word);
            memcpy(bytes + at + begin, &word,
                   part - begin < sizeof(word) ? part - begin : sizeof(word));
        }
        at += part;
    }
    free(numbers);
    return status;
}

enum ringside_status ringside_broadcast(struct ringside *ringside, void *bytes, uint64_t size,
                                        uint32_t root)
{
    enum ringside_status entered = handle_enter(ringside, STATES, "ringside_broadcast");
    if (entered != RINGSIDE_OK) {
        return entered;
    }
    if (root >= ringside->job.workers) {
        return handle_refuse(ringside, RINGSIDE_INVALID,
                             "ringside_broadcast: there is no rank %u among %u", root,
                             ringside->job.workers);
    }
    return handle_exit(ringside, spread(ringside, bytes, size, root));
}

enum ringside_status ringside_all_gather(struct ringside *ringside, const void *own,
                                         uint64_t own_bytes, void *ret_all)
{
    enum ringside_status entered = handle_enter(ringside, STATES, "ringside_all_gather");
    if (entered != RINGSIDE_OK) {
        return entered;
    }
    unsigned char *all = ret_all;
    enum status status = STATUS_OK;
    if (own_bytes > 0) {
        memmove(all + ringside->rank * own_bytes, own, own_bytes);
    }
    for (uint32_t rank = 0; rank < ringside->job.workers && status == STATUS_OK; rank++) {
        status = spread(ringside, all + rank * own_bytes, own_bytes, rank);
    }
    return handle_exit(ringside, status);
}

enum ringside_status ringside_barrier(struct ringside *ringside)
{
    double nothing = 0;
    enum ringside_status entered = handle_enter(ringside, STATES, "ringside_barrier");
    return entered == RINGSIDE_OK ? handle_exit(ringside, link_sum(ringside->link, &nothing, 1))
                                  : entered;
}
