/* Which host this is, for choosing a transport: the boot and the network namespace.
 *
 * Abstract ipc names live in a network namespace, so containers of one machine that have their own
 * are different hosts here. */
#include "common/transport/transport.h"
#include "common/vector/layout.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

uint64_t transport_host_id(void)
{
    char text[256] = "";
    ssize_t size = readlink("/proc/self/ns/net", text, sizeof(text) - 1);
    uint64_t digest = layout_digest_add(LAYOUT_DIGEST_SEED, text, size > 0 ? (uint64_t)size : 0);
    int file = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    if (file >= 0) {
        size = read(file, text, sizeof(text));
        close(file);
        digest = layout_digest_add(digest, text, size > 0 ? (uint64_t)size : 0);
    }
    return digest;
}
