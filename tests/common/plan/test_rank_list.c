/* Tests of short lists of ranks. */
#include "common/plan/rank_list.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <stdio.h>
#include <string.h>

static void what_is_read_is_written_in_ascending_order(void **state)
{
    (void)state;
    static const char *const texts[][2] = {
        {"none", "none"}, {"3", "3"}, {"7,1,3", "1,3,7"}, {"0,65535", "0,65535"}};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct rank_list list;
        char why[128] = "", text[64];
        assert_true(rank_list_parse(texts[i][0], 65536, &list, why, sizeof(why)));
        rank_list_format(&list, text, sizeof(text));
        assert_string_equal(text, texts[i][1]);
    }
}

static void what_is_no_list_is_refused_and_leaves_the_list_as_it_was(void **state)
{
    (void)state;
    static const char *const texts[][2] = {
        {"", "whole numbers"},       {"1,", "whole numbers"}, {",1", "whole numbers"},
        {"1, 2", "whole numbers"},   {"-1", "whole numbers"}, {"8", "whole numbers"},
        {"none,1", "whole numbers"}, {"1,1", "rank 1 twice"}, {"99999999999999999999", "whole"}};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct rank_list list = {.count = 1, .ranks = {5}};
        char why[128] = "";
        assert_false(rank_list_parse(texts[i][0], 8, &list, why, sizeof(why)));
        if (strstr(why, texts[i][1]) == NULL) {
            fail_msg("'%s': %s", texts[i][0], why);
        }
        assert_int_equal(list.count, 1);
        assert_int_equal(list.ranks[0], 5);
    }
}

static void a_list_has_each_rank_once_and_an_end(void **state)
{
    (void)state;
    struct rank_list list = {.count = 0};
    for (uint32_t rank = RANK_LIST_MAX; rank-- > 0;) {
        assert_true(rank_list_add(&list, 2 * rank));
        assert_true(rank_list_add(&list, 2 * rank));
    }
    assert_int_equal(list.count, RANK_LIST_MAX);
    assert_false(rank_list_add(&list, 1));
    assert_true(rank_list_add(&list, 2));
    for (uint32_t rank = 0; rank < 2 * RANK_LIST_MAX; rank++) {
        assert_int_equal(rank_list_has(&list, rank), rank % 2 == 0);
        assert_int_equal(rank_list_below(&list, rank), (rank + 1) / 2);
    }
    rank_list_remove_first(&list, 3);
    assert_false(rank_list_has(&list, 4));
    assert_true(rank_list_has(&list, 6));
    assert_int_equal(list.ranks[0], 6);
    rank_list_remove_first(&list, 99);
    assert_int_equal(list.count, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_read_is_written_in_ascending_order),
        cmocka_unit_test(what_is_no_list_is_refused_and_leaves_the_list_as_it_was),
        cmocka_unit_test(a_list_has_each_rank_once_and_an_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
