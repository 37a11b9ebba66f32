/* What preflight found wrong: one table. Pure. */
#ifndef DEPLOY_HOSTS_FINDINGS_H
#define DEPLOY_HOSTS_FINDINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#define FINDINGS_MAX 512

struct finding {
    char host[64];
    char with[64];      // the other host of a pair; "": none
    char interface[64]; // "eth0 10.0.0.7"; "": none
    char port[16];      // a port, or a range; "": none
    char problem[512], advice[512];
};

struct findings {
    struct finding list[FINDINGS_MAX];
    size_t count, left_out;
};

/* Adds one that is filled by the caller. NULL if there are too many: they are counted. */
struct finding *findings_add(struct findings *findings, const char *host);

/* Something is wrong with this host already. */
bool findings_name(const struct findings *findings, const char *host);

/* Rows with the same problem and advice, of no pair, become one, with all their hosts, where there
 * is room for their names. */
void findings_join(struct findings *findings);

/* A row for each, with what to do below it. Control characters are not printed. */
void findings_print(const struct findings *findings, FILE *stream);

#endif
