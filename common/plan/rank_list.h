/* A short list of ranks, as text "1,3,7", in ascending order. Pure. */
#ifndef COMMON_PLAN_RANK_LIST_H
#define COMMON_PLAN_RANK_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RANK_LIST_MAX 32

/* Zeroed: empty. */
struct rank_list {
    uint32_t count;
    uint16_t ranks[RANK_LIST_MAX]; // ascending, each once
};

/* Reads "none", or ranks of which each is below `end`. False: ret_why says what would be right. */
bool rank_list_parse(const char *text, uint32_t end, struct rank_list *ret_list, char *ret_why,
                     size_t why_size);
void rank_list_format(const struct rank_list *list, char *ret_text, size_t text_size);

bool rank_list_has(const struct rank_list *list, uint32_t rank);

/* How many of the list are below a rank. */
uint32_t rank_list_below(const struct rank_list *list, uint32_t rank);

/* True if the list has the rank then. False: it is full. */
bool rank_list_add(struct rank_list *list, uint32_t rank);

/* Removes the first `count` ranks, or all of them. */
void rank_list_remove_first(struct rank_list *list, uint32_t count);

#endif
