/* Keeps a copy of the live state that any thread may replace or read. */
#include "common/live/live_board.h"

#include <pthread.h>
#include <stdlib.h>

struct live_board {
    pthread_mutex_t mutex;
    struct live_state state;
    uint64_t version;
};

enum status live_board_create(uint32_t workers, struct live_board **ret_board)
{
    struct live_board *board = calloc(1, sizeof(*board));
    if (board == NULL || live_state_init(&board->state, workers) != STATUS_OK) {
        free(board);
        return STATUS_NO_MEMORY;
    }
    pthread_mutex_init(&board->mutex, NULL);
    *ret_board = board;
    return STATUS_OK;
}

void live_board_destroy(struct live_board *board)
{
    if (board != NULL) {
        pthread_mutex_destroy(&board->mutex);
        live_state_finish(&board->state);
        free(board);
    }
}

void live_board_publish(struct live_board *board, const struct live_state *state)
{
    pthread_mutex_lock(&board->mutex);
    live_state_copy(&board->state, state);
    board->version++;
    pthread_mutex_unlock(&board->mutex);
}

uint64_t live_board_look(struct live_board *board, struct live_state *state)
{
    pthread_mutex_lock(&board->mutex);
    uint64_t version = board->version;
    if (version > 0) {
        live_state_copy(state, &board->state);
    }
    pthread_mutex_unlock(&board->mutex);
    return version;
}

uint64_t live_board_version(struct live_board *board)
{
    pthread_mutex_lock(&board->mutex);
    uint64_t version = board->version;
    pthread_mutex_unlock(&board->mutex);
    return version;
}
