/* Tests of ranks from the option and the environment of launchers. */
#include "worker/rank.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h> // needs the three above
// clang-format on
#include <stdlib.h>
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

/* What a number resolves to. */
struct outcome {
    enum status status;
    bool has;
    uint32_t value;
    char error[256];
};

/* option: "" if it was not given. */
static struct outcome resolve(const char *option, struct variable *variables, size_t count)
{
    struct outcome outcome = {.has = true};
    environment = variables;
    environment_count = count;
    const struct rank_sources sources = {
        .option = option[0] != '\0' ? "--rank" : NULL,
        .option_value = (uint32_t)strtoul(option, NULL, 10),
        .variables = rank_variables,
        .get = get,
    };
    outcome.status =
        rank_resolve(&sources, &outcome.has, &outcome.value, outcome.error, sizeof(outcome.error));
    return outcome;
}

static void without_any_source_the_coordinator_decides(void **state)
{
    (void)state;
    struct outcome outcome = resolve("", NULL, 0);
    assert_int_equal(outcome.status, STATUS_OK);
    assert_false(outcome.has);
}

static void each_launcher_is_understood(void **state)
{
    (void)state;
    for (size_t i = 0; rank_variables[i] != NULL; i++) {
        struct variable variables[] = {{rank_variables[i], "3"}};
        struct outcome outcome = resolve("", variables, 1);
        assert_int_equal(outcome.status, STATUS_OK);
        assert_true(outcome.has);
        assert_int_equal(outcome.value, 3);
    }
}

static void two_sources_that_agree_are_fine(void **state)
{
    (void)state;
    struct variable variables[] = {{"OMPI_COMM_WORLD_RANK", "2"}, {"PMIX_RANK", "2"}};
    struct outcome outcome = resolve("2", variables, 2);
    assert_int_equal(outcome.status, STATUS_OK);
    assert_int_equal(outcome.value, 2);
}

static void two_sources_that_contradict_each_other_are_refused_by_name(void **state)
{
    (void)state;
    struct variable variables[] = {{"SLURM_PROCID", "1"}, {"RANK", "2"}};
    struct outcome outcome = resolve("", variables, 2);
    assert_int_equal(outcome.status, STATUS_INVALID);
    assert_non_null(strstr(outcome.error, "RANK says 2 but SLURM_PROCID says 1"));
    outcome = resolve("0", variables, 1);
    assert_int_equal(outcome.status, STATUS_INVALID);
    assert_non_null(strstr(outcome.error, "--rank says 0 but SLURM_PROCID says 1"));
}

static void what_is_no_number_is_refused(void **state)
{
    (void)state;
    const char *const texts[] = {"", "x", "-1", "1 ", "99999999999"};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct variable variables[] = {{"RANK", ""}};
        memcpy(variables[0].value, texts[i], strlen(texts[i]) + 1);
        struct outcome outcome = resolve("", variables, 1);
        assert_int_equal(outcome.status, STATUS_INVALID);
        assert_non_null(strstr(outcome.error, "RANK"));
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
