/* Changes of costs, network and servers that a prediction is made with as well:
 * "link=2x,compute=0.5x". */
#ifndef DEPLOY_PREDICT_BASIS_WHAT_IF_H
#define DEPLOY_PREDICT_BASIS_WHAT_IF_H

#include "common/base/status.h"
#include "deploy/predict/basis/basis.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define WHAT_IF_CHANGES_MAX 16
#define WHAT_IF_TEXT_BYTES  256
#define WHAT_IFS_MAX        8

struct what_if_change {
    size_t word; // a row of the table of what can be changed
    bool is_factor;
    double value; // the factor; or in seconds, bytes per second, or a number
};

struct what_if {
    char text[WHAT_IF_TEXT_BYTES]; // as it was written
    struct what_if_change changes[WHAT_IF_CHANGES_MAX];
    uint32_t count;
};

/* False if a text is wrong; the reason names the nearest word, or what would be right. */
bool what_if_parse(const char *text, struct what_if *ret_what_if, char *ret_why, size_t why_size);

/* Whether one of the changes is of the number of servers, which not all modes have. */
bool what_if_has_servers(const struct what_if *what_if);

/* A line with the bandwidths that it gives, in bits and in bytes; nothing if it gives none. */
void what_if_print_bandwidths(const struct what_if *what_if, FILE *stream);

/* Changes the basis; NULL is no change. Logs where the files have nothing that could be changed. */
enum status what_if_apply(const struct what_if *what_if, struct basis *basis);

#endif
