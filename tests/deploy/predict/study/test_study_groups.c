/* Tests of links that are alike, and of where their groups are printed. */
#include "deploy/predict/study/study_basis.h"
#include "deploy/predict/study/study_groups.h"
#include "tests/support/deploy/small_study.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h> // needs the four above
// clang-format on
#include <stdlib.h>
#include <string.h>

static void links_are_alike_wherever_they_stand(void **state)
{
    (void)state;
    const struct network_link slow = {.bandwidth = 1e9}, quick = {.bandwidth = 2e9};
    struct study_group list[4];
    uint32_t count = 0;
    assert_int_equal(study_group_join(list, 0, &count, &(struct study_group){.link = &slow}), 0);
    assert_int_equal(study_group_join(list, 0, &count, &(struct study_group){.link = &quick}), 1);
    assert_int_equal(study_group_join(list, 0, &count, &(struct study_group){.link = &slow}), 0);
    assert_int_equal(
        study_group_join(list, 0, &count, &(struct study_group){.link = &slow, .workers = 1}), 2);
    assert_int_equal(study_group_join(list, 1, &count, &(struct study_group){.link = &slow}), 3);
    assert_int_equal(count, 4);
    assert_int_equal(list[0].size, 2);
    assert_int_equal(list[1].size, 1);
}

/* Every other host has a link of its own kind. */
static void equal_hosts_are_one_entry_of_the_basis_also_where_others_lie_between(void **state)
{
    (void)state;
    char *text = NULL;
    size_t size = 0;
    struct small_study *small = small_study_create(6, "ring", "1", "2");
    assert_non_null(small);
    for (uint32_t i = 0; i < 6; i += 2) {
        small->network.links[small->network.hosts[i].up].bandwidth = 1e9;
    }
    FILE *stream = open_memstream(&text, &size);
    assert_non_null(stream);
    study_print_basis(&small->study, stream);
    fclose(stream);
    assert_non_null(strstr(text, "  hosts: h0 out and 2 more 8 Gbit/s (1 GB/s), h1 out and 2 more "
                                 "1 Gbit/s (125 MB/s)\n"));
    free(text);
    small_study_destroy(small);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(links_are_alike_wherever_they_stand),
        cmocka_unit_test(equal_hosts_are_one_entry_of_the_basis_also_where_others_lie_between),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
