/* Reads addresses, and asks the kernel for the socket at the other end of a connection. */
#include "common/transport/local_peer.h"

#include "common/security/security.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

// The states of TCP in which a socket has not hung up: see net/tcp_states.h of Linux.
enum { STATE_ESTABLISHED = 1, STATE_CLOSE_WAIT = 8 };

#define ANSWER_BYTES 1024

struct request {
    struct nlmsghdr header;
    struct inet_diag_req_v2 body;
};

/* One end of a connection, as the kernel's question has it. */
struct end {
    int family;
    uint16_t port; // in the network's order
    uint32_t address[4];
    bool is_loopback;
};

/* IPv4 that is mapped into IPv6 is IPv4. False for other families. */
static bool read_end(const struct sockaddr_storage *storage, struct end *ret_end)
{
    struct end end = {.family = storage->ss_family};
    if (end.family == AF_INET) {
        struct sockaddr_in ipv4;
        memcpy(&ipv4, storage, sizeof(ipv4));
        end.port = ipv4.sin_port;
        end.address[0] = ipv4.sin_addr.s_addr;
    } else if (end.family == AF_INET6) {
        struct sockaddr_in6 ipv6;
        memcpy(&ipv6, storage, sizeof(ipv6));
        end.port = ipv6.sin6_port;
        end.is_loopback = IN6_IS_ADDR_LOOPBACK(&ipv6.sin6_addr);
        memcpy(end.address, &ipv6.sin6_addr, sizeof(end.address));
        if (IN6_IS_ADDR_V4MAPPED(&ipv6.sin6_addr)) {
            end.family = AF_INET;
            end.address[0] = end.address[3];
            memset(end.address + 1, 0, 3 * sizeof(end.address[0]));
        }
    }
    if (end.family == AF_INET) {
        end.is_loopback = ntohl(end.address[0]) >> 24 == IN_LOOPBACKNET;
    }
    *ret_end = end;
    return end.family == AF_INET || end.family == AF_INET6;
}

/* False, and errno, if there is none. */
static bool read_ends(int fd, struct end *ret_here, struct end *ret_there)
{
    struct sockaddr_storage here = {0}, there = {0};
    socklen_t here_size = sizeof(here), there_size = sizeof(there);
    errno = 0;
    return getsockname(fd, (struct sockaddr *)&here, &here_size) == 0 &&
           getpeername(fd, (struct sockaddr *)&there, &there_size) == 0 &&
           read_end(&here, ret_here) && read_end(&there, ret_there);
}

static bool ask(int descriptor, const struct end *here, const struct end *there)
{
    struct request request = {
        .header = {.nlmsg_len = sizeof(request),
                   .nlmsg_type = SOCK_DIAG_BY_FAMILY,
                   .nlmsg_flags = NLM_F_REQUEST},
        .body = {.sdiag_family = (uint8_t)there->family,
                 .sdiag_protocol = IPPROTO_TCP,
                 .idiag_states = UINT32_MAX,
                 .id = {.idiag_sport = there->port,
                        .idiag_dport = here->port,
                        .idiag_cookie = {INET_DIAG_NOCOOKIE, INET_DIAG_NOCOOKIE}}},
    };
    memcpy(request.body.id.idiag_src, there->address, sizeof(there->address));
    memcpy(request.body.id.idiag_dst, here->address, sizeof(here->address));
    return send(descriptor, &request, sizeof(request), 0) == (ssize_t)sizeof(request);
}

/* 0 and the socket, or why there is none: ENOENT where the kernel has no such socket. It was
 * written while the question was sent. */
static int read_answer(int descriptor, struct inet_diag_msg *ret_socket)
{
    _Alignas(struct nlmsghdr) unsigned char bytes[ANSWER_BYTES];
    struct nlmsghdr header;
    ssize_t size = recv(descriptor, bytes, sizeof(bytes), MSG_DONTWAIT);
    if (size < (ssize_t)NLMSG_HDRLEN) {
        return EIO;
    }
    memcpy(&header, bytes, sizeof(header));
    size_t rest = (size_t)size - NLMSG_HDRLEN;
    if (header.nlmsg_type == NLMSG_ERROR && rest >= sizeof(struct nlmsgerr)) {
        struct nlmsgerr error;
        memcpy(&error, bytes + NLMSG_HDRLEN, sizeof(error));
        return -error.error;
    }
    if (header.nlmsg_type != SOCK_DIAG_BY_FAMILY || rest < sizeof(*ret_socket)) {
        return EIO;
    }
    memcpy(ret_socket, bytes + NLMSG_HDRLEN, sizeof(*ret_socket));
    return 0;
}

