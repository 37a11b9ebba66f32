/* Keeps the level of the workers' pushes. */
#include "deploy/predict/exchange/credits.h"

#include <stdlib.h>

bool credits_seen_init(struct credits_seen *credits, uint32_t workers, uint32_t buckets)
{
    *credits = (struct credits_seen){.lines = calloc(workers, sizeof(*credits->lines)),
                                     .waiting = calloc((size_t)workers * buckets, sizeof(uint32_t)),
                                     .workers = workers,
                                     .buckets = buckets,
                                     .least_many = workers};
    return credits->lines != NULL && credits->waiting != NULL;
}

void credits_seen_finish(struct credits_seen *credits)
{
    free(credits->lines);
    free(credits->waiting);
}

/* After the last of those that had pushed least has pushed more. */
static void find_least(struct credits_seen *credits)
{
    credits->least_many = 0;
    for (uint32_t w = 0; w < credits->workers; w++) {
        double pushed = credits->lines[w].pushed;
        if (credits->least_many == 0 || pushed < credits->least) {
            credits->least = pushed;
            credits->least_many = 0;
        }
        credits->least_many += pushed <= credits->least;
    }
}

void credits_seen_add(struct credits_seen *credits, uint32_t worker, uint32_t bucket, double bytes)
{
    struct credit_line *line = &credits->lines[worker];
    bool was_least = line->pushed <= credits->least;
    uint32_t *own = &credits->waiting[(size_t)worker * credits->buckets];
    own[(line->first + line->count++) % credits->buckets] = bucket;
    line->pushed += bytes;
    credits->next = worker;
    credits->end = worker + 1;
    if (was_least && --credits->least_many == 0) {
        find_least(credits);
        credits->next = 0;
        credits->end = credits->workers;
    }
}

bool credits_seen_take(struct credits_seen *credits, const double *bytes, uint32_t *ret_worker,
                       uint32_t *ret_bucket)
{
    for (; credits->next < credits->end; credits->next++) {
        struct credit_line *line = &credits->lines[credits->next];
        uint32_t *own = &credits->waiting[(size_t)credits->next * credits->buckets];
        if (line->count > 0 && line->told + bytes[own[line->first]] <= credits->least) {
            *ret_worker = credits->next;
            *ret_bucket = own[line->first];
            line->told += bytes[own[line->first]];
            line->first = (line->first + 1) % credits->buckets;
            line->count--;
            return true;
        }
    }
    return false;
}
