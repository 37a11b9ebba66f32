/* Reads --straggler, and draws the delay of each step. */
#include "common/job/straggler.h"

#include "common/base/number.h"
#include "common/base/random.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define FACTOR_MAX  1000
#define MEAN_MS_MAX 60000

/* "name=number" of one of two names; *at goes behind it. */
static bool parse_field(const char **at, const char *name, double min, double max,
                        double *ret_value)
{
    size_t size = strlen(name);
    if (strncmp(*at, name, size) != 0 || (*at)[size] != '=') {
        return false;
    }
    *at += size + 1;
    size_t digits = number_decimal(*at, ret_value);
    *at += digits;
    return digits > 0 && *ret_value >= min && *ret_value <= max;
}

/* Goes behind a text, if it is next. */
static bool take_text(const char **at, const char *text)
{
    size_t size = strlen(text);
    bool is_next = strncmp(*at, text, size) == 0;
    *at += is_next ? size : 0;
    return is_next;
}

static bool parse_rule(const char **at, struct straggler_rule *rule)
{
    double rank = 0;
    *rule = (struct straggler_rule){.rank = -1, .factor = 1};
    if (strncmp(*at, "rank=", 5) == 0) {
        bool is_rule = parse_field(at, "rank", 0, 1e6, &rank) && take_text(at, ",") &&
                       parse_field(at, "factor", 1, FACTOR_MAX, &rule->factor);
        rule->rank = (int64_t)rank;
        return is_rule && floor(rank) == rank;
    }
    return take_text(at, "dist=exponential:") &&
           parse_field(at, "mean", 0, MEAN_MS_MAX, &rule->mean_ms) && take_text(at, "ms,") &&
           parse_field(at, "share", 0, 1, &rule->share);
}

enum status straggler_parse(const char *text, struct straggler *ret_straggler, char *ret_why,
                            size_t why_size)
{
    struct straggler straggler = {.count = 0};
    if (strcmp(text, "none") == 0) {
        *ret_straggler = straggler;
        return STATUS_OK;
    }
    for (const char *at = text;; at++) {
        bool is_rule = straggler.count < STRAGGLER_RULES_MAX &&
                       parse_rule(&at, &straggler.rules[straggler.count]);
        if (!is_rule || (*at != '\0' && *at != ';')) {
            snprintf(
                ret_why, why_size,
                "wanted is none, rank=R,factor=F (F from 1 to %d), or "
                "dist=exponential:mean=20ms,share=P (a mean of up to %d ms, P from 0 to 1), joined "
                "by semicolons",
                FACTOR_MAX, MEAN_MS_MAX);
            return STATUS_INVALID;
        }
        straggler.count++;
        if (*at == '\0') {
            break;
        }
    }
    *ret_straggler = straggler;
    return STATUS_OK;
}

int64_t straggler_rank_max(const struct straggler *straggler)
{
    int64_t rank = -1;
    for (uint32_t i = 0; i < straggler->count; i++) {
        rank = straggler->rules[i].rank > rank ? straggler->rules[i].rank : rank;
    }
    return rank;
}

uint64_t straggler_delay_ns(const struct straggler *straggler, uint64_t seed, uint32_t rank,
                            uint64_t step, uint64_t compute_ns)
{
    double delay_ns = 0;
    for (uint32_t i = 0; i < straggler->count; i++) {
        const struct straggler_rule *rule = &straggler->rules[i];
        if (rule->rank == (int64_t)rank) {
            delay_ns += (rule->factor - 1) * (double)compute_ns;
        }
        uint64_t key = random_key(seed, RANDOM_STRAGGLER, ((uint64_t)i << 32) | rank, step);
        bool is_late = random_unit_float(random_element(key, 0)) < (float)rule->share;
        if (rule->rank < 0 && is_late) {
            // In (0, 1], so that the logarithm is finite.
            double unit = 1.0 - (double)random_unit_float(random_element(key, 1));
            delay_ns += -log(unit) * rule->mean_ms * 1e6;
        }
    }
    return (uint64_t)delay_ns;
}