static bool has_hung_up(const struct inet_diag_msg *socket)
{
    bool is_open =
        socket->idiag_state == STATE_ESTABLISHED || socket->idiag_state == STATE_CLOSE_WAIT;
    return !is_open || socket->idiag_inode == 0; // no process has it any more
}

bool local_peer_read_address(const struct sockaddr_storage *storage,
                             struct local_peer_address *ret_address)
{
    struct local_peer_address address = {.port = 0};
    if (storage->ss_family == AF_INET) {
        struct sockaddr_in ipv4;
        memcpy(&ipv4, storage, sizeof(ipv4));
        address.port = ntohs(ipv4.sin_port);
        memset(address.host.s6_addr + 10, 0xff, 2);
        memcpy(address.host.s6_addr + 12, &ipv4.sin_addr, 4);
    } else if (storage->ss_family == AF_INET6) {
        struct sockaddr_in6 ipv6;
        memcpy(&ipv6, storage, sizeof(ipv6));
        address.port = ntohs(ipv6.sin6_port);
        address.host = ipv6.sin6_addr;
    } else {
        return false;
    }
    *ret_address = address;
    return true;
}

const char *local_peer_find_no_right(int fd, char *ret_text, size_t text_size)
{
    struct ucred peer;
    socklen_t size = sizeof(peer);
    snprintf(ret_text, text_size, "a local process");
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) {
        return "its user cannot be told";
    }
    snprintf(ret_text, text_size, "process %ld of user %u", (long)peer.pid, (unsigned)peer.uid);
    return peer.uid == geteuid() || peer.uid == 0 ? NULL : "it belongs to another user";
}

bool local_peer_parse_host(const char *text, struct in6_addr *ret_host)
{
    struct in6_addr host = {0};
    memset(host.s6_addr + 10, 0xff, 2);
    bool is_address =
        inet_pton(AF_INET, text, host.s6_addr + 12) == 1 || inet_pton(AF_INET6, text, &host) == 1;
    if (is_address) {
        *ret_host = host;
    }
    return is_address;
}

void local_peer_format_address(const struct local_peer_address *address, char *ret_text,
                               size_t text_size)
{
    char text[INET6_ADDRSTRLEN];
    bool is_ipv4 = IN6_IS_ADDR_V4MAPPED(&address->host);
    const unsigned char *bytes = address->host.s6_addr;
    if (inet_ntop(is_ipv4 ? AF_INET : AF_INET6, is_ipv4 ? bytes + 12 : bytes, text, sizeof(text)) ==
        NULL) {
        text[0] = '\0';
    }
    snprintf(ret_text, text_size, is_ipv4 ? "%s:%u" : "[%s]:%u", text, address->port);
}

int local_peer_open(void)
{
    return socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
}

enum local_peer local_peer_find(int descriptor, int fd, uid_t *ret_user)
{
    struct end here, there;
    struct inet_diag_msg found = {0};
    if (!read_ends(fd, &here, &there)) {
        return errno == ENOTCONN ? LOCAL_PEER_GONE : LOCAL_PEER_UNKNOWN; // it was broken off
    }
    if (descriptor < 0 || here.family != there.family || !ask(descriptor, &here, &there)) {
        return LOCAL_PEER_UNKNOWN;
    }
    int error = read_answer(descriptor, &found);
    // Where there is no such connection the kernel may find a socket that listens at that port.
    if (error == 0 && found.id.idiag_dport != here.port) {
        error = ENOENT;
    }
    if (error != 0) {
        return error == ENOENT && there.is_loopback ? LOCAL_PEER_GONE : LOCAL_PEER_UNKNOWN;
    }
    if (has_hung_up(&found)) {
        return LOCAL_PEER_GONE;
    }
    if (found.idiag_uid == geteuid()) {
        return LOCAL_PEER_OWN;
    }
    *ret_user = found.idiag_uid;
    return LOCAL_PEER_OTHER;
}

bool local_peer_read_name(const struct sockaddr *address, socklen_t size,
                          char ret_name[LOCAL_PEER_NAME_BYTES])
{
    struct sockaddr_un un = {0};
    size_t head = offsetof(struct sockaddr_un, sun_path) + 1;
    if (address == NULL || size <= head || size > sizeof(un) || address->sa_family != AF_UNIX) {
        return false;
    }
    memcpy(&un, address, size);
    if (un.sun_path[0] != '\0') {
        memcpy(ret_name, un.sun_path, sizeof(un.sun_path));
        ret_name[sizeof(un.sun_path) - 1] = '\0';
        return security_is_private_path(ret_name);
    }
    memcpy(ret_name, un.sun_path + 1, size - head);
    ret_name[size - head] = '\0';
    return strncmp(ret_name, SECURITY_NAME_PREFIX, strlen(SECURITY_NAME_PREFIX)) == 0;
}
