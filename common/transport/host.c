/* Which host this is, for choosing a transport: the boot and the namespaces.
 *
 * Private names of ipc are found through /proc by processes of one PID and one user namespace,
 * abstract ones live in a network namespace. So containers of one machine that have their own are
 * different hosts here. */
#include "common/transport/transport.h"
#include "common/vector/layout.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

uint64_t transport_host_id(void)
{
    const char *const spaces[] = {"/proc/self/ns/net", "/proc/self/ns/pid", "/proc/self/ns/user"};
    char text[256] = "";
    ssize_t size;
    uint64_t digest = LAYOUT_DIGEST_SEED;
    for (size_t i = 0; i < sizeof(spaces) / sizeof(spaces[0]); i++) {
        size = readlink(spaces[i], text, sizeof(text) - 1);
        digest = layout_digest_add(digest, text, size > 0 ? (uint64_t)size : 0);
    }
    int file = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    if (file >= 0) {
        size = read(file, text, sizeof(text));
        close(file);
        digest = layout_digest_add(digest, text, size > 0 ? (uint64_t)size : 0);
    }
    return digest;
}
