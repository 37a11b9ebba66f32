/* Finds the address of this host that faces another one. */
#include "common/transport/local_address.h"

#include "common/base/log.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static bool format(const struct sockaddr *address, char ret_text[LOCAL_ADDRESS_BYTES])
{
    size_t size =
        address->sa_family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);
    return getnameinfo(address, (socklen_t)size, ret_text, LOCAL_ADDRESS_BYTES, NULL, 0,
                       NI_NUMERICHOST) == 0;
}

/* Asks the kernel for the route to an address. Sends no packet. */
static bool find_source(const struct addrinfo *target, char ret_address[LOCAL_ADDRESS_BYTES])
{
    struct sockaddr_storage source = {0};
    socklen_t size = sizeof(source);
    int probe = socket(target->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    bool is_found = probe >= 0 && connect(probe, target->ai_addr, target->ai_addrlen) == 0 &&
                    getsockname(probe, (struct sockaddr *)&source, &size) == 0 &&
                    format((struct sockaddr *)&source, ret_address);
    if (probe >= 0) {
        close(probe);
    }
    return is_found;
}

enum status local_address_toward(const char *host, const char *port,
                                 char ret_address[LOCAL_ADDRESS_BYTES])
{
    struct addrinfo hints = {.ai_socktype = SOCK_DGRAM}, *targets = NULL;
    bool is_found = false;
    int error = getaddrinfo(host, port, &hints, &targets);
    for (const struct addrinfo *at = targets; error == 0 && at != NULL && !is_found;
         at = at->ai_next) {
        is_found = find_source(at, ret_address);
    }
    if (targets != NULL) {
        freeaddrinfo(targets);
    }
    if (!is_found) {
        log_error("cannot tell which address of this host %s can reach; give one with --bind",
                  host);
        return STATUS_INVALID;
    }
    return STATUS_OK;
}

/* Whether other hosts could reach an address: its interface is up, and it is not link-local. */
static bool is_candidate(const struct ifaddrs *entry)
{
    if (entry->ifa_addr == NULL || (entry->ifa_flags & IFF_UP) == 0 ||
        (entry->ifa_flags & IFF_LOOPBACK) != 0) {
        return false;
    }
    return entry->ifa_addr->sa_family == AF_INET;
}

enum status local_address_only(char ret_address[LOCAL_ADDRESS_BYTES])
{
    struct ifaddrs *entries = NULL;
    char list[512] = "", address[LOCAL_ADDRESS_BYTES] = "127.0.0.1", text[LOCAL_ADDRESS_BYTES];
    unsigned count = 0;
    if (getifaddrs(&entries) != 0) {
        log_error("cannot list the addresses of this host: %m; give one with --bind");
        return STATUS_IO;
    }
    for (const struct ifaddrs *at = entries; at != NULL; at = at->ifa_next) {
        if (is_candidate(at) && format(at->ifa_addr, text)) {
            size_t used = strlen(list);
            snprintf(list + used, sizeof(list) - used, "%s%s (%s)", count == 0 ? "" : ", ", text,
                     at->ifa_name);
            memcpy(address, text, sizeof(text));
            count++;
        }
    }
    freeifaddrs(entries);
    if (count > 1) {
        log_error(
            "this host has several addresses, and others must be told one: give --bind one of "
            "%s",
            list);
        return STATUS_INVALID;
    }
    memcpy(ret_address, address, sizeof(address));
    return STATUS_OK;
}

bool local_address_interface(const char *address, char ret_name[LOCAL_ADDRESS_BYTES])
{
    struct ifaddrs *entries = NULL;
    char text[LOCAL_ADDRESS_BYTES];
    bool is_found = false;
    if (getifaddrs(&entries) != 0) {
        return false;
    }
    for (const struct ifaddrs *at = entries; at != NULL && !is_found; at = at->ifa_next) {
        if (at->ifa_addr != NULL && format(at->ifa_addr, text) && strcmp(text, address) == 0) {
            snprintf(ret_name, LOCAL_ADDRESS_BYTES, "%s", at->ifa_name);
            is_found = true;
        }
    }
    freeifaddrs(entries);
    return is_found;
}
