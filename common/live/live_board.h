/* Where one thread leaves what it knows of a job, and others look at it. Nobody waits for longer
 * than a copy of it takes. */
#ifndef COMMON_LIVE_LIVE_BOARD_H
#define COMMON_LIVE_LIVE_BOARD_H

#include "common/live/live_state.h"

struct live_board;

enum status live_board_create(uint32_t workers, struct live_board **ret_board);
void live_board_destroy(struct live_board *board); // NULL is fine

/* Leaves a copy of the state. From any thread. */
void live_board_publish(struct live_board *board, const struct live_state *state);

/* Copies what was left last into a state with as many ranks. Returns how often something was left;
 * 0: never, and nothing is copied. */
uint64_t live_board_look(struct live_board *board, struct live_state *state);

/* The same count, without a copy. */
uint64_t live_board_version(struct live_board *board);

#endif
