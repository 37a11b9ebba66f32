/* Chooses the address of this host to tell others, where a socket listens on all of them. */
#ifndef COMMON_TRANSPORT_LOCAL_ADDRESS_H
#define COMMON_TRANSPORT_LOCAL_ADDRESS_H

#include "common/base/status.h"

#include <stdbool.h>

#define LOCAL_ADDRESS_BYTES 128

/* Finds the address that packets to this host and port would leave from. Logs. */
enum status local_address_toward(const char *host, const char *port,
                                 char ret_address[LOCAL_ADDRESS_BYTES]);

/* Finds the only address outside the loopback interface, or the loopback address if there is none.
 * Returns STATUS_INVALID if there are several, because only the user knows which one others can
 * reach. Logs. */
enum status local_address_only(char ret_address[LOCAL_ADDRESS_BYTES]);

/* The name of the interface that has this address; false if none has. */
bool local_address_interface(const char *address, char ret_name[LOCAL_ADDRESS_BYTES]);

#endif
