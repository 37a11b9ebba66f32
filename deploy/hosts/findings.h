/* Keeps what preflight found wrong, in one table. Pure. */
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
    bool has_misuse; // one is about an option that asks for what the job does not have
};

/* Adds a finding, which the caller fills. Returns NULL if there are too many; those are counted. */
struct finding *findings_add(struct findings *findings, const char *host);

/* Whether there is a finding about this host already. */
bool findings_name(const struct findings *findings, const char *host);

/* Joins rows with the same problem and advice that are not about a pair, where one row has room for
 * all their hosts. */
void findings_join(struct findings *findings);

/* Prints a row for each finding, with its advice below. Does not print control characters. */
void findings_print(const struct findings *findings, FILE *stream);

#endif
