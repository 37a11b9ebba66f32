/* Formats sentences for the log, and sends a message to several members. */
#include "ps-server/coordinator/coordinator_port.h"

#include <stdarg.h>
#include <stdio.h>

void coordinator_port_say(const struct coordinator_port *port, bool is_error, const char *format,
                          ...)
{
    char sentence[COORDINATOR_REASON_BYTES];
    va_list args;
    va_start(args, format);
    vsnprintf(sentence, sizeof(sentence), format, args);
    va_end(args);
    port->log(port->context, is_error, sentence);
}

void coordinator_port_send(const struct coordinator_port *port, uint64_t peer,
                           const struct message *message)
{
    port->send(port->context, peer, message);
}

enum presence coordinator_port_look(const struct coordinator_port *port, struct slot *slot)
{
    return port->look != NULL ? port->look(port->context, &slot->sighting) : PRESENCE_UNKNOWN;
}

void coordinator_port_await_again(const struct coordinator_port *port, enum member_role role,
                                  uint32_t number)
{
    if (port->await_again != NULL) {
        port->await_again(port->context, role, number);
    }
}

static void send_slots(const struct coordinator_port *port, const struct slot *slots,
                       uint32_t count, const struct message *message)
{
    for (uint32_t i = 0; i < count; i++) {
        if (slots[i].state != SLOT_FREE && slots[i].state != SLOT_GONE) {
            coordinator_port_send(port, slots[i].peer, message);
        }
    }
}

void coordinator_port_refuse(const struct coordinator_port *port, uint64_t peer, const char *host,
                             uint64_t process_id, enum status reason, const char *sentence)
{
    coordinator_port_say(port, true, "refused a member (host %s, pid %llu): %s", host,
                         (unsigned long long)process_id, sentence);
    coordinator_port_tell_refused(port, peer, reason, sentence);
}

void coordinator_port_tell_refused(const struct coordinator_port *port, uint64_t peer,
                                   enum status reason, const char *told)
{
    struct message refusal = {.kind = MESSAGE_REFUSE, .reason = reason, .text = told};
    coordinator_port_send(port, peer, &refusal);
}

void coordinator_port_send_workers(const struct coordinator_port *port,
                                   const struct membership *membership,
                                   const struct message *message)
{
    send_slots(port, membership->workers, membership->worker_count, message);
}

void coordinator_port_send_servers(const struct coordinator_port *port,
                                   const struct membership *membership,
                                   const struct message *message)
{
    send_slots(port, membership->servers, membership->server_count, message);
}

void coordinator_port_send_all(const struct coordinator_port *port,
                               const struct membership *membership, const struct message *message)
{
    coordinator_port_send_workers(port, membership, message);
    coordinator_port_send_servers(port, membership, message);
}
