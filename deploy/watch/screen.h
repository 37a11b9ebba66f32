/* A live state as text: a screen for a terminal, a line for a log. */
#ifndef DEPLOY_WATCH_SCREEN_H
#define DEPLOY_WATCH_SCREEN_H

#include "common/live/live_state.h"

#include <stdint.h>
#include <stdio.h>

#define SCREEN_COLUMNS_MIN 72
#define SCREEN_COLUMNS_MAX 160
#define SCREEN_RANKS_MAX   16
#define SCREEN_EVENTS_MAX  5

/* Writes lines of up to `columns` characters (kept within the limits above). */
void screen_write(const struct live_state *state, uint32_t columns, FILE *out);

/* Writes one line. */
void screen_write_line(const struct live_state *state, FILE *out);

#endif
