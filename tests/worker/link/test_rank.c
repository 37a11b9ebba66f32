/* Tests of ranks from the option and the environment of launchers. */
#include "tests/support/common/choices.h"
#include "worker/link/rank.h"

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
static struct outcome resolve_by(const char *launcher, const char *option,
                                 struct variable *variables, size_t count)
{
    struct outcome outcome = {.has = true};
    environment = variables;
    environment_count = count;
    const struct rank_sources sources = {
        .option = option[0] != '\0' ? "--rank" : NULL,
        .option_value = (uint32_t)strtoul(option, NULL, 10),
        .launcher = (enum rank_launcher)choice_of(rank_launchers, launcher),
        .variables = rank_variables,
        .get = get,
    };
    outcome.status =
        rank_resolve(&sources, &outcome.has, &outcome.value, outcome.error, sizeof(outcome.error));
    return outcome;
}

static struct outcome resolve(const char *option, struct variable *variables, size_t count)
{
    return resolve_by("auto", option, variables, count);
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
    for (size_t i = 0; rank_variables[i].name != NULL; i++) {
        struct variable variables[] = {{rank_variables[i].name, "3"}};
        struct outcome outcome = resolve("", variables, 1);
        assert_int_equal(outcome.status, STATUS_OK);
        assert_true(outcome.has);
        assert_int_equal(outcome.value, 3);
    }
}

/* torchrun below srun: the one knows ranks, the other nodes. */
static void the_launcher_that_is_named_counts_alone(void **state)
{
    (void)state;
    struct variable variables[] = {{"RANK", "2"}, {"SLURM_PROCID", "1"}};
    assert_int_equal(resolve("", variables, 2).status, STATUS_INVALID);
    assert_int_equal(resolve_by("torchrun", "", variables, 2).value, 2);
    assert_int_equal(resolve_by("slurm", "", variables, 2).value, 1);
    assert_false(resolve_by("none", "", variables, 2).has);
    assert_false(resolve_by("mpich", "", variables, 2).has);
    struct variable own[] = {{"RINGSIDE_RANK", "3"}, {"RANK", "2"}};
    assert_int_equal(resolve_by("none", "", own, 2).value, 3);
    assert_int_equal(resolve_by("torchrun", "", own, 2).status, STATUS_INVALID);
}

static enum status check_size_behind(uint32_t offset, uint32_t workers, struct variable *variables,
                                     size_t count, char *ret_error)
{
    environment = variables;
    environment_count = count;
    return rank_check_size(RANK_LAUNCHER_AUTO, offset, workers, get, ret_error, 256);
}

static void processes_before_worker_0_are_no_workers(void **state)
{
    (void)state;
    char error[256];
    struct variable third[] = {{"SLURM_PROCID", "3"}, {"SLURM_STEP_NUM_TASKS", "4"}};
    struct rank_sources sources = {
        .launcher = RANK_LAUNCHER_AUTO, .offset = 1, .variables = rank_variables, .get = get};
    bool has;
    uint32_t rank;
    environment = third;
    environment_count = 2;
    assert_int_equal(rank_resolve(&sources, &has, &rank, error, sizeof(error)), STATUS_OK);
    assert_int_equal(rank, 2);
    assert_int_equal(check_size_behind(1, 3, third, 2, error), STATUS_OK);
    assert_int_equal(check_size_behind(0, 3, third, 2, error), STATUS_MISMATCH);
    assert_non_null(
        strstr(error, "SLURM_STEP_NUM_TASKS is 4, but the job has 3 worker processes:"));
    assert_non_null(strstr(error, "--rank-offset"));
    assert_int_equal(check_size_behind(2, 3, third, 2, error), STATUS_MISMATCH);
    assert_non_null(strstr(error, "3 worker processes and 2 other processes before them"));
    assert_int_equal(check_size_behind(5, 3, third, 2, error), STATUS_MISMATCH);
    sources.offset = 4;
    assert_int_equal(rank_resolve(&sources, &has, &rank, error, sizeof(error)), STATUS_INVALID);
    assert_non_null(strstr(error, "SLURM_PROCID is 3, which is before worker 0"));
    // What we say ourselves is a rank already.
    struct variable own[] = {{"RINGSIDE_RANK", "2"}, {"SLURM_PROCID", "6"}};
    environment = own;
    assert_int_equal(rank_resolve(&sources, &has, &rank, error, sizeof(error)), STATUS_OK);
    assert_int_equal(rank, 2);
}

static enum status check_size(const char *launcher, uint32_t workers, struct variable *variables,
                              size_t count, char *ret_error)
{
    environment = variables;
    environment_count = count;
    return rank_check_size((enum rank_launcher)choice_of(rank_launchers, launcher), 0, workers, get,
                           ret_error, 256);
}

static void a_launcher_that_started_another_number_is_refused(void **state)
{
    (void)state;
    char error[256];
    static const char *const names[][2] = {{"RANK", "WORLD_SIZE"},
                                           {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
                                           {"PMI_RANK", "PMI_SIZE"},
                                           {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS"},
                                           {"SLURM_PROCID", "SLURM_NTASKS"}};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        struct variable variables[] = {{names[i][0], "0"}, {names[i][1], "1"}};
        assert_int_equal(check_size("auto", 1, variables, 2, error), STATUS_OK);
        assert_int_equal(check_size("auto", 4, variables, 2, error), STATUS_MISMATCH);
        assert_non_null(strstr(error, names[i][1]));
        assert_non_null(strstr(error, "is 1, but the job has 4 worker processes"));
        assert_int_equal(check_size("none", 4, variables, 2, error), STATUS_OK);
        assert_int_equal(check_size("kubernetes", 4, variables, 2, error), STATUS_OK);
        // Without a rank it is not this process that the number is about.
        assert_int_equal(check_size("auto", 4, variables + 1, 1, error), STATUS_OK);
    }
    struct variable bad[] = {{"PMI_RANK", "0"}, {"PMI_SIZE", "many"}};
    assert_int_equal(check_size("auto", 4, bad, 2, error), STATUS_MISMATCH);
}

static void the_tasks_of_a_step_count_more_than_those_of_its_job(void **state)
{
    (void)state;
    char error[256];
    struct variable variables[] = {
        {"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "8"}, {"SLURM_STEP_NUM_TASKS", "4"}};
    assert_int_equal(check_size("auto", 4, variables, 3, error), STATUS_OK);
    assert_int_equal(check_size("auto", 8, variables, 3, error), STATUS_MISMATCH);
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
        cmocka_unit_test(the_launcher_that_is_named_counts_alone),
        cmocka_unit_test(processes_before_worker_0_are_no_workers),
        cmocka_unit_test(a_launcher_that_started_another_number_is_refused),
        cmocka_unit_test(the_tasks_of_a_step_count_more_than_those_of_its_job),
        cmocka_unit_test(two_sources_that_agree_are_fine),
        cmocka_unit_test(two_sources_that_contradict_each_other_are_refused_by_name),
        cmocka_unit_test(what_is_no_number_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
