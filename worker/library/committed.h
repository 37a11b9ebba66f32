/* The states of the job's optimizer, as they were when the program last committed.
 *
 * The program keeps its parameters by itself, and an optimizer of its own. Where the job makes the
 * updates, each process keeps the optimizer's states as well: those of servers, which it pulls, or
 * its own. After a loss rank 0 gives its own to all, so that whoever is left has them, and servers
 * begin with them. */
#ifndef WORKER_LIBRARY_COMMITTED_H
#define WORKER_LIBRARY_COMMITTED_H

#include "worker/library/handle.h"

/* After a step, when all processes have stopped: copies what there is now beside what is kept. In
 * modes with servers that are not in step, it also pulls the newest parameters. Waits. */
enum status committed_draw(struct ringside *ringside);

/* The commit counts: what was drawn takes the place of what was kept. */
void committed_keep(struct ringside *ringside);

/* Before the start: all processes get what rank 0 keeps. Not within a call, since it makes some. */
enum ringside_status committed_share(struct ringside *ringside);

/* Likewise, of this process: what the optimizer of the new generation begins with. Zeros if the
 * program goes on from a step that it has never committed. */
enum status committed_restore(struct ringside *ringside);

/* How many states are kept; 0: none, or the job begins. */
uint32_t committed_count(const struct ringside *ringside);

#endif
