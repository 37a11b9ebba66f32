/* What a link does when the coordinator of its job is lost, and when there is another one. For the
 * communication thread. */
#ifndef WORKER_LINK_LINK_ALONE_H
#define WORKER_LINK_LINK_ALONE_H

#include "common/channel/wire.h"
#include "worker/link/link_state.h"

/* Takes what the trainer has to tell the coordinator: sends it, or keeps it while there is none. */
void link_take_outbox(struct link *link);

/* START came: a phase begins. */
void link_alone_note_start(struct link *link, const struct message *start);

/* GO came: the phase runs. */
void link_alone_note_go(struct link *link);

/* Before each look at the coordinator: for how long this worker would wait for the next one. */
void link_alone_prepare(struct link *link);

/* After that: says BACK where a new connection was made, and whether this worker can be taken in as
 * it is. If it cannot, it is told to join anew (STOP with AGAIN). */
void link_alone_knock(struct link *link);

/* GO came while there was no coordinator: there is one again. */
void link_alone_return(struct link *link, const struct message *go);

#endif
