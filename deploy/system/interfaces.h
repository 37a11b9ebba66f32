/* Network interfaces of a host, and which of them a job uses. IPv4, as the transport. */
#ifndef DEPLOY_SYSTEM_INTERFACES_H
#define DEPLOY_SYSTEM_INTERFACES_H

#include "common/base/status.h"

#include <stdbool.h>
#include <stddef.h>

#define INTERFACES_MAX          64
#define INTERFACE_NAME_BYTES    32
#define INTERFACE_ADDRESS_BYTES 16 // "255.255.255.255" with its terminator

/* One address of an interface that is up. */
struct interface {
    char name[INTERFACE_NAME_BYTES];
    char address[INTERFACE_ADDRESS_BYTES];
};

struct interfaces {
    struct interface list[INTERFACES_MAX];
    size_t count;
};

/* Those of this host. Logs. */
enum status interfaces_find(struct interfaces *ret_interfaces);

/* For tables of options: "" or NAME and CIDR items, separated by commas. Pure. */
bool interfaces_wanted_is_valid(const char *wanted, char *ret_why, size_t why_size);

/* The first item of `wanted` ("ib0,10.0.0.0/8") that the host has. NULL: none. Borrowed. Pure. */
const struct interface *interfaces_choose(const struct interfaces *interfaces, const char *wanted);

/* The interface with an address. NULL: none has it. Pure. */
const struct interface *interfaces_with(const struct interfaces *interfaces, const char *address);

/* The first one that is not loopback. NULL: there is none. Pure. */
const struct interface *interfaces_first(const struct interfaces *interfaces);

/* "lo 127.0.0.1, eth0 10.0.0.7": what a message tells. Cut at text_size. Pure. */
void interfaces_describe(const struct interfaces *interfaces, char *ret_text, size_t text_size);

bool address_is_loopback(const char *address); // pure

/* The address of ours that packets to `address` leave from: nothing is sent. STATUS_UNREACHABLE if
 * there is no way to it. */
enum status interfaces_route(const char *address, char ret_own[INTERFACE_ADDRESS_BYTES]);

#endif
