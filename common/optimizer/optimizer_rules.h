/* The update rules behind optimizer.h, one row each: what they keep, which settings they use, and
 * their loops in every variant. Private to optimizer.c and its test. */
#ifndef COMMON_OPTIMIZER_OPTIMIZER_RULES_H
#define COMMON_OPTIMIZER_OPTIMIZER_RULES_H

#include "common/optimizer/optimizer.h"
#include "common/optimizer/optimizer_formulas.h"
#include "common/options/names.h"
#include "common/vector/variants.h"

#include <stddef.h>
#include <stdint.h>

/* Updates `count` parameters. `first` and `second` are their states, NULL where the rule has
 * fewer. None of the vectors overlap. */
typedef void optimizer_loop(const struct optimizer_coefficients *coefficients, float *params,
                            const float *grads, float *first, float *second, size_t count);

struct optimizer_rule {
    uint32_t state_count;
    unsigned uses;  // of enum optimizer_uses
    double epsilon; // used where the setting is 0
    double decay;   // used where the setting is 0
    enum optimizer_formula formula;
    optimizer_loop *loops[VARIANT_COUNT];
};

// A row of OPTIMIZER_MAP without a rule does not link.
#define X(identifier, kind, name, rate, summary) \
    extern const struct optimizer_rule optimizer_rule_##identifier;
OPTIMIZER_MAP(X)
#undef X

/* optimizer_create with a variant of the caller's choice. */
enum status optimizer_create_variant(enum optimizer_kind kind,
                                     const struct optimizer_settings *settings,
                                     uint64_t value_count, enum variant variant,
                                     struct optimizer **ret_optimizer);

#endif
