/* Binds endpoints, writes them as a place, and chooses one from a peer's place. */
#include "common/transport/endpoints.h"

#include "common/base/log.h"
#include "common/transport/local_address.h"
#include "common/transport/port_range.h"

#include <sodium.h>

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define REGION_PREFIX "shm:"
#define SEAL_PREFIX   "seal:"

bool endpoints_may_share(enum transport_kind kind)
{
    return kind == TRANSPORT_AUTO || kind == TRANSPORT_SHM;
}

/* Whether all processes have to be on one host. */
static bool is_host_only(enum transport_kind kind)
{
    return kind == TRANSPORT_IPC || kind == TRANSPORT_SHM;
}

bool endpoints_is_wildcard(const char *address)
{
    return strcmp(address, "*") == 0 || strcmp(address, "0.0.0.0") == 0 ||
           strcmp(address, "::") == 0;
}

/* "tcp://HOST:PORT", or with brackets around numbers of IPv6. */
static enum status format_tcp(const char *host, const char *port,
                              char ret_endpoint[TRANSPORT_ENDPOINT_BYTES])
{
    bool is_ipv6 = strchr(host, ':') != NULL;
    int wrote = snprintf(ret_endpoint, TRANSPORT_ENDPOINT_BYTES, "tcp://%s%s%s:%s",
                         is_ipv6 ? "[" : "", host, is_ipv6 ? "]" : "", port);
    return wrote > 0 && wrote < TRANSPORT_ENDPOINT_BYTES ? STATUS_OK : STATUS_INVALID;
}

/* Finds an address of this host to tell others. */
static enum status find_own_address(const char *toward, char ret_address[LOCAL_ADDRESS_BYTES])
{
    char host[ENDPOINTS_HOST_BYTES];
    if (toward == NULL) {
        return local_address_only(ret_address);
    }
    if (endpoints_host(toward, host) != STATUS_OK) {
        log_error("cannot tell which address of this host others can reach; give one with --bind");
        return STATUS_INVALID;
    }
    return local_address_toward(host, strrchr(toward, ':') + 1, ret_address);
}

enum status endpoints_bind_tcp(struct transport *transport, const struct endpoints_wish *wish,
                               char ret_endpoint[TRANSPORT_ENDPOINT_BYTES])
{
    char endpoint[TRANSPORT_ENDPOINT_BYTES], ports[PORT_RANGE_BYTES], address[LOCAL_ADDRESS_BYTES];
    port_range_choose(wish->port, wish->port_range, ports);
    if (format_tcp(wish->address, ports, endpoint) != STATUS_OK) {
        log_error("cannot listen at %s: this is not an address", wish->address);
        return STATUS_INVALID;
    }
    bool is_wildcard = endpoints_is_wildcard(wish->address);
    // This is known before any peer can connect.
    enum status status = is_wildcard ? find_own_address(wish->toward, address) : STATUS_OK;
    if (status == STATUS_OK) {
        status = transport_bind(transport, endpoint, ret_endpoint);
    }
    if (status != STATUS_OK || !is_wildcard) {
        return status;
    }
    snprintf(ports, sizeof(ports), "%s", strrchr(ret_endpoint, ':') + 1);
    return format_tcp(address, ports, ret_endpoint);
}

enum status endpoints_bind(struct transport *transport, enum transport_kind kind,
                           const struct endpoints_wish *wish, char ret_place[ENDPOINTS_PLACE_BYTES])
{
    char ipc[TRANSPORT_ENDPOINT_BYTES] = "", tcp[TRANSPORT_ENDPOINT_BYTES] = "";
    bool wants_ipc = kind != TRANSPORT_TCP;
    // With --transport auto there is no tcp where every user of the host could connect.
    bool wants_tcp = !is_host_only(kind) && (!wants_ipc || transport_allows_tcp(transport));
    if (wants_ipc) {
        enum status status = transport_bind(transport, "ipc://*", ipc);
        if (status != STATUS_OK) {
            return status;
        }
    }
    if (wants_tcp) {
        enum status status = endpoints_bind_tcp(transport, wish, tcp);
        if (status != STATUS_OK) {
            return status;
        }
    }
    snprintf(ret_place, ENDPOINTS_PLACE_BYTES, "%016llx%s%s%s%s",
             (unsigned long long)transport_host_id(), wants_ipc ? " " : "", ipc,
             wants_tcp ? " " : "", tcp);
    return STATUS_OK;
}

