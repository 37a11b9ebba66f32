/* Reads, writes and changes a short list of ranks. */
#include "common/plan/rank_list.h"

#include "common/base/number.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

bool rank_list_parse(const char *text, uint32_t end, struct rank_list *ret_list, char *ret_why,
                     size_t why_size)
{
    struct rank_list list = {.count = 0};
    bool is_last = strcmp(text, "none") == 0;
    for (const char *at = text; !is_last;) {
        size_t size = strcspn(at, ",");
        uint64_t rank;
        is_last = at[size] == '\0';
        if (!number_whole(at, size, UINT16_MAX, &rank) || rank >= end) {
            snprintf(ret_why, why_size, "ranks are whole numbers from 0, such as 1,3");
            return false;
        }
        if (rank_list_has(&list, (uint32_t)rank)) {
            snprintf(ret_why, why_size, "it has rank %u twice", (unsigned)rank);
            return false;
        }
        if (!rank_list_add(&list, (uint32_t)rank)) {
            snprintf(ret_why, why_size, "it has more than %d ranks", RANK_LIST_MAX);
            return false;
        }
        at += size + 1;
    }
    *ret_list = list;
    return true;
}

void rank_list_format(const struct rank_list *list, char *ret_text, size_t text_size)
{
    size_t used = 0;
    snprintf(ret_text, text_size, "none");
    for (uint32_t i = 0; i < list->count && used < text_size; i++) {
        int length = snprintf(ret_text + used, text_size - used, "%s%u", i > 0 ? "," : "",
                              (unsigned)list->ranks[i]);
        used += length > 0 ? (size_t)length : 0;
    }
}

uint32_t rank_list_below(const struct rank_list *list, uint32_t rank)
{
    uint32_t count = 0;
    while (count < list->count && list->ranks[count] < rank) {
        count++;
    }
    return count;
}

bool rank_list_has(const struct rank_list *list, uint32_t rank)
{
    uint32_t at = rank_list_below(list, rank);
    return at < list->count && list->ranks[at] == rank;
}

bool rank_list_add(struct rank_list *list, uint32_t rank)
{
    assert(rank <= UINT16_MAX);
    uint32_t at = rank_list_below(list, rank);
    if (rank_list_has(list, rank)) {
        return true;
    }
    if (list->count == RANK_LIST_MAX) {
        return false;
    }
    memmove(&list->ranks[at + 1], &list->ranks[at], (list->count - at) * sizeof(list->ranks[0]));
    list->ranks[at] = (uint16_t)rank;
    list->count++;
    return true;
}

void rank_list_remove_first(struct rank_list *list, uint32_t count)
{
    count = count < list->count ? count : list->count;
    list->count -= count;
    memmove(&list->ranks[0], &list->ranks[count], list->count * sizeof(list->ranks[0]));
}
