/* Which host this is, for choosing a transport: the boot and the namespaces.
 *
 * Private names of ipc are found through /proc by processes of one PID and one user namespace,
 * abstract ones live in a network namespace. So containers of one machine that have their own are
 * different hosts here. */
#include "common/base/cores.h"
#include "common/transport/transport.h"
#include "common/vector/layout.h"

#include <unistd.h>

uint64_t transport_host_id(void)
{
    const char *const spaces[] = {"/proc/self/ns/net", "/proc/self/ns/pid", "/proc/self/ns/user"};
    char text[256] = "";
    uint64_t digest = LAYOUT_DIGEST_SEED;
    for (size_t i = 0; i < sizeof(spaces) / sizeof(spaces[0]); i++) {
        ssize_t size = readlink(spaces[i], text, sizeof(text) - 1);
        digest = layout_digest_add(digest, text, size > 0 ? (uint64_t)size : 0);
    }
    uint64_t machine = cores_machine();
    return layout_digest_add(digest, &machine, sizeof(machine));
}