/* Reads the host id. *ret_rest points to what follows. */
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

static bool is_behind_endpoints(const char *at)
{
    return strncmp(at, REGION_PREFIX, strlen(REGION_PREFIX)) == 0 ||
           strncmp(at, SEAL_PREFIX, strlen(SEAL_PREFIX)) == 0;
}

enum status endpoints_choose(const char *place, enum transport_kind kind, uint64_t own_host_id,
                             char ret_endpoint[TRANSPORT_ENDPOINT_BYTES])
{
    uint64_t host_id;
    const char *at;
    if (!parse_host_id(place, &host_id, &at)) {
        return STATUS_MALFORMED;
    }
    bool may_ipc = kind != TRANSPORT_TCP && host_id == own_host_id;
    bool may_tcp = !is_host_only(kind);
    // ipc comes first in a place, so the first that is allowed is the best.
    while (*at == ' ') {
        at++;
        size_t size = strcspn(at, " ");
        bool is_ipc = strncmp(at, "ipc://", 6) == 0;
        bool is_tcp = strncmp(at, "tcp://", 6) == 0;
        if (is_behind_endpoints(at)) {
            return STATUS_INVALID;
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
    return *at == '\0' ? STATUS_INVALID : STATUS_MALFORMED;
}

void endpoints_add_seal(char place[ENDPOINTS_PLACE_BYTES], const unsigned char id[SEALS_ID_BYTES])
{
    char text[2 * SEALS_ID_BYTES + 1];
    size_t used = strlen(place);
    sodium_bin2hex(text, sizeof(text), id, SEALS_ID_BYTES);
    int wrote = snprintf(place + used, ENDPOINTS_PLACE_BYTES - used, " " SEAL_PREFIX "%s", text);
    assert(wrote > 0 && wrote < ENDPOINTS_SEAL_BYTES &&
           used + (size_t)wrote < ENDPOINTS_PLACE_BYTES);
}

enum status endpoints_seal(const char *place, unsigned char ret_id[SEALS_ID_BYTES])
{
    const char *at = strstr(place, " " SEAL_PREFIX), *end;
    size_t size;
    if (at == NULL) {
        return STATUS_INVALID;
    }
    at += strlen(" " SEAL_PREFIX);
    bool is_name =
        sodium_hex2bin(ret_id, SEALS_ID_BYTES, at, strcspn(at, " "), NULL, &size, &end) == 0 &&
        size == SEALS_ID_BYTES && (*end == ' ' || *end == '\0');
    return is_name ? STATUS_OK : STATUS_MALFORMED;
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

/* Whether the two names of hosts have an address in common. */
static bool have_same_address(const char *one, const char *other)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    struct addrinfo *ours = NULL, *theirs = NULL;
    bool is_shared = false;
    if (getaddrinfo(one, NULL, &hints, &ours) == 0 &&
        getaddrinfo(other, NULL, &hints, &theirs) == 0) {
        for (const struct addrinfo *a = ours; a != NULL; a = a->ai_next) {
            for (const struct addrinfo *b = theirs; b != NULL; b = b->ai_next) {
                is_shared |= a->ai_addrlen == b->ai_addrlen &&
                             memcmp(a->ai_addr, b->ai_addr, a->ai_addrlen) == 0;
            }
        }
    }
    struct addrinfo *const lists[] = {ours, theirs};
    for (size_t i = 0; i < 2; i++) {
        if (lists[i] != NULL) {
            freeaddrinfo(lists[i]);
        }
    }
    return is_shared;
}

bool endpoints_are_same(const char *one, const char *other)
{
    char host[ENDPOINTS_HOST_BYTES], other_host[ENDPOINTS_HOST_BYTES];
    if (strcmp(one, other) == 0) {
        return true;
    }
    return endpoints_host(one, host) == STATUS_OK &&
           endpoints_host(other, other_host) == STATUS_OK &&
           strcmp(strrchr(one, ':'), strrchr(other, ':')) == 0 &&
           have_same_address(host, other_host);
}
