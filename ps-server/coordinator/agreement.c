/* Compares the layouts, samples and digests of workers. */
#include "ps-server/coordinator/agreement.h"

#include <stdio.h>
#include <string.h>

bool agreement_check(const struct coordinator *coordinator, const struct message *message,
                     char *ret_why, size_t why_size)
{
    const struct layout *layout = message->layout;
    const struct layout *first = &coordinator->layout;
    if (layout->digest != first->digest || layout->value_count != first->value_count ||
        layout->bucket_count != first->bucket_count ||
        memcmp(layout->buckets, first->buckets, layout->bucket_count * sizeof(struct span)) != 0) {
        snprintf(ret_why, why_size,
                 "its model differs: layout digest %016llx with %llu parameters, the others have "
                 "%016llx with %llu",
                 (unsigned long long)layout->digest, (unsigned long long)layout->value_count,
                 (unsigned long long)first->digest, (unsigned long long)first->value_count);
        return false;
    }
    if (message->member->train_samples != coordinator->train_samples ||
        message->member->test_samples != coordinator->test_samples) {
        snprintf(ret_why, why_size,
                 "its data differ: %llu training and %llu test samples, the others have %llu and "
                 "%llu",
                 (unsigned long long)message->member->train_samples,
                 (unsigned long long)message->member->test_samples,
                 (unsigned long long)coordinator->train_samples,
                 (unsigned long long)coordinator->test_samples);
        return false;
    }
    if (message->member->data_digest != coordinator->data_digest) {
        snprintf(ret_why, why_size,
                 "its data differ: as many samples as the others have, but not the same");
        return false;
    }
    for (uint32_t i = 0; i < coordinator->membership.worker_count; i++) {
        const struct slot *slot = &coordinator->membership.workers[i];
        if (slot->state == SLOT_READY &&
            strcmp(slot->digest, message->member->params_digest) != 0) {
            snprintf(ret_why, why_size, "its first parameters differ from those of worker %u", i);
            return false;
        }
    }
    return true;
}
