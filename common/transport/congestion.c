/* Sets a connection's TCP_CONGESTION from what TCP_INFO says of its path. */
#include "common/transport/congestion.h"

#include <fcntl.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define NAME_BYTES 16 // the kernel's limit

static const char bbr[] = "bbr", cubic[] = "cubic";

bool congestion_is_unfit(const char *name, uint32_t rtt_us)
{
    return strncmp(name, bbr, strlen(bbr)) == 0 && rtt_us < CONGESTION_SHORT_US;
}

bool congestion_paces(void)
{
    char name[NAME_BYTES + 1] = {0};
    int file = open("/proc/sys/net/ipv4/tcp_congestion_control", O_RDONLY | O_CLOEXEC);
    ssize_t size = file >= 0 ? read(file, name, NAME_BYTES) : 0;
    if (file >= 0) {
        close(file);
    }
    return size > 0 && strncmp(name, bbr, strlen(bbr)) == 0;
}

bool congestion_fit(int descriptor)
{
    char name[NAME_BYTES + 1] = {0};
    struct tcp_info info = {0};
    socklen_t name_size = NAME_BYTES, info_size = sizeof(info);
    return getsockopt(descriptor, IPPROTO_TCP, TCP_CONGESTION, name, &name_size) == 0 &&
           getsockopt(descriptor, IPPROTO_TCP, TCP_INFO, &info, &info_size) == 0 &&
           congestion_is_unfit(name, info.tcpi_rtt) &&
           setsockopt(descriptor, IPPROTO_TCP, TCP_CONGESTION, cubic, (socklen_t)strlen(cubic)) ==
               0;
}
