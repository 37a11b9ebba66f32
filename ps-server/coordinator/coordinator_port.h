/* Sends messages and logs sentences through the coordinator's port. */
#ifndef PS_SERVER_COORDINATOR_COORDINATOR_PORT_H
#define PS_SERVER_COORDINATOR_COORDINATOR_PORT_H

#include "ps-server/coordinator/coordinator.h"

#include <stdbool.h>
#include <stdint.h>

__attribute__((format(printf, 3, 4))) void
coordinator_port_say(const struct coordinator_port *port, bool is_error, const char *format, ...);

/* Tells the launcher, if there is one that listens, that the member may be started again. */
void coordinator_port_await_again(const struct coordinator_port *port, enum member_role role,
                                  uint32_t number);

/* What is seen of a member's process from here. */
enum presence coordinator_port_look(const struct coordinator_port *port, struct slot *slot);

void coordinator_port_send(const struct coordinator_port *port, uint64_t peer,
                           const struct message *message);

/* Sends a refusal, which reveals nothing about the job, and logs whom it refuses. */
void coordinator_port_refuse(const struct coordinator_port *port, uint64_t peer, const char *host,
                             uint64_t process_id, enum status reason, const char *sentence);

/* The same for a refusal that the caller has logged, or that nobody needs to read. */
void coordinator_port_tell_refused(const struct coordinator_port *port, uint64_t peer,
                                   enum status reason, const char *told);

/* Sends to every member that has joined and is not gone; to workers first. */
void coordinator_port_send_workers(const struct coordinator_port *port,
                                   const struct membership *membership,
                                   const struct message *message);
void coordinator_port_send_servers(const struct coordinator_port *port,
                                   const struct membership *membership,
                                   const struct message *message);
void coordinator_port_send_all(const struct coordinator_port *port,
                               const struct membership *membership, const struct message *message);

#endif
