/* Handles the messages by which members enter and leave a phase of the job. */
#ifndef PS_SERVER_COORDINATOR_COORDINATOR_HANDSHAKE_H
#define PS_SERVER_COORDINATOR_COORDINATOR_HANDSHAKE_H

#include "ps-server/coordinator/coordinator.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* JOIN comes from a peer that may not be a member yet. */
void handshake_join(struct coordinator *coordinator, uint64_t peer, const struct message *message,
                    uint64_t now_ms);

/* Whether a process that is lost may be replaced by another one, because nobody has anything of it:
 * the job's first members gather. Otherwise a sentence says why not, or is "" if nobody has to
 * know. */
bool handshake_may_vacate(const struct coordinator *coordinator, const struct sender *lost,
                          char *ret_why, size_t why_size);

/* Frees the place of such a process, for whoever is started in its stead. Until then the others
 * wait, for --start-timeout. The sentence says how it was lost. False: it may not be replaced. */
bool handshake_vacate(struct coordinator *coordinator, const struct sender *lost,
                      const char *sentence, uint64_t now_ms);

/* Takes what a program of its own says of its optimizer: message->text, and groups of what its
 * layout has. False, and a sentence says why: it makes no sense. */
bool handshake_take_optimizer(struct coordinator *coordinator, const struct message *message,
                              char *ret_why, size_t why_size);

/* What is known of the model by the first worker that has one. */
void handshake_take_model(struct coordinator *coordinator, const struct message *message);

/* These come from members. Each ignores a message that does not fit the state. */
void handshake_ready(struct coordinator *coordinator, const struct sender *from,
                     const struct message *message, uint64_t now_ms);
void handshake_tried(struct coordinator *coordinator, const struct sender *from,
                     const struct message *message, uint64_t now_ms);
void handshake_connected(struct coordinator *coordinator, const struct sender *from,
                         uint64_t now_ms);
void handshake_passed(struct coordinator *coordinator, const struct sender *from,
                      const struct message *message, uint64_t now_ms);

#endif
