/* Talks to the kernel's nfnetlink_queue without a library: requests and verdicts go there, packets
 * and errors come back.
 *
 * Packets are not copied, and large ones that TCP leaves to the device to cut stay whole
 * (NFQA_CFG_F_GSO). The kernel notes when packets come as long as any socket asks for that
 * (SO_TIMESTAMPNS). */
#include "bench/programs/packet_queue.h"

#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_queue.h>
#include <linux/netlink.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define QUEUE_NUMBER   0
#define MESSAGE_BYTES  512 // more than any message has without the packet itself
#define MESSAGES       32  // that are read at once
#define RECEIVE_BYTES  (64 << 20)
#define ATTRIBUTES_MAX 96
#define PATH_BYTES     300

/* What is sent to the kernel. */
struct request {
    struct nlmsghdr header; // nlmsg_len: the bytes of the request so far
    struct nfgenmsg family;
    unsigned char attributes[ATTRIBUTES_MAX];
};

/* What is read from it. */
struct messages {
    struct mmsghdr headers[MESSAGES];
    struct iovec places[MESSAGES];
    unsigned char bytes[MESSAGES][MESSAGE_BYTES];
};

static int fail(const struct packet_queue *queue, const char *what)
{
    fprintf(stderr, "delay_line: namespace %s: %s: %m\n", queue->name, what);
    return -1;
}

/* ---- Messages ---- */

static struct request request_of(uint16_t kind, uint16_t flags)
{
    return (struct request){
        .header = {.nlmsg_len = sizeof(struct nlmsghdr) + sizeof(struct nfgenmsg),
                   .nlmsg_type = (uint16_t)(NFNL_SUBSYS_QUEUE << 8 | kind),
                   .nlmsg_flags = (uint16_t)(NLM_F_REQUEST | flags)},
        .family = {
            .nfgen_family = AF_UNSPEC, .version = NFNETLINK_V0, .res_id = htons(QUEUE_NUMBER)}};
}

static void request_add(struct request *request, uint16_t type, const void *value, size_t bytes)
{
    struct nlattr attribute = {.nla_len = (uint16_t)(sizeof(attribute) + bytes), .nla_type = type};
    unsigned char *end = (unsigned char *)request + request->header.nlmsg_len;
    memcpy(end, &attribute, sizeof(attribute));
    memcpy(end + sizeof(attribute), value, bytes);
    request->header.nlmsg_len += (attribute.nla_len + 3U) & ~3U;
}

static void request_add_number(struct request *request, uint16_t type, uint32_t value)
{
    uint32_t ordered = htonl(value);
    request_add(request, type, &ordered, sizeof(ordered));
}

static bool request_send(const struct packet_queue *queue, const struct request *request)
{
    return send(queue->descriptor, request, request->header.nlmsg_len, 0) ==
           (ssize_t)request->header.nlmsg_len;
}

/* Copies the attribute of a type. False: there is none, or it is shorter. */
static bool find_attribute(const unsigned char *bytes, size_t count, uint16_t type, void *ret_value,
                           size_t value_bytes)
{
    struct nlattr attribute;
    for (size_t at = 0; at + sizeof(attribute) <= count; at += (attribute.nla_len + 3U) & ~3U) {
        memcpy(&attribute, bytes + at, sizeof(attribute));
        if (attribute.nla_len < sizeof(attribute) || attribute.nla_len > count - at) {
            return false;
        }
        if (attribute.nla_type == type && attribute.nla_len >= sizeof(attribute) + value_bytes) {
            memcpy(ret_value, bytes + at + sizeof(attribute), value_bytes);
            return true;
        }
    }
    return false;
}

/* Reads a packet, or the kernel's error as a negative number. 0: something else. */
static int read_message(const unsigned char *bytes, size_t count, struct packet *ret_packet)
{
    struct nlmsghdr header;
    struct nlmsgerr error;
    struct nfqnl_msg_packet_hdr packet;
    struct nfqnl_msg_packet_timestamp time = {0};
    const size_t ahead = sizeof(header) + sizeof(struct nfgenmsg);
    if (count < sizeof(header)) {
        return 0;
    }
    memcpy(&header, bytes, sizeof(header));
    if (header.nlmsg_type == NLMSG_ERROR && count >= sizeof(header) + sizeof(error)) {
        memcpy(&error, bytes + sizeof(header), sizeof(error));
        return error.error;
    }
    if (header.nlmsg_type != (NFNL_SUBSYS_QUEUE << 8 | NFQNL_MSG_PACKET) || count < ahead ||
        !find_attribute(bytes + ahead, count - ahead, NFQA_PACKET_HDR, &packet, sizeof(packet))) {
        return 0;
    }
    *ret_packet = (struct packet){.id = ntohl(packet.packet_id)};
    if (find_attribute(bytes + ahead, count - ahead, NFQA_TIMESTAMP, &time, sizeof(time))) {
        // The kernel cuts it to whole microseconds, and no packet may go on too early.
        ret_packet->came_ns = be64toh(time.sec) * 1000000000 + be64toh(time.usec) * 1000 + 999;
    }
    return 1;
}

/* ---- Opening ---- */

