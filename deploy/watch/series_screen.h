/* The runs of a sweep or a comparison as text: a screen for a terminal, lines for a log. */
#ifndef DEPLOY_WATCH_SERIES_SCREEN_H
#define DEPLOY_WATCH_SERIES_SCREEN_H

#include "deploy/watch/series.h"

#include <stdint.h>
#include <stdio.h>

/* Writes up to `rows` lines of up to `columns` characters. What has no room is counted. */
void series_screen_write(const struct series *series, uint32_t rows, uint32_t columns, FILE *out);

/* Writes one line: how many runs are in which state, and when all will have ended. */
void series_screen_write_line(const struct series *series, FILE *out);

#endif
