/* Sets a connection's SO_SNDBUF from what TCP_INFO says of its path. */
#include "common/transport/send_buffer.h"

#include <linux/tcp.h>
#include <math.h>
#include <netinet/in.h>
#include <stddef.h>
#include <sys/socket.h>

#define SLACK_US     500
#define SEGMENTS_MIN 4

int send_buffer_bytes(uint64_t rate, uint32_t rtt_us, uint32_t mss)
{
    double bytes = (double)rate * ((double)rtt_us + SLACK_US) * 1e-6;
    bytes = fmax(bytes, fmax(SEND_BUFFER_MIN, SEGMENTS_MIN * (double)mss));
    return (int)fmin(bytes, SEND_BUFFER_MAX);
}

static bool find_info(int descriptor, struct tcp_info *ret_info)
{
    const size_t needed =
        offsetof(struct tcp_info, tcpi_delivery_rate) + sizeof(ret_info->tcpi_delivery_rate);
    socklen_t size = sizeof(*ret_info);
    return getsockopt(descriptor, IPPROTO_TCP, TCP_INFO, ret_info, &size) == 0 && size >= needed;
}

static bool set_bytes(int descriptor, int bytes)
{
    return setsockopt(descriptor, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes)) == 0;
}

bool send_buffer_fit(int descriptor)
{
    struct tcp_info info;
    return find_info(descriptor, &info) && info.tcpi_delivery_rate != 0 &&
           info.tcpi_delivery_rate_app_limited == 0 &&
           set_bytes(descriptor, send_buffer_bytes(info.tcpi_delivery_rate, info.tcpi_min_rtt,
                                                   info.tcpi_snd_mss));
}

bool send_buffer_fit_to(int descriptor, uint64_t rate, uint32_t rtt_us)
{
    struct tcp_info info;
    return find_info(descriptor, &info) &&
           set_bytes(descriptor, send_buffer_bytes(rate, rtt_us, info.tcpi_snd_mss));
}
