/* What to do about what a program has said. Pure. */
#ifndef DEPLOY_SYSTEM_ADVICE_H
#define DEPLOY_SYSTEM_ADVICE_H

#include "common/options/options.h"

#include <stddef.h>

/* A piece of what may be said, and what helps then; %s in it is the host, at most once. */
struct advice {
    const char *said, *text;
};

/* The text of the last row that matches; `otherwise` if none does. */
const char *advice_find(const struct advice *rows, size_t count, const char *said,
                        const char *otherwise);

/* Fills the host in. */
void advice_fill(const char *text, const char *host, char ret_advice[OPTION_ERROR_BYTES]);

#endif
