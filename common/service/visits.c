/* Limits the connections of a web server: an idle one makes room for a new one. */
#include "common/service/visits.h"

#include <stddef.h>
#include <string.h>

void visits_init(struct visits *visits)
{
    *visits = (struct visits){.count = 0};
    for (uint32_t i = 0; i < VISITS_MAX; i++) {
        visits->list[i].fd = -1;
    }
}

static uint32_t count_from(const struct visits *visits, const struct in6_addr *address)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < VISITS_MAX; i++) {
        count += visits->list[i].fd >= 0 && !visits->list[i].is_kept &&
                 memcmp(&visits->list[i].address, address, sizeof(*address)) == 0;
    }
    return count;
}

static struct visit *make_room(struct visits *visits)
{
    struct visit *found = NULL;
    uint32_t found_count = 0;
    for (uint32_t i = 0; i < VISITS_MAX; i++) {
        struct visit *visit = &visits->list[i];
        if (visit->fd < 0) {
            return visit;
        }
        uint32_t count = visit->is_kept ? 0 : count_from(visits, &visit->address);
        if (count > found_count ||
            (count > 0 && count == found_count && visit->number < found->number)) {
            found = visit;
            found_count = count;
        }
    }
    if (found != NULL) {
        (void)shutdown(found->fd, SHUT_RDWR); // the server sees its end, and closes it
    }
    return found;
}

static void set_address(struct visit *visit, const struct sockaddr *from)
{
    if (from->sa_family == AF_INET) {
        struct sockaddr_in ipv4;
        memcpy(&ipv4, from, sizeof(ipv4));
        memcpy(&visit->address, &ipv4.sin_addr, sizeof(ipv4.sin_addr));
    } else if (from->sa_family == AF_INET6) {
        struct sockaddr_in6 ipv6;
        memcpy(&ipv6, from, sizeof(ipv6));
        visit->address = ipv6.sin6_addr;
    }
}

struct visit *visits_add(struct visits *visits, int fd, const struct sockaddr *from)
{
    struct visit *visit = make_room(visits);
    if (visit != NULL) {
        *visit = (struct visit){.fd = fd, .number = visits->count++};
        set_address(visit, from);
    }
    return visit;
}

void visits_remove(struct visit *visit, int fd)
{
    if (visit->fd == fd) {
        visit->fd = -1;
    }
}
