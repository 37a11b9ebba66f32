/* Tests of the names of vectors in a checkpoint. */
#include "common/channel/piece_name.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on

static void every_kind_of_name_is_known(void **state)
{
    (void)state;
    static const char *const names[] = {"params",  "state-1",   "state-2",     "known",
                                        "squares", "version-1", "version-4095"};
    struct piece_name name;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        assert_true(piece_name_parse(names[i], &name));
        assert_false(name.has_rank);
    }
    static const char *const of_ranks[] = {"rank-0/statistics", "rank-4095/residual",
                                           "rank-12/state-2"};
    static const uint32_t ranks[] = {0, 4095, 12};
    for (size_t i = 0; i < sizeof(of_ranks) / sizeof(of_ranks[0]); i++) {
        assert_true(piece_name_parse(of_ranks[i], &name));
        assert_true(name.has_rank);
        assert_int_equal(name.rank, ranks[i]);
    }
}

static void nothing_else_is_a_name(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "",
        "param",
        "params ",
        "state-0",
        "state-01",
        "state-",
        "state-1x",
        "version-12345678901",
        "rank-1",
        "rank-1/",
        "rank-01/residual",
        "rank-1/params",
        "rank-x/residual",
        "rank-1/../params",
        "../params",
        "manifest.jsonl",
        "rank-1/statistics/rank-1/statistics/rank-1/statistics",
    };
    struct piece_name name;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        assert_false(piece_name_parse(texts[i], &name));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind_of_name_is_known),
        cmocka_unit_test(nothing_else_is_a_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
