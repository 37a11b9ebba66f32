/* Messages from one process of a team to another, in the order in which they are sent. */
#ifndef WORKER_COLLECTIVE_LETTERS_H
#define WORKER_COLLECTIVE_LETTERS_H

#include "common/base/status.h"
#include "worker/collective/team.h"

#include <stddef.h>

/* What the header of the next message says has to be what the receiver's says. Statuses are those
 * of calls (call.h). A send waits while the pipe is full, a receive until all has come. */
enum status letters_send(struct team *team, uint32_t to, const struct team_header *header,
                         const void *bytes, size_t size, struct team_fault *ret_fault);
enum status letters_receive(struct team *team, uint32_t from, const struct team_header *header,
                            void *bytes, size_t size, struct team_fault *ret_fault);

#endif
