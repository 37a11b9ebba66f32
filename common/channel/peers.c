/* Finds what a channel keeps about a peer. */
#include "common/channel/peers.h"

#include <stdlib.h>

void peers_finish(struct peers *peers)
{
    for (uint32_t i = 0; i < peers->count; i++) {
        sharing_forget(&peers->list[i]->sharing);
        mail_forget(&peers->list[i]->mail);
        free(peers->list[i]);
    }
    free(peers->list);
    *peers = (struct peers){0};
}

struct peer *peers_find(const struct peers *peers, uint64_t number)
{
    for (uint32_t i = 0; i < peers->count; i++) {
        if (peers->list[i]->number == number) {
            return peers->list[i];
        }
    }
    return NULL;
}

struct peer *peers_find_or_add(struct peers *peers, uint64_t number)
{
    struct peer *found = peers_find(peers, number);
    if (found != NULL) {
        return found;
    }
    struct peer *added = calloc(1, sizeof(*added));
    struct peer **list = realloc(peers->list, ((size_t)peers->count + 1) * sizeof(struct peer *));
    if (list != NULL) {
        peers->list = list;
    }
    if (added == NULL || list == NULL) {
        free(added);
        return NULL;
    }
    added->number = added->mail.peer = number;
    list[peers->count++] = added;
    return added;
}
