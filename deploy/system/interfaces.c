/* Finds and chooses network interfaces. */
#include "deploy/system/interfaces.h"

#include "common/base/log.h"
#include "common/base/number.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define DISCARD_PORT 9 // nothing is sent to it

/* An IPv4 network: "10.0.0.0/8". */
struct network {
    uint32_t address, mask; // in the host's byte order
};

static bool read_address(const char *text, uint32_t *ret_address)
{
    struct in_addr address;
    if (inet_pton(AF_INET, text, &address) != 1) {
        return false;
    }
    *ret_address = ntohl(address.s_addr);
    return true;
}

static bool read_network(const char *item, size_t size, struct network *ret_network)
{
    char address[INTERFACE_ADDRESS_BYTES];
    uint64_t bits;
    const char *slash = memchr(item, '/', size);
    size_t head = slash != NULL ? (size_t)(slash - item) : size;
    if (slash == NULL || head >= sizeof(address) ||
        !number_whole(slash + 1, size - head - 1, 32, &bits)) {
        return false;
    }
    memcpy(address, item, head);
    address[head] = '\0';
    ret_network->mask = bits == 0 ? 0 : UINT32_MAX << (32 - bits);
    return read_address(address, &ret_network->address);
}

bool address_is_loopback(const char *address)
{
    uint32_t bits;
    return read_address(address, &bits) && bits >> 24 == 127;
}

enum status interfaces_find(struct interfaces *ret_interfaces)
{
    struct ifaddrs *all;
    if (getifaddrs(&all) != 0) {
        log_error("cannot list the network interfaces: %m");
        return STATUS_IO;
    }
    ret_interfaces->count = 0;
    for (const struct ifaddrs *at = all; at != NULL && ret_interfaces->count < INTERFACES_MAX;
         at = at->ifa_next) {
        if (at->ifa_addr == NULL || at->ifa_addr->sa_family != AF_INET ||
            (at->ifa_flags & IFF_UP) == 0) {
            continue;
        }
        struct sockaddr_in address;
        struct interface *interface = &ret_interfaces->list[ret_interfaces->count++];
        memcpy(&address, at->ifa_addr, sizeof(address));
        snprintf(interface->name, sizeof(interface->name), "%s", at->ifa_name);
        inet_ntop(AF_INET, &address.sin_addr, interface->address, sizeof(interface->address));
    }
    freeifaddrs(all);
    return STATUS_OK;
}

bool interfaces_wanted_is_valid(const char *wanted, char *ret_why, size_t why_size)
{
    struct network network;
    for (const char *at = wanted; wanted[0] != '\0'; at++) {
        size_t size = strcspn(at, ",");
        bool is_network = memchr(at, '/', size) != NULL;
        if (size == 0 || (is_network && !read_network(at, size, &network)) ||
            (!is_network && size >= INTERFACE_NAME_BYTES)) {
            snprintf(ret_why, why_size,
                     "'%.*s' is neither an interface such as eth0 nor a network such as 10.0.0.0/8",
                     (int)(size < 60 ? size : 60), at);
            return false;
        }
        at += size;
        if (*at == '\0') {
            break;
        }
    }
    return true;
}

static bool has_name(const struct interface *interface, const char *item, size_t size)
{
    return strlen(interface->name) == size && memcmp(interface->name, item, size) == 0;
}

static bool is_in(const struct interface *interface, const struct network *network)
{
    uint32_t address;
    return read_address(interface->address, &address) &&
           (address & network->mask) == (network->address & network->mask);
}

static const struct interface *choose_item(const struct interfaces *interfaces, const char *item,
                                           size_t size)
{
    struct network network;
    bool is_network = read_network(item, size, &network);
    for (size_t i = 0; i < interfaces->count; i++) {
        const struct interface *interface = &interfaces->list[i];
        if (is_network ? is_in(interface, &network) : has_name(interface, item, size)) {
            return interface;
        }
    }
    return NULL;
}

const struct interface *interfaces_choose(const struct interfaces *interfaces, const char *wanted)
{
    const struct interface *chosen = NULL;
    for (const char *at = wanted; chosen == NULL && *at != '\0';) {
        size_t size = strcspn(at, ",");
        chosen = choose_item(interfaces, at, size);
        at += size + (at[size] == ',');
    }
    return chosen;
}

const struct interface *interfaces_with(const struct interfaces *interfaces, const char *address)
{
    for (size_t i = 0; i < interfaces->count; i++) {
        if (strcmp(interfaces->list[i].address, address) == 0) {
            return &interfaces->list[i];
        }
    }
    return NULL;
}

const struct interface *interfaces_first(const struct interfaces *interfaces)
{
    for (size_t i = 0; i < interfaces->count; i++) {
        if (!address_is_loopback(interfaces->list[i].address)) {
            return &interfaces->list[i];
        }
    }
    return NULL;
}

void interfaces_describe(const struct interfaces *interfaces, char *ret_text, size_t text_size)
{
    size_t used = 0;
    ret_text[0] = '\0';
    for (size_t i = 0; i < interfaces->count && used < text_size; i++) {
        int wrote = snprintf(ret_text + used, text_size - used, "%s%s %s", i > 0 ? ", " : "",
                             interfaces->list[i].name, interfaces->list[i].address);
        used += wrote > 0 ? (size_t)wrote : 0;
    }
}

enum status interfaces_route(const char *address, char ret_own[INTERFACE_ADDRESS_BYTES])
{
    struct sockaddr_in peer = {.sin_family = AF_INET, .sin_port = htons(DISCARD_PORT)}, own;
    socklen_t size = sizeof(own);
    if (inet_pton(AF_INET, address, &peer.sin_addr) != 1) {
        return STATUS_INVALID;
    }
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    // A datagram socket that is connected has its own address chosen by the route.
    bool is_known = fd >= 0 && connect(fd, (const struct sockaddr *)&peer, sizeof(peer)) == 0 &&
                    getsockname(fd, (struct sockaddr *)&own, &size) == 0 &&
                    inet_ntop(AF_INET, &own.sin_addr, ret_own, INTERFACE_ADDRESS_BYTES) != NULL;
    if (fd >= 0) {
        close(fd);
    }
    return is_known ? STATUS_OK : STATUS_UNREACHABLE;
}
