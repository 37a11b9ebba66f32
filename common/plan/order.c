/* Reads --order, and draws the staleness of each update. */
#include "common/plan/order.h"

#include "common/base/number.h"
#include "common/base/random.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// The geometric distribution is cut off where its tail has this probability.
#define TAIL 1e-6

static bool parse_count(const char *text, size_t size, uint64_t *ret_count)
{
    return number_whole(text, size, ORDER_STALENESS_MAX, ret_count);
}

static bool parse_range(const char *text, struct order *order, char *ret_why, size_t why_size)
{
    const char *dots = strstr(text, "..");
    if (dots == NULL || !parse_count(text, (size_t)(dots - text), &order->low) ||
        !parse_count(dots + 2, strlen(dots + 2), &order->high)) {
        snprintf(ret_why, why_size, "uniform wants two whole numbers up to %d: uniform:0..4",
                 ORDER_STALENESS_MAX);
        return false;
    }
    if (order->low > order->high) {
        snprintf(ret_why, why_size, "the range is upside down: uniform:%llu..%llu",
                 (unsigned long long)order->high, (unsigned long long)order->low);
        return false;
    }
    return true;
}

static bool parse_probability(const char *text, struct order *order, char *ret_why, size_t why_size)
{
    double value = 0;
    size_t size = number_decimal(text, &value);
    bool is_number = size > 0 && text[size] == '\0';
    double cut = value < 1 ? ceil(log(TAIL) / log1p(-value)) : 0;
    if (!is_number || value <= 0 || value > 1 || cut > ORDER_STALENESS_MAX) {
        snprintf(ret_why, why_size,
                 "geometric wants a probability from 0.004 to 1: geometric:0.5 has a mean "
                 "staleness of 1");
        return false;
    }
    order->probability = value;
    order->low = 0;
    order->high = (uint64_t)cut;
    return true;
}

static bool parse_distribution(const char *text, struct order *order, char *ret_why,
                               size_t why_size)
{
    if (strcmp(text, "round-robin") == 0) {
        order->kind = ORDER_ROUND_ROBIN;
        return true;
    }
    if (strncmp(text, "constant:", 9) == 0) {
        order->kind = ORDER_CONSTANT;
        bool is_count = parse_count(text + 9, strlen(text + 9), &order->low);
        order->high = order->low;
        if (!is_count) {
            snprintf(ret_why, why_size, "constant wants a whole number up to %d: constant:4",
                     ORDER_STALENESS_MAX);
        }
        return is_count;
    }
    if (strncmp(text, "uniform:", 8) == 0) {
        order->kind = ORDER_UNIFORM;
        return parse_range(text + 8, order, ret_why, why_size);
    }
    if (strncmp(text, "geometric:", 10) == 0) {
        order->kind = ORDER_GEOMETRIC;
        return parse_probability(text + 10, order, ret_why, why_size);
    }
    snprintf(ret_why, why_size,
             "there is no distribution '%.40s' (one of round-robin, constant:S, uniform:A..B, "
             "geometric:P)",
             text);
    return false;
}

enum status order_parse(const char *text, struct order *ret_order, char *ret_why, size_t why_size)
{
    static const char prefix[] = "seeded:";
    struct order order = {.kind = ORDER_FREE};
    if (strcmp(text, "free") == 0) {
        *ret_order = order;
        return STATUS_OK;
    }
    if (strncmp(text, prefix, strlen(prefix)) != 0) {
        snprintf(ret_why, why_size, "an order is free, or seeded:DIST, such as seeded:constant:4");
        return STATUS_INVALID;
    }
    if (!parse_distribution(text + strlen(prefix), &order, ret_why, why_size)) {
        return STATUS_INVALID;
    }
    *ret_order = order;
    return STATUS_OK;
}

uint64_t order_staleness_max(const struct order *order, uint32_t workers)
{
    switch (order->kind) {
    case ORDER_FREE:
        return 0;
    case ORDER_ROUND_ROBIN:
        return workers - 1;
    case ORDER_CONSTANT:
    case ORDER_UNIFORM:
    case ORDER_GEOMETRIC:
        return order->high;
    }
    return 0;
}

/* Failures before the first success, each drawn: whole numbers only, so that every machine draws
 * the same. */
static uint64_t draw_geometric(const struct order *order, uint64_t key)
{
    double threshold = order->probability * 0x1p32;
    uint64_t count = 0;
    while (count < order->high && (double)random_element(key, (uint32_t)count) >= threshold) {
        count++;
    }
    return count;
}

static uint64_t draw(const struct order *order, uint64_t key)
{
    struct random_sequence sequence = {.state = key};
    switch (order->kind) {
    case ORDER_UNIFORM:
        return order->low + random_below(&sequence, order->high - order->low + 1);
    case ORDER_GEOMETRIC:
        return draw_geometric(order, key);
    case ORDER_CONSTANT:
        return order->low;
    case ORDER_FREE:
    case ORDER_ROUND_ROBIN:
        break; // nothing to draw
    }
    return 0;
}

uint64_t order_staleness(const struct order *order, uint64_t seed, uint32_t workers,
                         uint64_t update)
{
    assert(order->kind != ORDER_FREE && update > 0);
    return order->kind == ORDER_ROUND_ROBIN
               ? workers - 1
               : draw(order, random_key(seed, RANDOM_ORDER, update, 0));
}

uint64_t order_delay(const struct order *order, uint64_t seed, uint64_t update, uint32_t seer)
{
    assert(order->kind != ORDER_FREE && order->kind != ORDER_ROUND_ROBIN && update > 0);
    return draw(order, random_key(seed, RANDOM_ORDER, update, 1 + (uint64_t)seer));
}

uint64_t order_version(const struct order *order, uint64_t seed, uint32_t workers, uint64_t update)
{
    uint64_t staleness = order_staleness(order, seed, workers, update);
    return update - 1 > staleness ? update - 1 - staleness : 0;
}
