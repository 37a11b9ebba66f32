/* Sets a connection's TCP_CONGESTION from what TCP_INFO says of its path. */
#include "common/transport/congestion.h"

#include <linux/tcp.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#define NAME_BYTES 16 // the kernel's limit

static const char bbr[] = "bbr", cubic[] = "cubic";

bool congestion_is_unfit(const char *name, uint32_t rtt_us)
{
    return strncmp(name, bbr, strlen(bbr)) == 0 && rtt_us < CONGESTION_SHORT_US;
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
