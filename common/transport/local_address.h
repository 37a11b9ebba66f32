/* Which address of this host to tell others, where a socket listens on all of them. */
#ifndef COMMON_TRANSPORT_LOCAL_ADDRESS_H
#define COMMON_TRANSPORT_LOCAL_ADDRESS_H

#include "common/base/status.h"

#define LOCAL_ADDRESS_BYTES 128

/* The one that packets to this host and port would come from. Logs. */
enum status local_address_toward(const char *host, const char *port,
                                 char ret_address[LOCAL_ADDRESS_BYTES]);

/* The only one off the loopback interface; that of loopback if there is none. STATUS_INVALID if
 * there are several: only the user can tell which the others reach. Logs. */
enum status local_address_only(char ret_address[LOCAL_ADDRESS_BYTES]);

#endif
