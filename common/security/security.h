/* How this process guards its connections: the options that say so, and what follows from them.
 *
 * tcp connections need keys (CurveZMQ; see keys.h) unless --insecure was said, on the loopback
 * interface, too: any user of the host can connect there. ipc and shared memory stay on the host,
 * and in the hands of one user: the kernel says whose process it is (see door.h, region.h). */
#ifndef COMMON_SECURITY_SECURITY_H
#define COMMON_SECURITY_SECURITY_H

#include "common/base/status.h"
#include "common/options/options.h"
#include "common/security/keys.h"

#include <stdbool.h>

// What the abstract names of our Unix sockets begin with. The transport checks at these names alone
// which user is at the other end: libraries of this process, such as a GPU's, may connect to
// daemons of other users by other names.
#define SECURITY_NAME_PREFIX "ringside-"

// What a worker of this host is told, in examples and messages.
#define SECURITY_LOCAL_ENDPOINT "ipc:///proc/PID/fd/N"

struct security_options {
    char keys[1024]; // path, "-"; "": none
    bool insecure;
};

/* Zeroed: no keys, and no tcp. */
struct security {
    struct keys *keys; // owned; NULL: none
    bool is_insecure;  // it was said that none are needed
};

enum security_role { SECURITY_LISTEN, SECURITY_CONNECT };

struct option_set security_option_set(struct security_options *options);

/* What contradicts what. Logs. */
enum status security_check_options(const struct security_options *options);

/* Reads the keys, after security_forbid_core_dumps. Logs that there are none, if --insecure was
 * said. */
enum status security_open(const struct security_options *options, struct security *ret_security);
void security_close(struct security *security); // zeroed is fine

/* From here on no core dump of this process, or of those that it starts, has its memory in it:
 * neither as a file nor for a program that the system gives them to. For who gets keys another way
 * than by security_open. */
void security_forbid_core_dumps(void);

/* Whether who connects to this endpoint is on this host: ipc, and tcp to numbers of the loopback
 * interface or `localhost`. Pure. */
bool security_is_local(const char *endpoint);

/* The same of an address to listen on, as --bind has it. Pure. */
bool security_is_local_address(const char *address);

/* What JOIN tells of the address that a member listens on: the address itself if it is a loopback
 * address. "" if it is another one, or if the coordinator is reached by a loopback address: then
 * other members may be, too. Pure. */
const char *security_told_loopback(const char *coordinator, const char *address);

/* Whether the path of a Unix socket is one that only its user's processes can find: /proc/PID/fd/N,
 * as private_socket_open makes it. Pure. */
bool security_is_private_path(const char *path);

/* Whether there may be tcp: there are keys, or it was said that none are needed. NULL: no. Pure. */
bool security_allows_tcp(const struct security *security);

/* Whether this process may listen at the endpoint, or connect to it. `security` may be NULL: there
 * is none. STATUS_INVALID otherwise. Logs. */
enum status security_check(const struct security *security, enum security_role role,
                           const char *endpoint);

#endif
