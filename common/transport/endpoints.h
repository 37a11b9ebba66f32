/* Handles the places of data sockets: binds them for a transport, writes them for peers, and
 * chooses among a peer's endpoints.
 *
 * A place is one line: the host's id in hex, then the endpoints; then, where messages have seals
 * (seals.h), the name of who listens, in hex; then regions of memory that peers of the same host
 * may map; separated by blanks:
 *
 *     a3f09c1b5d7e2244 ipc:///proc/4711/fd/13 tcp://10.0.0.7:40113
 *         seal:00112233445566778899aabbccddeeff shm:4711:7:4194304:53d1a80c2b6f9e14
 */
#ifndef COMMON_TRANSPORT_ENDPOINTS_H
#define COMMON_TRANSPORT_ENDPOINTS_H

#include "common/base/region.h"
#include "common/base/status.h"
#include "common/security/seals.h"
#include "common/transport/transport.h"
#include "common/transport/transport_kind.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ENDPOINTS_REGION_BYTES 96
#define ENDPOINTS_SEAL_BYTES   40
#define ENDPOINTS_PLACE_BYTES \
    (2 * TRANSPORT_ENDPOINT_BYTES + ENDPOINTS_SEAL_BYTES + 2 * ENDPOINTS_REGION_BYTES + 32)
#define ENDPOINTS_HOST_BYTES 128

/* Whether --transport lets processes of one host read each other's memory. Pure. */
bool endpoints_may_share(enum transport_kind kind);

/* "0.0.0.0", "::", "*": all addresses of the host. Pure. */
bool endpoints_is_wildcard(const char *address);

/* Where to listen, as --bind says, and how to choose the address that others are told. */
struct endpoints_wish {
    const char *address;
    uint32_t port;          // 0: a free one
    const char *port_range; // ports to choose from; "": any
    const char *toward;     // endpoint of the coordinator; NULL: this process is the coordinator
};

/* Listens there by tcp, and writes the endpoint to tell others. For a wildcard that is the address
 * from which packets to the coordinator leave, or the only address of the host. Logs. */
enum status endpoints_bind_tcp(struct transport *transport, const struct endpoints_wish *wish,
                               char ret_endpoint[TRANSPORT_ENDPOINT_BYTES]);

/* Listens as --transport (auto, tcp, ipc, shm) says; auto means ipc, and tcp where the transport
 * allows it. Writes the place. Logs. */
enum status endpoints_bind(struct transport *transport, enum transport_kind kind,
                           const struct endpoints_wish *wish,
                           char ret_place[ENDPOINTS_PLACE_BYTES]);

/* Chooses the endpoint of a peer's place that --transport allows: ipc on the same host, tcp
 * otherwise. With shm, messages go by ipc. Returns STATUS_INVALID if there is none,
 * STATUS_MALFORMED if it is not a place. Pure. */
enum status endpoints_choose(const char *place, enum transport_kind kind, uint64_t own_host_id,
                             char ret_endpoint[TRANSPORT_ENDPOINT_BYTES]);

/* Adds a region to a place. Pure. */
void endpoints_add_region(char place[ENDPOINTS_PLACE_BYTES], const struct region_key *key);

/* Adds the listener's name to a place that has no regions yet, and finds it. Returns STATUS_INVALID
 * if there is none, STATUS_MALFORMED if it is not a name. Pure. */
void endpoints_add_seal(char place[ENDPOINTS_PLACE_BYTES], const unsigned char id[SEALS_ID_BYTES]);
enum status endpoints_seal(const char *place, unsigned char ret_id[SEALS_ID_BYTES]);

/* Finds the index-th region of a place. Returns STATUS_INVALID if there are fewer, STATUS_MALFORMED
 * if it is not a region. Pure. */
enum status endpoints_region(const char *place, uint32_t index, struct region_key *ret_key);

/* "tcp://HOST:PORT" -> HOST without brackets; STATUS_INVALID for any other text. Pure. */
enum status endpoints_host(const char *endpoint, char ret_host[ENDPOINTS_HOST_BYTES]);

/* Whether both lead to the same socket, as far as names and addresses tell: "tcp://localhost:9" and
 * "tcp://127.0.0.1:9" do. Asks the system for the addresses of names, which may take as long as a
 * name server does, if the ports are the same and the hosts are not. */
bool endpoints_are_same(const char *one, const char *other);

#endif