static int enter(struct packet_queue *queue)
{
    char path[PATH_BYTES];
    snprintf(path, sizeof(path), "/run/netns/%.255s", queue->name);
    int descriptor = open(path, O_RDONLY | O_CLOEXEC);
    if (descriptor < 0) {
        return fail(queue, "cannot open it");
    }
    int status = setns(descriptor, CLONE_NEWNET);
    close(descriptor);
    return status == 0 ? 0 : fail(queue, "cannot enter it");
}

static bool open_socket(struct packet_queue *queue)
{
    const int receive_bytes = RECEIVE_BYTES, has_times = 1;
    queue->descriptor = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_NETFILTER);
    return queue->descriptor >= 0 &&
           setsockopt(queue->descriptor, SOL_SOCKET, SO_RCVBUFFORCE, &receive_bytes,
                      sizeof(receive_bytes)) == 0 &&
           setsockopt(queue->descriptor, SOL_SOCKET, SO_TIMESTAMPNS, &has_times,
                      sizeof(has_times)) == 0;
}

static bool bind_queue(struct packet_queue *queue)
{
    const struct nfqnl_msg_config_cmd command = {.command = NFQNL_CFG_CMD_BIND};
    const struct nfqnl_msg_config_params params = {.copy_mode = NFQNL_COPY_META};
    unsigned char answer[MESSAGE_BYTES];
    struct packet unused;
    struct request request = request_of(NFQNL_MSG_CONFIG, NLM_F_ACK);
    request_add(&request, NFQA_CFG_CMD, &command, sizeof(command));
    request_add(&request, NFQA_CFG_PARAMS, &params, sizeof(params));
    request_add_number(&request, NFQA_CFG_QUEUE_MAXLEN, PACKET_QUEUE_MAX);
    request_add_number(&request, NFQA_CFG_FLAGS, NFQA_CFG_F_GSO);
    request_add_number(&request, NFQA_CFG_MASK, NFQA_CFG_F_GSO);
    if (!request_send(queue, &request)) {
        return false;
    }
    // A packet that comes before the answer goes on with the first one behind it.
    int status;
    do {
        ssize_t count = recv(queue->descriptor, answer, sizeof(answer), 0);
        if (count < 0) {
            return false;
        }
        status = read_message(answer, (size_t)count, &unused);
    } while (status > 0);
    errno = -status;
    return status == 0;
}

int packet_queue_open(struct packet_queue *queue, const char *name)
{
    *queue = (struct packet_queue){.name = name, .descriptor = -1};
    if (enter(queue) != 0) {
        return -1;
    }
    if (!open_socket(queue) || !bind_queue(queue)) {
        return fail(queue, "cannot listen to its packets (NFQUEUE)");
    }
    return 0;
}

void packet_queue_close(struct packet_queue *queue)
{
    if (queue->descriptor >= 0) {
        close(queue->descriptor);
    }
    queue->descriptor = -1;
}

/* ---- Packets ---- */

/* Returns how many have been read, up to `count`, or -1 with errno. */
static int read_messages(const struct packet_queue *queue, struct messages *messages, size_t count)
{
    count = count < MESSAGES ? count : MESSAGES;
    for (size_t i = 0; i < count; i++) {
        messages->places[i] =
            (struct iovec){.iov_base = messages->bytes[i], .iov_len = MESSAGE_BYTES};
        messages->headers[i] =
            (struct mmsghdr){.msg_hdr = {.msg_iov = &messages->places[i], .msg_iovlen = 1}};
    }
    int got =
        recvmmsg(queue->descriptor, messages->headers, (unsigned int)count, MSG_DONTWAIT, NULL);
    return got < 0 && errno == EAGAIN ? 0 : got;
}

int packet_queue_take(struct packet_queue *queue, struct packet *packets, size_t count)
{
    struct messages messages;
    int got = read_messages(queue, &messages, count);
    if (got < 0) {
        return fail(queue, errno == ENOBUFS ? "the kernel has dropped packets"
                                            : "cannot read what the kernel says");
    }
    int taken = 0;
    for (int i = 0; i < got; i++) {
        struct packet *packet = &packets[taken];
        int status = read_message(messages.bytes[i], messages.headers[i].msg_len, packet);
        if (status < 0) {
            errno = -status;
            return fail(queue, "the kernel does not take a verdict");
        }
        if (status == 0) {
            continue;
        }
        if (queue->id != 0 && packet->id != queue->id + 1) {
            fprintf(stderr, "delay_line: namespace %s: the kernel has dropped %u packets\n",
                    queue->name, packet->id - queue->id - 1);
            return -1;
        }
        queue->id = packet->id;
        taken++;
    }
    return taken;
}

int packet_queue_release(struct packet_queue *queue, uint32_t id)
{
    const struct nfqnl_msg_verdict_hdr verdict = {.verdict = htonl(NF_ACCEPT), .id = htonl(id)};
    struct request request = request_of(NFQNL_MSG_VERDICT_BATCH, 0);
    request_add(&request, NFQA_VERDICT_HDR, &verdict, sizeof(verdict));
    return request_send(queue, &request) ? 0 : fail(queue, "cannot let packets go on");
}
