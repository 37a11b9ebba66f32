/* Tests of ranks from the option and the environment of launchers. */
#include "worker/rank.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <string.h>

struct variable {
    const char *name;
    char value[16];
};

static struct variable *environment;
static size_t environment_count;

static char *get(const char *name)
{
    for (size_t i = 0; i < environment_count; i++) {
        if (strcmp(environment[i].name, name) == 0) {
            return environment[i].value;
        }
    }
    return NULL;
}

static enum status resolve(bool has_option, uint32_t option, struct variable *variables,
                           size_t count, bool *ret_has, uint32_t *ret_value, char error[256])
{
    environment = variables;
    environment_count = count;
    error[0] = '\0';
    return rank_resolve("--rank", has_option, option, rank_variables, get, ret_has, ret_value,
                        error, 256);
}

static void without_any_source_the_coordinator_decides(void **state)
{
    (void)state;
    bool has = true;
    uint32_t value;
    char error[256];
    assert_int_equal(resolve(false, 0, NULL, 0, &has, &value, error), STATUS_OK);
    assert_false(has);
}

static void each_launcher_is_understood(void **state)
{
    (void)state;
    for (size_t i = 0; rank_variables[i] != NULL; i++) {
        struct variable variables[] = {{rank_variables[i], "3"}};
        bool has;
        uint32_t value;
        char error[256];
        assert_int_equal(resolve(false, 0, variables, 1, &has, &value, error), STATUS_OK);
        assert_true(has);
        assert_int_equal(value, 3);
    }
}

static void two_sources_that_agree_are_fine(void **state)
{
    (void)state;
    struct variable variables[] = {{"OMPI_COMM_WORLD_RANK", "2"}, {"PMIX_RANK", "2"}};
    bool has;
    uint32_t value;
    char error[256];
    assert_int_equal(resolve(true, 2, variables, 2, &has, &value, error), STATUS_OK);
    assert_int_equal(value, 2);
}

static void two_sources_that_contradict_each_other_are_refused_by_name(void **state)
{
    (void)state;
    struct variable variables[] = {{"SLURM_PROCID", "1"}, {"RANK", "2"}};
    bool has;
    uint32_t value;
    char error[256];
    assert_int_equal(resolve(false, 0, variables, 2, &has, &value, error), STATUS_INVALID);
    assert_non_null(strstr(error, "RANK says 2 but SLURM_PROCID says 1"));
    assert_int_equal(resolve(true, 0, variables, 1, &has, &value, error), STATUS_INVALID);
    assert_non_null(strstr(error, "--rank says 0 but SLURM_PROCID says 1"));
}

static void what_is_no_number_is_refused(void **state)
{
    (void)state;
    const char *const texts[] = {"", "x", "-1", "1 ", "99999999999"};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct variable variables[] = {{"RANK", ""}};
        memcpy(variables[0].value, texts[i], strlen(texts[i]) + 1);
        bool has;
        uint32_t value;
        char error[256];
        assert_int_equal(resolve(false, 0, variables, 1, &has, &value, error), STATUS_INVALID);
        assert_non_null(strstr(error, "RANK"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_any_source_the_coordinator_decides),
        cmocka_unit_test(each_launcher_is_understood),
        cmocka_unit_test(two_sources_that_agree_are_fine),
        cmocka_unit_test(two_sources_that_contradict_each_other_are_refused_by_name),
        cmocka_unit_test(what_is_no_number_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
