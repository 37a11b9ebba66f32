/* Ranges of TCP ports, "40000-40100": what a firewall leaves open. Pure. */
#ifndef COMMON_TRANSPORT_PORT_RANGE_H
#define COMMON_TRANSPORT_PORT_RANGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PORT_RANGE_BYTES 16 // "65000-65535" with its terminator

/* Ports from first to last, both included. */
struct port_range {
    uint16_t first, last;
};

/* Reads "A-B" with 1 <= A <= B <= 65535. */
bool port_range_parse(const char *text, struct port_range *ret_range);

/* Writes what to listen on in the index-th attempt, from 0. An endpoint that ends in a range,
 * "tcp://ADDRESS:A-B", is tried with each of its ports in turn; any other one once, as it is.
 * Returns false if there is nothing left to try. */
bool port_range_pick(const char *endpoint, uint32_t index, char *ret_endpoint, size_t size);

/* Returns what a user can do when an endpoint's ports are in use. Static text. */
const char *port_range_advice(const char *endpoint);

/* Checks a value of an option: "" (any port) or a range. */
bool port_range_is_valid(const char *text, char *ret_why, size_t why_size);

/* Writes the port part of "tcp://ADDRESS:PORTS" for transport_bind: the port if it is not 0,
 * otherwise the range, or "*" if that is "". */
void port_range_choose(uint32_t port, const char *range, char ret_ports[PORT_RANGE_BYTES]);

#endif
