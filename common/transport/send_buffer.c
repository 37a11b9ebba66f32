/* Sets a connection's SO_SNDBUF from what TCP_INFO says of its path. */
#include "common/transport/send_buffer.h"

#include <linux/tcp.h>
#include <math.h>
#include <netinet/in.h>
#include <stddef.h>
#include <sys/socket.h>

#define SLACK_US     500
#define SEGMENTS_MIN 4
#define HELD_PART    16 // one of so many parts of the time

int send_buffer_bytes(uint64_t rate, uint32_t rtt_us, uint32_t mss)
{
    double bytes = (double)rate * ((double)rtt_us + SLACK_US) * 1e-6;
    bytes = fmax(bytes, fmax(SEND_BUFFER_MIN, SEGMENTS_MIN * (double)mss));
    return (int)fmin(bytes, SEND_BUFFER_MAX);
}

int send_buffer_grow(int fitted, const struct send_buffer_past *past)
{
    bool is_long = past->rtt_us > SLACK_US;
    if (!is_long || past->held_us <= past->busy_us / HELD_PART) {
        return fitted;
    }
    int grown = past->bytes < SEND_BUFFER_START / 2 ? 2 * past->bytes : SEND_BUFFER_START;
    return fitted > grown ? fitted : grown;
}

/* What an older kernel does not say is 0. */
static bool find_info(int descriptor, struct tcp_info *ret_info)
{
    const size_t needed =
        offsetof(struct tcp_info, tcpi_delivery_rate) + sizeof(ret_info->tcpi_delivery_rate);
    socklen_t size = sizeof(*ret_info);
    *ret_info = (struct tcp_info){0};
    return getsockopt(descriptor, IPPROTO_TCP, TCP_INFO, ret_info, &size) == 0 && size >= needed;
}

/* As asked for: the kernel doubles that. */
static int find_bytes(int descriptor)
{
    int bytes = 0;
    socklen_t size = sizeof(bytes);
    return getsockopt(descriptor, SOL_SOCKET, SO_SNDBUF, &bytes, &size) == 0 ? bytes / 2 : 0;
}

static bool set_bytes(int descriptor, int bytes)
{
    return setsockopt(descriptor, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes)) == 0;
}

bool send_buffer_fit(int descriptor)
{
    struct tcp_info info;
    if (!find_info(descriptor, &info)) {
        return false;
    }
    const struct send_buffer_past past = {.bytes = find_bytes(descriptor),
                                          .rtt_us = info.tcpi_min_rtt,
                                          .busy_us = info.tcpi_busy_time,
                                          .held_us = info.tcpi_sndbuf_limited};
    bool is_known = info.tcpi_delivery_rate != 0 && info.tcpi_delivery_rate_app_limited == 0;
    int fitted =
        is_known ? send_buffer_bytes(info.tcpi_delivery_rate, info.tcpi_min_rtt, info.tcpi_snd_mss)
                 : past.bytes;
    int wanted = send_buffer_grow(fitted, &past);
    return (is_known || wanted > past.bytes) && set_bytes(descriptor, wanted);
}

bool send_buffer_fit_to(int descriptor, uint64_t rate, uint32_t rtt_us)
{
    struct tcp_info info;
    return find_info(descriptor, &info) &&
           set_bytes(descriptor, send_buffer_bytes(rate, rtt_us, info.tcpi_snd_mss));
}
