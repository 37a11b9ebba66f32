/* Maps closed descriptors to the peers that were behind them. */
#include "common/base/departures.h"

#include <stdlib.h>
#include <string.h>

#define SIZE_MIN        64
#define DESCRIPTORS_MAX (1 << 20) // Linux allows a process no more by itself

void departures_finish(struct departures *departures)
{
    free(departures->peers);
    free(departures->gone);
    *departures = (struct departures){0};
}

static bool has(const struct departures *departures, int fd)
{
    return fd >= 0 && (uint32_t)fd < departures->size;
}

bool departures_know(const struct departures *departures, int fd, uint64_t peer)
{
    return has(departures, fd) && departures->peers[fd] == peer;
}

static bool grow(uint64_t **list, uint32_t before, uint32_t size)
{
    uint64_t *larger = realloc(*list, size * sizeof(*larger));
    if (larger == NULL) {
        return false;
    }
    memset(larger + before, 0, (size - before) * sizeof(*larger));
    *list = larger;
    return true;
}

static bool make_room(struct departures *departures, int fd)
{
    uint32_t size = departures->size > 0 ? departures->size : SIZE_MIN;
    while (size <= (uint32_t)fd) {
        size *= 2;
    }
    if (size == departures->size) {
        return true;
    }
    if (!grow(&departures->peers, departures->size, size) ||
        !grow(&departures->gone, departures->size, size)) {
        return false;
    }
    departures->size = size;
    return true;
}

void departures_note(struct departures *departures, int fd, uint64_t peer)
{
    if (fd >= 0 && fd < DESCRIPTORS_MAX && make_room(departures, fd)) {
        departures->peers[fd] = peer;
    }
}

void departures_close(struct departures *departures, int fd)
{
    if (!has(departures, fd) || departures->peers[fd] == 0) {
        return;
    }
    if (departures->gone_count < departures->size) {
        departures->gone[departures->gone_count++] = departures->peers[fd];
    }
    departures->peers[fd] = 0;
}

void departures_lose(struct departures *departures, uint64_t peer)
{
    for (uint32_t fd = 0; fd < departures->size; fd++) {
        if (departures->peers[fd] == peer) {
            departures_close(departures, (int)fd);
        }
    }
}

bool departures_take(struct departures *departures, uint64_t *ret_peer)
{
    if (departures->gone_count == 0) {
        return false;
    }
    *ret_peer = departures->gone[--departures->gone_count];
    return true;
}
