/* Finds the group of a link. */
#include "deploy/predict/study/study_groups.h"

static bool is_like(const struct study_group *a, const struct study_group *b)
{
    return a->link->bandwidth == b->link->bandwidth && a->link->background == b->link->background &&
           a->link->loss == b->link->loss && a->above == b->above && a->workers == b->workers &&
           a->servers == b->servers && a->is_idle == b->is_idle;
}

uint32_t study_group_join(struct study_group *list, uint32_t begin, uint32_t *count,
                          const struct study_group *like)
{
    uint32_t i = begin;
    if (*count > begin && is_like(&list[*count - 1], like)) {
        i = *count - 1; // most come in a row
    }
    while (i < *count && !is_like(&list[i], like)) {
        i++;
    }
    if (i == *count) {
        list[*count] = *like;
        list[(*count)++].size = 0;
    }
    list[i].size++;
    return i;
}
