/* Places of servers and workers, as lines. */
#include "ps-server/topology.h"

#include "common/endpoints.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum all_reduce topology_choose(const struct job *job, const struct membership *membership)
{
    enum all_reduce asked;
    if (all_reduce_find(job->all_reduce, &asked)) {
        return asked;
    }
    bool can_share = endpoints_may_share(job->transport) && membership->worker_count > 1 &&
                     membership->worker_count <= ALL_REDUCE_DIRECT_MAX;
    for (uint32_t i = 1; i < membership->worker_count && can_share; i++) {
        can_share = membership->workers[i].host_id == membership->workers[0].host_id;
    }
    return can_share ? ALL_REDUCE_DIRECT : ALL_REDUCE_RING;
}

/* False, and the text as it was, if it does not fit. */
static bool add_line(const char *line, char *text, size_t text_size)
{
    size_t used = strlen(text);
    int wrote = snprintf(text + used, text_size - used, "%s\n", line);
    if (wrote < 0 || (size_t)wrote >= text_size - used) {
        text[used] = '\0';
        return false;
    }
    return true;
}

void topology_places(const struct job *job, const struct membership *membership,
                     enum all_reduce algorithm, uint32_t rank, char *ret_text, size_t text_size)
{
    bool fits = true;
    ret_text[0] = '\0';
    for (uint32_t i = 0; i < membership->server_count; i++) {
        fits = fits && add_line(membership->servers[i].place, ret_text, text_size);
    }
    if (job_has_mode(job, "ring") && algorithm == ALL_REDUCE_DIRECT) {
        for (uint32_t i = 0; i < membership->worker_count; i++) {
            fits = fits && add_line(membership->workers[i].place, ret_text, text_size);
        }
    } else if (job_has_mode(job, "ring")) {
        const struct slot *next = &membership->workers[(rank + 1) % membership->worker_count];
        fits = fits && add_line(next->place, ret_text, text_size);
    }
    if (!fits) {
        ret_text[0] = '\0';
    }
}
