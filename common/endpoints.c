/* Places: bound, told, chosen. */
#include "common/endpoints.h"

#include "common/port_range.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REGION_PREFIX "shm:"

bool endpoints_may_share(const char *kind)
{
    return strcmp(kind, "auto") == 0 || strcmp(kind, "shm") == 0;
}

/* All processes have to be on one host. */
static bool is_host_only(const char *kind)
{
    return strcmp(kind, "ipc") == 0 || strcmp(kind, "shm") == 0;
}

enum status endpoints_bind(struct transport *transport, const char *kind, const char *address,
                           const char *port_range, char ret_place[ENDPOINTS_PLACE_BYTES])
{
    char ipc[TRANSPORT_ENDPOINT_BYTES] = "", tcp[TRANSPORT_ENDPOINT_BYTES] = "";
    bool wants_ipc = strcmp(kind, "tcp") != 0;
    bool wants_tcp = !is_host_only(kind);
    if (wants_ipc) {
        enum status status = transport_bind(transport, "ipc://*", ipc);
        if (status != STATUS_OK) {
            return status;
        }
    }
    if (wants_tcp) {
        char endpoint[TRANSPORT_ENDPOINT_BYTES], ports[PORT_RANGE_BYTES];
        bool is_ipv6 = strchr(address, ':') != NULL;
        port_range_choose(0, port_range, ports);
        snprintf(endpoint, sizeof(endpoint), "tcp://%s%s%s:%s", is_ipv6 ? "[" : "", address,
                 is_ipv6 ? "]" : "", ports);
        enum status status = transport_bind(transport, endpoint, tcp);
        if (status != STATUS_OK) {
            return status;
        }
    }
    snprintf(ret_place, ENDPOINTS_PLACE_BYTES, "%016llx%s%s%s%s",
             (unsigned long long)transport_host_id(), wants_ipc ? " " : "", ipc,
             wants_tcp ? " " : "", tcp);
    return STATUS_OK;
}

/* Reads the host id; *ret_rest points behind it. */
static bool parse_host_id(const char *place, uint64_t *ret_id, const char **ret_rest)
{
    uint64_t id = 0;
    const char *at = place;
    for (; *at != '\0' && *at != ' '; at++) {
        const char *digits = "0123456789abcdef";
        const char *digit = strchr(digits, *at);
        if (digit == NULL || at - place >= 16) {
            return false;
        }
        id = id << 4 | (uint64_t)(digit - digits);
    }
    *ret_id = id;
    *ret_rest = at;
    return at - place == 16;
}

enum status endpoints_choose(const char *place, const char *kind, uint64_t own_host_id,
                             char ret_endpoint[TRANSPORT_ENDPOINT_BYTES])
{
    uint64_t host_id;
    const char *at;
    if (!parse_host_id(place, &host_id, &at)) {
        return STATUS_MALFORMED;
    }
    bool may_ipc = strcmp(kind, "tcp") != 0 && host_id == own_host_id;
    bool may_tcp = !is_host_only(kind);
    // ipc comes first in a place, so the first that is allowed is the best.
    while (*at == ' ') {
        at++;
        size_t size = strcspn(at, " ");
        bool is_ipc = strncmp(at, "ipc://", 6) == 0;
        bool is_tcp = strncmp(at, "tcp://", 6) == 0;
        if (strncmp(at, REGION_PREFIX, strlen(REGION_PREFIX)) == 0) {
            break; // behind the endpoints
        }
        if (size == 0 || size >= TRANSPORT_ENDPOINT_BYTES || (!is_ipc && !is_tcp)) {
            return STATUS_MALFORMED;
        }
        if ((is_ipc && may_ipc) || (is_tcp && may_tcp)) {
            memcpy(ret_endpoint, at, size);
            ret_endpoint[size] = '\0';
            return STATUS_OK;
        }
        at += size;
    }
    return *at == '\0' || *at == REGION_PREFIX[0] ? STATUS_INVALID : STATUS_MALFORMED;
}

void endpoints_add_region(char place[ENDPOINTS_PLACE_BYTES], const struct region_key *key)
{
    size_t used = strlen(place);
    int wrote =
        snprintf(place + used, ENDPOINTS_PLACE_BYTES - used,
                 " " REGION_PREFIX "%llu:%u:%llu:%016llx", (unsigned long long)key->process_id,
                 key->descriptor, (unsigned long long)key->size, (unsigned long long)key->nonce);
    assert(wrote > 0 && wrote < ENDPOINTS_REGION_BYTES &&
           used + (size_t)wrote < ENDPOINTS_PLACE_BYTES);
}

/* Reads "PID:FD:SIZE:NONCE", up to a blank or the end. */
static enum status parse_region(const char *text, struct region_key *ret_key)
{
    unsigned long long numbers[4];
    const char *at = text;
    for (unsigned i = 0; i < 4; i++) {
        char *end;
        if (!isxdigit((unsigned char)*at)) {
            return STATUS_MALFORMED;
        }
        errno = 0;
        numbers[i] = strtoull(at, &end, i == 3 ? 16 : 10);
        bool ends = i == 3 ? *end == '\0' || *end == ' ' : *end == ':';
        if (!ends || errno != 0) {
            return STATUS_MALFORMED;
        }
        at = end + 1;
    }
    if (numbers[1] > INT_MAX) {
        return STATUS_MALFORMED;
    }
    *ret_key = (struct region_key){.process_id = numbers[0],
                                   .descriptor = (uint32_t)numbers[1],
                                   .size = numbers[2],
                                   .nonce = numbers[3]};
    return STATUS_OK;
}

enum status endpoints_region(const char *place, uint32_t index, struct region_key *ret_key)
{
    const char *at = strstr(place, " " REGION_PREFIX);
    for (uint32_t i = 0; at != NULL && i < index; i++) {
        at = strstr(at + 1, " " REGION_PREFIX);
    }
    return at != NULL ? parse_region(at + strlen(" " REGION_PREFIX), ret_key) : STATUS_INVALID;
}

enum status endpoints_host(const char *endpoint, char ret_host[ENDPOINTS_HOST_BYTES])
{
    const char *prefix = "tcp://";
    if (strncmp(endpoint, prefix, strlen(prefix)) != 0) {
        return STATUS_INVALID;
    }
    const char *host = endpoint + strlen(prefix);
    const char *colon = strrchr(host, ':');
    if (colon == NULL || colon == host || colon[1] == '\0') {
        return STATUS_INVALID;
    }
    size_t size = (size_t)(colon - host);
    if (host[0] == '[' && host[size - 1] == ']' && size > 2) {
        host++;
        size -= 2;
    }
    if (size >= ENDPOINTS_HOST_BYTES) {
        return STATUS_INVALID;
    }
    memcpy(ret_host, host, size);
    ret_host[size] = '\0';
    return STATUS_OK;
}
