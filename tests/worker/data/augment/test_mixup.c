/* Tests of mixed images: against the moments of the distribution, and the definition. */
#include "common/base/random.h"
#include "worker/data/augment/mixup.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <math.h>

/* Beta(A, A) has the mean 1/2 and the variance 1 / (4 (2A + 1)). */
static void shares_have_the_moments_of_the_distribution(void **state)
{
    (void)state;
    enum { COUNT = 40000 };
    static const double amounts[] = {0.05, 0.2, 0.4, 1};
    for (size_t i = 0; i < sizeof(amounts) / sizeof(amounts[0]); i++) {
        double sum = 0, squares = 0;
        for (uint64_t key = 0; key < COUNT; key++) {
            struct mixup mixup = mixup_draw(amounts[i], random_mix(key));
            assert_in_range(mixup.share, 0, MIXUP_ONE);
            double distance = (double)mixup.share / MIXUP_ONE - 0.5;
            sum += distance / COUNT;
            squares += distance * distance / COUNT;
        }
        double variance = 1 / (4 * (2 * amounts[i] + 1));
        assert_true(fabs(sum) < 5 * sqrt(variance / COUNT));
        assert_true(fabs(squares / variance - 1) < 0.03);
    }
}

static void every_sample_may_be_the_other_one(void **state)
{
    (void)state;
    uint32_t seen[7] = {0};
    for (uint64_t key = 0; key < 7000; key++) {
        struct mixup mixup = mixup_draw(0.2, random_mix(key));
        seen[mixup_partner(&mixup, 7)]++;
    }
    for (uint32_t i = 0; i < 7; i++) {
        assert_in_range(seen[i], 850, 1150); // five standard deviations
    }
}

static void pixels_are_between_those_of_the_two_by_the_share(void **state)
{
    (void)state;
    for (uint32_t share = 0; share <= MIXUP_ONE; share += MIXUP_ONE / 16) {
        const struct mixup mixup = {.share = share};
        uint8_t bytes[256], other[256];
        for (uint32_t i = 0; i < 256; i++) {
            bytes[i] = (uint8_t)i;
            other[i] = (uint8_t)(255 - i * 7);
        }
        mixup_blend(&mixup, other, 256, bytes);
        for (uint32_t i = 0; i < 256; i++) {
            double part = (double)share / MIXUP_ONE;
            assert_true(fabs(bytes[i] - (part * i + (1 - part) * other[i])) <= 0.5);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shares_have_the_moments_of_the_distribution),
        cmocka_unit_test(every_sample_may_be_the_other_one),
        cmocka_unit_test(pixels_are_between_those_of_the_two_by_the_share),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
