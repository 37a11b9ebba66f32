/* Counts who is how far from whom. */
#include "deploy/predict/sample_direct.h"

#include <stdlib.h>

/* How many of the first workers are at each distance of a host. */
static void count_workers(const struct network *network, const uint32_t *hosts, uint32_t workers,
                          uint32_t from, uint32_t *ret_counts)
{
    uint32_t at = 0;
    for (uint32_t d = 0; d < SAMPLE_DISTANCES; d++) {
        ret_counts[d] = 0;
    }
    for (uint32_t w = 0; w < workers; w++) {
        bool is_known = w > 0 && hosts[w] == hosts[w - 1];
        at = is_known ? at : network_distance(network, from, hosts[w]);
        ret_counts[at]++;
    }
}

/* For each of the sample; NULL: not wanted. Whether the sample is complete. */
static bool find_each(const struct network *network, uint32_t workers, const uint32_t *hosts,
                      uint32_t count, double *each)
{
    uint32_t all[SAMPLE_DISTANCES], own[SAMPLE_DISTANCES];
    bool is_complete = true;
    for (uint32_t w = 0; w < count; w++) {
        if (w == 0 || hosts[w] != hosts[w - 1]) {
            count_workers(network, hosts, workers, hosts[w], all);
            count_workers(network, hosts, count, hosts[w], own);
            all[0]--; // itself
            own[0]--;
        }
        for (uint32_t d = 0; d < SAMPLE_DISTANCES; d++) {
            is_complete = is_complete && (own[d] > 0 || all[d] == 0);
            if (each != NULL) {
                each[(size_t)w * SAMPLE_DISTANCES + d] = own[d] > 0 ? (double)all[d] / own[d] : 1;
            }
        }
    }
    return is_complete;
}

bool sample_direct_is_complete(const struct network *network, uint32_t workers,
                               const uint32_t *hosts, uint32_t count)
{
    return find_each(network, workers, hosts, count, NULL);
}

enum status sample_direct(const struct network *network, uint32_t workers, const uint32_t *hosts,
                          uint32_t count, double **ret_each, struct reduction *ret_reduction)
{
    double *each = calloc((size_t)count * SAMPLE_DISTANCES, sizeof(*each));
    if (each == NULL) {
        return STATUS_NO_MEMORY;
    }
    (void)find_each(network, workers, hosts, count, each);
    *ret_each = each;
    return reduction_copy(network, ret_reduction);
}
