/* Integer powers whose bits do not depend on the machine: the C library's pow has variants that
 * differ in the last place. */
#ifndef COMMON_BASE_POWER_H
#define COMMON_BASE_POWER_H

#include <stdint.h>

static inline double power_of(double base, uint64_t exponent)
{
    double result = 1;
    for (; exponent > 0; exponent >>= 1) {
        if (exponent & 1) {
            result *= base;
        }
        base *= base;
    }
    return result;
}

#endif
